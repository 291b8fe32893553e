/*
What is drawn of all that the page knows: the bar, the figures, the list, and what stands where nothing is open.

draw(), drawBar(), drawLists(), emptyContent(), notice(words), askForToken(), connectionTold(state, words)
*/

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
    element("label", { for: "token" }, "Open the address that the proxy printed on its terminal, or paste its token here (EVAL_TOKEN; a proxy whose output is not a terminal needs it to be set):"),
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
