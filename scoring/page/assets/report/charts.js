/*
Charts: drawn by Vega-Lite, as SVG, by the interpreter of expressions (no code is made from text), when they are
scrolled to, before printing, and again when theme, scorer or width change.

chartCard({id, title, reading, words, panels, table, wide, roomy}) -> section
  panels: [{title, spec: width => Vega-Lite spec}]      each as wide as its place; empty: only the table
  table: {head: [text], rows: [[cell]]}                 behind the chart
drawAllCharts() -> promise                              for printing
*/

const drawnCharts = new Set();
const chartWatch = new IntersectionObserver(
  entries => {
    for (const entry of entries) if (entry.isIntersecting) drawPanel(entry.target);
  },
  { rootMargin: "400px 0px" },
);
const chartResize = new ResizeObserver(entries => {
  for (const { target } of entries)
    if (target.drawnWidth && target.clientWidth && Math.abs(target.drawnWidth - target.clientWidth) > 4)
      redrawPanel(target);
});

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

function seriesColours(count = 8) {
  return Array.from({ length: count }, (_, i) => colour(`series-${i % 8}`));
}

function chartConfig() {
  const [ink, soft, line] = [colour("ink"), colour("ink-soft"), colour("line")];
  const font = getComputedStyle(document.body).fontFamily;
  return {
    aria: false,
    background: "transparent",
    font,
    view: { stroke: null },
    axis: {
      domainColor: colour("line-strong"),
      gridColor: line,
      labelColor: soft,
      labelFontSize: 11.5,
      labelLimit: 190,
      tickColor: colour("line-strong"),
      titleColor: soft,
      titleFontSize: 11.5,
      titleFontWeight: "normal",
      titlePadding: 8,
    },
    legend: {
      labelColor: ink,
      labelFontSize: 11.5,
      labelLimit: 220,
      orient: "bottom",
      symbolType: "square",
      title: null,
      columnPadding: 14,
    },
    text: { color: ink, font, fontSize: 11.5 },
    range: { category: seriesColours() },
  };
}

function chartCard({ id, title, reading, words, panels, table, wide, roomy }) {
  const heading = element("h3", { id: `${id}-title` }, title);
  const made = element(
    "section",
    { class: `card chart ${wide ? "wide" : ""}`, id, "aria-labelledby": `${id}-title` },
    heading,
  );
  append(made, element("p", { class: "reading" }, reading));
  if (panels.length) {
    const places = panels.map(panel => {
      const place = element("div", {
        class: "panel-picture",
        role: "img",
        "aria-label": `${title}${panel.title ? `, ${panel.title}` : ""}. ${words}`,
      });
      place.panel = panel;
      chartWatch.observe(place);
      chartResize.observe(place);
      return element(
        "div",
        { class: "panel" },
        panel.title
          ? element("p", { class: "panel-title" }, panel.mark || null, foreign(panel.title, { limit: 80 }))
          : null,
        place,
      );
    });
    append(
      made,
      element("div", { class: `panels ${panels.length > 1 ? "many" : ""} ${roomy ? "roomy" : ""}` }, places),
    );
  }
  if (table) append(made, tableBehind(table, title, !panels.length));
  return made;
}

function tableBehind(table, title, open) {
  const make = () => plainTable(table, title);
  return disclosure("Table", make, { class: "table-behind", open });
}

function plainTable({ head, rows }, title) {
  const numeric = head.map(
    (_, i) => rows.length > 0 && rows.every(row => typeof row[i] !== "object" && /^[-–\d]/.test(String(row[i]))),
  );
  const cell = (value, i) =>
    element(
      i ? "td" : "th",
      { class: numeric[i] ? "figure" : null, scope: i ? null : "row" },
      typeof value === "object" && value ? value : foreign(value, { limit: 300 }),
    );
  return element(
    "div",
    { class: "table-scroll", tabindex: "0", role: "group", "aria-label": title },
    element(
      "table",
      { class: "table" },
      element("caption", { class: "visually-hidden" }, title),
      element(
        "thead",
        {},
        element(
          "tr",
          {},
          head.map((text, i) => element("th", { scope: "col", class: numeric[i] ? "figure" : null }, text)),
        ),
      ),
      element(
        "tbody",
        {},
        rows.map(row => element("tr", {}, row.map(cell))),
      ),
    ),
  );
}

async function drawPanel(place) {
  chartWatch.unobserve(place);
  const width = place.clientWidth;
  if (!width || place.drawnWidth === width) return;
  place.drawnWidth = width;
  drawnCharts.add(place);
  const spec = {
    $schema: "",
    autosize: { type: "fit-x", contains: "padding" },
    width,
    padding: 2,
    ...place.panel.spec(width),
  };
  const compiled = vegaLite.compile(spec, { config: chartConfig(), logger: quietLogger }).spec;
  const runtime = vega.parse(compiled, null, { ast: true });
  const view = new vega.View(runtime, {
    expr: vegaInterpreter.expressionInterpreter,
    renderer: "svg",
    logger: quietLogger,
    tooltip: showTooltip,
  });
  view.initialize(place);
  await view.runAsync();
  if (place.view) place.view.finalize();
  place.view = view;
  for (const svg of place.querySelectorAll("svg")) svg.setAttribute("aria-hidden", "true");
}

/* What it warns of (a domain of nothing, a label that does not fit) is no news to a reader of the console. */
const quietLogger = {
  level: () => quietLogger,
  error: (...words) => {
    console.error(...words);
    return quietLogger;
  },
  warn: () => quietLogger,
  info: () => quietLogger,
  debug: () => quietLogger,
};

function redrawPanel(place) {
  place.drawnWidth = 0;
  return drawPanel(place);
}

function redrawCharts() {
  return Promise.all([...drawnCharts].filter(place => place.isConnected).map(redrawPanel));
}

function drawAllCharts() {
  return Promise.all([...document.querySelectorAll(".panel-picture")].map(redrawPanel));
}

function forgetCharts() {
  for (const place of drawnCharts) if (place.view) place.view.finalize();
  drawnCharts.clear();
}

let tooltip = null;

function showTooltip(handler, event, item, value) {
  if (!tooltip) {
    tooltip = element("div", { class: "tooltip", "aria-hidden": "true", hidden: true });
    document.body.append(tooltip);
  }
  tooltip.hidden = value === null || value === undefined || value === "";
  if (tooltip.hidden) return;
  const lines = isObject(value) ? Object.entries(value) : [["", value]];
  tooltip.replaceChildren(
    ...lines.map(([name, it]) =>
      element("div", {}, name ? element("span", {}, name) : null, " ", foreign(it, { limit: 160 })),
    ),
  );
  const { innerWidth } = window;
  tooltip.style.left = `${Math.min(event.clientX + 14, innerWidth - tooltip.offsetWidth - 8)}px`;
  tooltip.style.top = `${event.clientY + 16}px`;
}

document.addEventListener("themechange", () => redrawCharts());
