/* The report: overview and sessions, by the address; theme, scorer, keyboard, print. */

const overview = { made: null, list: null, scroll: 0, left: null };

function makeOverview() {
  const list = sessionList();
  const compared = several() ? comparisonSentences() : null;
  const made = element(
    "div",
    { class: "page overview" },
    masthead(),
    element(
      "section",
      { class: "figures", id: "figures", "aria-label": "Figures" },
      element("h2", { class: "visually-hidden" }, "Figures"),
      headlineCards(),
      compared,
    ),
    element(
      "section",
      { id: "charts", "aria-labelledby": "charts-title" },
      element("h2", { id: "charts-title" }, "Charts"),
      chartSections(),
      allFigures(),
    ),
    list,
    element(
      "footer",
      { class: "foot quiet small" },
      `wildproxy ${page.document.version}. This page is one file and asks nothing of the network.`,
    ),
  );
  overview.list = list;
  overview.made = made;
  return made;
}

function remakeOverview() {
  const shown = overview.made.hidden;
  forgetCharts();
  const old = overview.made;
  old.replaceWith(makeOverview());
  overview.made.hidden = shown;
}

let turn = 0;

async function route() {
  const address = readAddress();
  const main = document.getElementById("main");
  turn += 1;
  const mine = turn;
  if (
    address.filters &&
    !address.session &&
    Object.keys(NO_FILTERS).some(name => filters[name] !== address.filters[name])
  ) {
    Object.assign(filters, address.filters);
    overview.list.refresh();
  }
  const view = main.querySelector(".view");
  if (!address.session) {
    if (view) view.remove();
    showOverview(Boolean(view), address);
    return;
  }
  overview.left = address.session;
  if (view && view.key === address.session) return goToTask(view, address.task);
  const made = await sessionView(address.session);
  if (mine !== turn) return;
  made.key = address.session;
  if (!overview.made.hidden) overview.scroll = window.scrollY;
  overview.made.hidden = true;
  if (view) view.remove();
  main.append(made);
  const row = page.sessions.get(address.session);
  document.title = [row ? row.session : address.session, page.document.title]
    .map(it => visibleText(clipped(it, 80)))
    .join(" – ");
  goToTask(made, address.task);
}

function goToTask(view, task) {
  const section = task ? view.querySelector(`[data-part="task ${task}"]`) : null;
  const heading = section ? section.querySelector(".task-title") : view.querySelector("h1");
  heading.focus({ preventScroll: true });
  if (section) section.scrollIntoView({ block: "start" });
  else window.scrollTo(0, 0);
}

function showOverview(returned, address) {
  overview.made.hidden = false;
  document.title = visibleText(clipped(page.document.title, 120));
  if (address.place) {
    const place = document.getElementById(address.place);
    if (place) place.scrollIntoView({ block: "start" });
  } else if (returned) {
    window.scrollTo(0, overview.scroll);
    const link = [...overview.list.querySelectorAll(".row-link")].find(it => it.dataset.key === overview.left);
    if (link) link.focus({ preventScroll: overview.scroll > 0 });
  } else if (address.filters && listAddress() !== "#") {
    overview.list.scrollIntoView({ block: "start" });
  }
}

function keyPressed(event) {
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  const inField = event.target.closest && event.target.closest("input, select, textarea");
  const view = document.querySelector(".view");
  if (event.key === "Escape" && view && !inField) {
    // The address is ahead of what is shown while keys come fast.
    overview.left = readAddress().session || overview.left;
    location.hash = listAddress();
  } else if (event.key === "/" && !view && !inField) {
    event.preventDefault();
    overview.list.querySelector("input[type=search]").focus();
  } else if (view && !inField && (event.key === "j" || event.key === "k")) {
    const link = view.querySelector(`a[data-step="${event.key === "j" ? "next" : "prev"}"]`);
    if (link) link.click();
  }
}

/* On paper all is open, in the light theme, and every line is there. */
const print = { opened: [], theme: null };

function beforePrint() {
  if (print.theme) return;
  print.theme = document.documentElement.dataset.theme;
  document.documentElement.dataset.theme = "light";
  const view = document.querySelector(".view");
  if (!view) overview.list.showAll();
  const within = view || overview.made;
  print.opened = [...within.querySelectorAll("details:not([open]):not(.raw):not(.tools-offered)")];
  for (const part of print.opened) part.fill ? part.fill() : (part.open = true);
  if (!view) drawAllCharts();
}

function afterPrint() {
  if (!print.theme) return;
  for (const part of print.opened) part.open = false;
  document.documentElement.dataset.theme = print.theme;
  print.theme = null;
  redrawCharts();
}

async function start() {
  await readDocument();
  history.scrollRestoration = "manual";
  append(document.getElementById("top"), topBar());
  document.getElementById("opening").remove();
  Object.assign(filters, readAddress().filters || {});
  append(document.getElementById("main"), makeOverview());
  document.addEventListener("scorerchange", () => {
    remakeOverview();
    const view = document.querySelector(".view");
    if (view) {
      view.key = null;
      route();
    }
  });
  document.addEventListener("keydown", keyPressed);
  window.addEventListener("hashchange", route);
  window.addEventListener("beforeprint", beforePrint);
  window.addEventListener("afterprint", afterPrint);
  window.matchMedia("print").addEventListener("change", event => (event.matches ? beforePrint() : afterPrint()));
  route();
  document.documentElement.dataset.ready = "";
  performance.mark("ready");
}

startTheme();
start();
