/* The page: what it knows, and what it does when something happens. */

const page = {
  run: null,
  liveRun: null,
  runs: [],
  records: false,
  judged: false,
  sessions: new Map(),
  exchanges: new Map(),
  errors: new Map(),
  figures: null,
  more: { sessions: false, exchanges: false, errors: false },
  pageSize: 50,
  filter: "all",
  words: "",
  follow: true,
  offset: 0,
  state: "connecting",
};

/* How long a session that is followed may be quiet while another plays. */
const ACTIVE_S = 5;

const place = Object.fromEntries(["bar", "figures", "lists", "content", "columns"].map(id => [id, document.getElementById(id)]));
const openSession = new OpenSession(place.content, contentFailed);
const openExchange = new OpenExchange(place.content, contentFailed);
const stream = new Stream(happened, connectionTold);

function serverNow() {
  return Date.now() / 1000 + page.offset;
}

/* What happens */

function happened(name, told) {
  if (name === "failed") return notice(told.message);
  if (name === "all") takeAll(told);
  page.offset = told.now - Date.now() / 1000;
  page.figures = told.figures;
  merge(page.sessions, told.sessions);
  merge(page.exchanges, told.exchanges);
  merge(page.errors, told.errors);
  const open = address();
  if (open.session && (name === "all" || told.sessions.some(row => row.id === open.session))) openSession.changed();
  if (open.exchange && told.exchanges.some(row => row.id === open.exchange)) openExchange.changed();
  if (page.follow) follow();
  draw();
}

function takeAll(told) {
  if (page.run !== told.run) {
    for (const known of [page.sessions, page.exchanges, page.errors]) known.clear();
  }
  Object.assign(page, { run: told.run, liveRun: told.live_run, runs: told.runs, records: told.records, judged: told.judged, pageSize: told.page });
  page.more = Object.fromEntries(["sessions", "exchanges", "errors"].map(it => [it, told[it].length >= told.page]));
}

function merge(known, rows) {
  for (const row of rows) known.set(row.id, row);
}

function newest(known, key) {
  return [...known.values()].sort((a, b) => b[key] - a[key]);
}

/* What is open follows what plays, until the reader chooses. */
function follow() {
  const open = address();
  if (page.records) {
    const [last] = newest(page.exchanges, "arrival");
    if (last && last.id !== open.exchange && !open.list) go({ exchange: last.id });
    return;
  }
  const current = page.sessions.get(open.session);
  if (current && isActive(current)) return;
  const playing = newest(page.sessions, "last_at").filter(row => row.state === "playing" && row.task !== null);
  const [next] = playing.length ? playing : current ? [] : newest(page.sessions, "last_at");
  if (next && !open.exchange) go({ session: next.id });
}

function isActive(row) {
  return row.state === "playing" && (row.asking_since !== null || serverNow() - row.last_at < ACTIVE_S);
}

/* Where the page is */

function address() {
  return Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
}

function go(where) {
  const parts = address();
  const wanted = linkTo(where);
  if (wanted === `#${new URLSearchParams(parts)}`) return;
  history.replaceState(null, "", wanted);
  arrive();
}

function arrive() {
  if (takeToken()) stream.open(address().run || null);
  const { session, exchange, run } = address();
  if ((run || null) !== stream.run) stream.open(run || null);
  document.body.classList.toggle("opened", Boolean(session || exchange));
  if (session) {
    openExchange.close();
    openSession.show(session);
  } else if (exchange) {
    openSession.close();
    openExchange.show(exchange);
  } else {
    openSession.close();
    openExchange.close();
    emptyContent();
  }
  draw();
}

function chosenByReader(event) {
  const link = event.target.closest("a[href^='#']");
  if (link && (place.lists.contains(link) || link.classList.contains("back"))) setFollow(false);
}

function setFollow(on) {
  page.follow = on;
  if (on) follow();
  draw();
}

/* How the connection stands */

function connectionTold(state, words) {
  if (state === "refused") return askForToken();
  if (page.state !== state && (state === "live" || state === "reconnecting")) announce(state === "live" ? "Connected." : "Reconnecting.");
  page.state = state;
  if (state === "failed") notice(words);
  document.body.classList.remove("refused");
  drawBar();
}

