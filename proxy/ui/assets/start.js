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
