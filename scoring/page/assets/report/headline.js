/*
The big figures: each with its interval, drawn and written, its n, what the other scorers say where they differ, and
the floor: what an agent without a model gets.
*/

const HEADLINES = [
  { keys: ["session_accuracy"], title: "Session accuracy", floor: "session_accuracy", level: "session" },
  { keys: ["task_accuracy"], title: "Task accuracy", floor: "task_accuracy", level: "task" },
  { keys: ["optimal_path_rate[Total]"], title: "Optimal path", floor: null, level: null },
  { keys: ["progress_nodes[Total]", "progress_released[Total]"], title: "Progress", floor: null, level: null },
];

function headlineCards() {
  const made = element("div", { class: "headlines" });
  for (const headline of HEADLINES) append(made, headlineCard(headline));
  return made;
}

function headlineFigure(run, headline, scorer = page.scorer) {
  for (const key of headline.keys) {
    const found = figure(run, { key, of: "scorer" }, scorer);
    if (found) return { ...found, key };
  }
  return null;
}

function headlineCard(headline) {
  const told = definition(headline.keys[0].replace(/\[.*/, ""));
  const rows = page.document.runs.map(run => headlineRow(run, headline));
  return element(
    "section",
    { class: `card headline ${several() ? "many" : "one"}`, "aria-label": headline.title },
    element("h3", { title: told.text }, headline.title),
    rows,
    floorLine(headline),
  );
}

function headlineRow(run, headline) {
  const found = headlineFigure(run, headline);
  const value = element(
    "span",
    { class: "big" },
    found ? percent(found.value) : NOTHING,
    found && element("span", { class: "unit" }, " %"),
  );
  const counts =
    found && isNumber(found.successes)
      ? `${number(found.successes)} of ${number(found.n)}`
      : found
        ? `n ${number(found.n)}`
        : "nothing to tell";
  const verdict = pairedVerdict(run, headline);
  const parts = [
    element(
      "div",
      { class: "headline-value" },
      value,
      element("span", { class: "counts" }, counts),
      element("span", { class: "spacer" }),
      verdict,
    ),
    intervalPicture(run, headline, found),
    element("p", { class: "interval-words quiet" }, intervalWords(found), otherScorers(run, headline, found)),
  ];
  return element(
    "div",
    { class: "headline-run" },
    several() ? element("div", { class: "headline-name" }, runName(run)) : null,
    parts,
  );
}

function intervalWords(found) {
  if (!found) return "";
  return isNumber(found.low) ? `95 %: ${percent(found.low)} to ${percent(found.high)}` : "no interval";
}

function otherScorers(run, headline, found) {
  const told = [];
  for (const name of page.document.scorers) {
    if (name === page.scorer) continue;
    const other = headlineFigure(run, headline, name);
    if (!other || (found && percent(other.value) === percent(found.value))) continue;
    told.push(element("span", { class: "other-scorer" }, `${name} ${percent(other.value)} %`));
  }
  return told;
}

function floorOf(run, headline, scorer = page.scorer) {
  if (!headline.floor) return null;
  const values = (run.null_agents || [])
    .filter(agent => agent.bound !== "ceiling")
    .flatMap(agent =>
      agent.figures
        .filter(it => it.scorer === scorer)
        .map(it => ({ name: agent.name, value: it[headline.floor].value })),
    )
    .filter(it => isNumber(it.value));
  return values.length ? values.reduce((best, it) => (it.value > best.value ? it : best)) : null;
}

function floorLine(headline) {
  const floors = page.document.runs.map(run => floorOf(run, headline)).filter(Boolean);
  if (!floors.length) return null;
  const best = floors.reduce((found, it) => (it.value > found.value ? it : found));
  return element(
    "p",
    { class: "floor quiet" },
    element("span", { class: "floor-sign", "aria-hidden": "true" }),
    ` without a model: ${percent(best.value)} %`,
  );
}

/* A line from 0 to 100 %: the interval as a band, the value as a mark, the floor as a tick, other scorers as diamonds. */
function intervalPicture(run, headline, found) {
  const at = value => `${(100 * Math.min(1, Math.max(0, value))).toFixed(2)}%`;
  const parts = [drawing("line", { class: "track", x1: "0%", x2: "100%", y1: 10, y2: 10 })];
  const floor = floorOf(run, headline);
  if (found && isNumber(found.low)) {
    const width = `${(100 * Math.max(0.004, found.high - found.low)).toFixed(2)}%`;
    parts.push(drawing("rect", { class: "band", x: at(found.low), y: 5, width, height: 10, rx: 5 }));
  }
  if (floor) parts.push(drawing("line", { class: "floor", x1: at(floor.value), x2: at(floor.value), y1: 2, y2: 18 }));
  for (const name of page.document.scorers) {
    const other = name === page.scorer ? null : headlineFigure(run, headline, name);
    if (found && other && percent(other.value) !== percent(found.value)) {
      parts.push(
        drawing(
          "svg",
          { class: "other", x: at(other.value), y: 10, overflow: "visible" },
          drawing("path", { d: "M0 -5 L5 0 L0 5 L-5 0 Z" }),
        ),
      );
    }
  }
  if (found) parts.push(drawing("circle", { class: "value", cx: at(found.value), cy: 10, r: 5 }));
  const words = found ? `${percent(found.value)} per cent, ${intervalWords(found)}` : "nothing to tell";
  const colour = several() ? seriesColour(run.index) : "var(--accent)";
  return drawing(
    "svg",
    { class: "interval", height: 20, width: "100%", role: "img", "aria-label": words, style: `--colour: ${colour}` },
    parts,
  );
}

function comparisonOf(run, scorer = page.scorer) {
  const found = (page.document.compare || []).filter(it => it.b === run.key);
  return found.find(it => it.scorer.name === scorer) || found[0] || null;
}

const PAIRED = {
  better: ["right", "better"],
  worse: ["wrong", "worse"],
  inconclusive: ["unjudged", "inconclusive"],
};

function pairedVerdict(run, headline) {
  if (!several() || !headline.level) return null;
  if (run.index === 0) return element("span", { class: "quiet small" }, "baseline");
  const comparison = comparisonOf(run);
  const said = comparison && comparison.verdicts[headline.level];
  if (!said) return null;
  const [kind, word] = PAIRED[said.toLowerCase()] || PAIRED.inconclusive;
  const made = badge("none", word);
  made.className = `badge ${kind}`;
  made.prepend(element("span", { class: "sign", "aria-hidden": "true" }, { better: "▲", worse: "▼" }[word] || "≈"));
  made.title = comparison.headlines[headline.level];
  return made;
}

function comparisonSentences() {
  const lines = page.document.runs.slice(1).map(run => {
    const comparison = comparisonOf(run);
    if (!comparison) return null;
    const grounds = ["task", "session"].flatMap(level => [
      comparison.headlines[level],
      ...(comparison.grounds[level] || []),
    ]);
    const words = comparison.headlines.task.replace(/^B is /, "").replace(/^INCONCLUSIVE/, "inconclusive");
    const head = [runName(run), " against ", runName(page.document.runs[0]), ": ", foreign(words, { limit: 400 })];
    const made = disclosure(head, () =>
      element(
        "ul",
        { class: "grounds" },
        grounds.filter(Boolean).map(it => element("li", {}, foreign(it, { limit: 600 }))),
      ),
    );
    return element(
      "li",
      {},
      comparison.banner ? element("p", { class: "notice warn" }, foreign(comparison.banner)) : null,
      made,
    );
  });
  return lines.some(Boolean) ? element("ul", { class: "comparison card" }, lines) : null;
}