function askForToken() {
  page.state = "refused";
  const field = element("input", { type: "password", id: "token", autocomplete: "off", spellcheck: "false" });
  const form = element(
    "form",
    { class: "card token-form", on: { submit: event => {
      event.preventDefault();
      if (!field.value.trim()) return;
      keepToken(field.value.trim());
      stream.open(address().run || null);
      arrive();
    } } },
    element("label", { for: "token" }, "Open the address that the proxy printed on its terminal, or paste its token here (EVAL_TOKEN, if that was set):"),
    element("div", { class: "buttons" }, field, element("button", { class: "button" }, "Show")),
  );
  openSession.close();
  openExchange.close();
  document.body.classList.add("refused");
  place.content.replaceChildren(form);
  drawBar();
  field.focus();
}

function notice(words) {
  place.content.replaceChildren(element("p", { class: "notice wrong" }, foreign(words, { limit: 1000 })));
}

function contentFailed(error, first) {
  if (error instanceof Refused) askForToken();
  else if (first && error.status) place.content.replaceChildren(backLink("Back"), element("p", { class: "notice warn" }, foreign(error.message, { limit: 600 })));
}

function emptyContent() {
  if (document.body.classList.contains("refused")) return;
  const words = page.figures && !page.sessions.size && !page.exchanges.size ? firstSteps() : element("p", { class: "quiet opening" }, "Choose something on the list.");
  place.content.replaceChildren(words);
}

function firstSteps() {
  const base = page.records ? `${location.origin}/v1` : `${location.origin}/s/SCENARIO_ID/v1`;
  return element(
    "div",
    { class: "opening quiet" },
    element("p", {}, "Nothing has come yet. Give your agent this base URL:"),
    element("p", {}, element("code", {}, base)),
  );
}

/* What is drawn */

function draw() {
  drawBar();
  if (!page.figures) return;
  renderFigures(place.figures, page.figures, page.judged, page.records, serverNow());
  drawLists();
  if (!address().session && !address().exchange) emptyContent();
  refreshAges(document.body, serverNow());
  const { over, planned } = page.figures.sessions;
  document.title = page.records ? `${number(page.figures.requests)} requests · wildproxy` : `${over}/${planned} · wildproxy`;
}

const STATES = {
  connecting: ["unjudged", "connecting"],
  live: ["right", "live"],
  reconnecting: ["warn", "reconnecting"],
  paused: ["unjudged", "paused"],
  refused: ["wrong", "no token"],
  failed: ["wrong", "stopped"],
};

function drawBar() {
  const [kind, words] = STATES[page.state];
  const parts = [
    { key: "name", sign: "", make: () => element("h1", {}, "wildproxy") },
    { key: "state", sign: page.state, make: () => element("span", { class: `connection ${page.state}` }, badge(kind, words)) },
    { key: "runs", sign: jsonText([page.runs, page.run, page.liveRun]), make: runChoice },
    { key: "spacer", sign: "", make: () => element("span", { class: "spacer" }) },
    { key: "theme", sign: "", make: themeToggle },
  ];
  syncChildren(place.bar, parts.filter(it => it.key !== "runs" || page.runs.length));
}

function runChoice() {
  const choose = event => {
    const run = event.target.value === page.liveRun ? null : event.target.value;
    location.hash = run ? `#${new URLSearchParams({ run })}` : "#";
  };
  const options = page.runs.map(run => element("option", { value: run.id, selected: run.id === page.run }, runWords(run)));
  return element("select", { class: "run-choice", "aria-label": "Run", on: { change: choose } }, options);
}

function runWords(run) {
  const about = [run.name, run.model || run.provider, run.agent, run.history === "live" ? "live history" : null].filter(Boolean).join(", ");
  const when = new Date(1000 * run.created_at).toLocaleString("en-GB", { dateStyle: "short", timeStyle: "short" });
  return `${run.id === page.liveRun ? "now: " : ""}${when}${about ? `, ${about}` : ""}`.slice(0, 120);
}

const FILTERS = {
  all: ["All", () => true],
  playing: ["Playing", row => row.state === "playing"],
  wrong: ["Wrong", row => row.tasks.some(it => it.right === false)],
  right: ["Right", row => row.state === "over" && row.tasks.every(it => it.right === true)],
};

function drawLists() {
  const errors = address().list === "errors";
  const main = page.records ? "exchanges" : "sessions";
  const name = errors ? "errors" : main;
  place.lists.setAttribute("aria-label", { sessions: "Sessions", exchanges: "Requests", errors: "Errors" }[name]);
  const items = listItems(name);
  const parts = [
    { key: "head", sign: jsonText([name, page.figures.errors, page.filter, page.follow]), make: () => listHead(name, main) },
    { key: `rows ${name}`, sign: "", make: () => element("ul", { class: "rows" }) },
    { key: "none", sign: jsonText([name, items.length]), make: () => (items.length ? element("span") : element("p", { class: "quiet none" }, "Nothing here.")) },
    { key: "more", sign: jsonText([name, page.more[name]]), make: () => (page.more[name] ? button("Show older ones", () => older(name)) : element("span")) },
  ];
  const typing = document.activeElement && document.activeElement.id === "words";
  syncChildren(place.lists, parts);
  syncChildren(place.lists.querySelector(".rows"), items);
  if (typing) document.getElementById("words").focus();
}

function listItems(name) {
  const { session, exchange } = address();
  const words = page.words.toLowerCase();
  if (name === "errors") return errorItems(newest(page.errors, "arrival"), exchange);
  if (name === "exchanges") {
    return exchangeItems(newest(page.exchanges, "arrival").filter(row => `${row.model} ${row.asked}`.toLowerCase().includes(words)), exchange);
  }
  const [, wanted] = FILTERS[page.filter];
  const rows = newest(page.sessions, "seq").filter(row => wanted(row) && row.name.toLowerCase().includes(words));
  return sessionItems([...rows.filter(row => row.state === "playing"), ...rows.filter(row => row.state !== "playing")], session);
}

function listHead(name, main) {
  const tab = (words, list, on) => element("a", { class: "tab", href: linkTo({ list }), "aria-current": on ? "page" : null }, words);
  const count = page.figures.errors ? ` (${number(page.figures.errors)})` : "";
  const box = element("input", { type: "checkbox", on: { change: event => setFollow(event.target.checked) } });
  box.checked = page.follow;
  const search = element("input", { type: "search", id: "words", placeholder: "Filter", "aria-label": "Filter by words", on: { input: event => {
    page.words = event.target.value;
    drawLists();
    refreshAges(place.lists, serverNow());
  } } });
  search.value = page.words;
  return element(
    "div",
    { class: "list-head" },
    element("div", { class: "tabs" }, tab(main === "sessions" ? "Sessions" : "Requests", null, name === main), tab(`Errors${count}`, "errors", name === "errors"), element("span", { class: "spacer" }), element("label", { class: "follow" }, box, " Follow")),
    name === "errors" ? null : element("div", { class: "filters" }, name === "sessions" ? filterChoice() : null, search),
  );
}

function filterChoice() {
  const choose = event => {
    page.filter = event.target.value;
    draw();
  };
  const options = Object.entries(FILTERS).map(([key, [words]]) => element("option", { value: key, selected: key === page.filter }, words));
  return element("select", { "aria-label": "Which sessions", on: { change: choose } }, options);
}

async function older(name) {
  const key = name === "sessions" ? "seq" : "arrival";
  const last = newest(page[name], key).at(-1);
  if (!last) return;
  try {
    const told = await ask(name, { before: last[key], run: page.run });
    page.more[name] = told[name].length >= page.pageSize;
    merge(page[name], told[name]);
    draw();
  } catch (error) {
    contentFailed(error, false);
  }
}

function tick() {
  if (document.visibilityState !== "visible" || !page.figures) return;
  refreshAges(document.body, serverNow());
  renderFigures(place.figures, page.figures, page.judged, page.records, serverNow());
}

takeToken();
startTheme();
document.addEventListener("click", chosenByReader, true);
window.addEventListener("hashchange", arrive);
// Where there is room for one thing at a time, the list comes first.
if (address().session || address().exchange || matchMedia("(max-width: 820px)").matches) page.follow = false;
stream.run = address().run || null;
stream.open(stream.run);
arrive();
setInterval(tick, 1000);
