/*
The head of the report: what was tested, and how, in a few words; what must be known before a figure is read.

topBar() -> [elements]     name, places, scorer, theme
masthead() -> header       title, one sentence, the runs
*/

function topBar() {
  const links = [
    ["#figures", "Figures"],
    ["#charts", "Charts"],
    ["#sessions", "Sessions"],
  ].map(([href, text]) => element("a", { href }, text));
  return element(
    "div",
    { class: "page top-bar" },
    element("a", { class: "product", href: "#" }, "wildproxy", element("span", { class: "quiet" }, " report")),
    element("nav", { "aria-label": "Parts of the report" }, links),
    element("span", { class: "spacer" }),
    scorerSwitch(),
    themeToggle(),
  );
}

function scorerSwitch() {
  const names = page.document.scorers;
  if (names.length < 2) return null;
  const choose = event => {
    page.scorer = event.target.value;
    document.dispatchEvent(new CustomEvent("scorerchange"));
    announce(`Verdicts of ${page.scorer}`);
  };
  const options = names.map(name => element("option", { value: name, selected: name === page.scorer }, name));
  return element(
    "div",
    { class: "scorer" },
    element("label", { for: "scorer" }, "Verdicts of"),
    element("select", { id: "scorer", on: { change: choose } }, options),
  );
}

function masthead() {
  const made = element("div", { class: "masthead" });
  append(
    made,
    element("h1", {}, foreign(page.document.title, { limit: 160 })),
    element("p", { class: "lead" }, leadSentence()),
  );
  append(made, several() ? runTable() : runFacts(page.document.runs[0]));
  for (const run of page.document.runs) append(made, runNotices(run));
  return made;
}

function leadSentence() {
  const [run] = page.document.runs;
  if (several())
    return ["Each run is compared with the first, ", foreign(run.title, { limit: 80 }), ", pair by pair."];
  const tasks = figure(run, { key: "task_accuracy", of: "scorer" });
  const sessions = figure(run, { key: "session_accuracy", of: "scorer" });
  if (!tasks) return "Nothing was scored in this run.";
  const whole = sessions
    ? ` ${number(sessions.successes)} of ${plural(sessions.n, "session")} without a mistake.`
    : " No session was scored as a whole.";
  return `${number(tasks.successes)} of ${plural(tasks.n, "task")} right.${whole}`;
}

/* [what, value] of a run, in the order of interest; what is not known is left out. */
function factsOf(run) {
  const { config, counts, modes, versions } = run;
  const goesOn = modes.on_mismatch === "continue" ? ", goes on after errors" : "";
  const scorers = page.document.scorers.map(name => `${name} ${(run.scorers[name] || {}).version || ""}`.trim());
  return [
    ["Model", run.model],
    ["Provider", config.provider],
    ["Agent", config.agent],
    [
      "History",
      modes.history_from ? `${modes.history}, kept by the ${modes.history_from}` : `${modes.history}${goesOn}`,
    ],
    ["Tools", modes.tools],
    [
      "Size",
      `${plural(counts.scenarios, "scenario")} × ${plural(counts.epochs, "epoch")}, ${plural(counts.tasks, "task")}`,
    ],
    ["Played", run.created_at ? dateWords(run.created_at) : null],
    ["Scorers", scorers.join(", ")],
    ["Version", Object.values(versions || {})[0]],
  ].filter(([, value]) => value !== null && value !== undefined && value !== "");
}

function dateWords(moment) {
  const date = new Date(1000 * moment);
  if (Number.isNaN(date.getTime())) return `${moment} s`; // A damaged log's: no reason to show nothing.
  return `${date.toISOString().slice(0, 16).replace("T", " ")} UTC`;
}

function runFacts(run) {
  const facts = factsOf(run).map(([what, value]) =>
    element("div", {}, element("dt", {}, what), element("dd", {}, foreign(factText(value), { limit: 120 }))),
  );
  return element("dl", { class: "run-facts" }, facts);
}

function factText(value) {
  return typeof value === "string" ? value : jsonText(value);
}

function runTable() {
  const facts = page.document.runs.map(run => new Map(factsOf(run)));
  const names = ["Model", "Provider", "Agent", "History", "Tools", "Size", "Played", "Scorers", "Version"];
  const texts = name => facts.map(it => (it.has(name) ? factText(it.get(name)) : NOTHING));
  const differing = names.filter(name => new Set(texts(name)).size > 1);
  const same = names.filter(name => !differing.includes(name) && texts(name)[0] !== NOTHING);
  const head = element(
    "tr",
    {},
    element("th", { scope: "col" }, "Run"),
    differing.map(name => element("th", { scope: "col" }, name)),
  );
  const rows = page.document.runs.map((run, i) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, runName(run)),
      differing.map(name => element("td", {}, foreign(texts(name)[i], { limit: 60 }))),
    ),
  );
  const shared = same.map(name =>
    element("div", {}, element("dt", {}, name), element("dd", {}, foreign(texts(name)[0], { limit: 120 }))),
  );
  return element(
    "div",
    { class: "runs" },
    element(
      "div",
      { class: "table-scroll", tabindex: "0", role: "group", "aria-label": "Runs" },
      element(
        "table",
        { class: "table" },
        element("caption", { class: "visually-hidden" }, "Where the runs differ"),
        element("thead", {}, head),
        element("tbody", {}, rows),
      ),
    ),
    element("dl", { class: "run-facts", "aria-label": "The same in all runs" }, shared),
  );
}

/* How many of the agent's writes are at fault, and behind that each of them with the way to it. */
function writesNotice({ made, lists }, name) {
  const [atFault, standing] = lists.map(({ title, entries }) => `${title}: ${number(entries.length)}`);
  if (!lists.some(({ entries }) => entries.length))
    return element("p", { class: "notice writes" }, name, `${atFault} of ${number(made)}`);
  const left = lists[1].entries.length ? `; ${standing.toLowerCase()}${lists[1].aside}` : "";
  const head = `${atFault} of ${number(made)}${lists[0].aside}${left}`;
  const list = () =>
    element(
      "ul",
      { class: "faulty-writes" },
      lists.flatMap(({ entries }) => entries).map(faultyWrite),
    );
  return element("div", { class: "notice warn writes" }, name, disclosure(head, list));
}

function faultyWrite({ key, task, place, kinds, told }) {
  return element(
    "li",
    {},
    element("a", { href: sessionAddress(key, task) }, foreign(place, { limit: 160 })),
    ": ",
    badge("warn", kinds),
    " ",
    foreign(told, { limit: 800 }),
  );
}

function runNotices(run) {
  const name = several() ? element("strong", {}, foreign(run.title, { limit: 80 }), ": ") : null;
  const lines = [run.banner, ...(run.warnings || [])].filter(Boolean);
  const left = (run.scorers[page.scorer] || {}).unscored;
  const notices = lines.map(line =>
    element("p", { class: "notice warn" }, name && name.cloneNode(true), foreign(line, { limit: 600 })),
  );
  if (left && left.tasks) {
    const text = `${number(left.tasks)} of ${plural(left.all_tasks, "task")} in no figure, for a reason that is not the agent's.`;
    notices.push(
      element(
        "p",
        { class: "notice warn" },
        name && name.cloneNode(true),
        text,
        " ",
        element("a", { href: "#infrastructure" }, "Which"),
      ),
    );
  }
  if (run.faulty_writes) notices.push(writesNotice(run.faulty_writes, name && name.cloneNode(true)));
  if (run.judged_by)
    notices.push(
      element("p", { class: "notice" }, name && name.cloneNode(true), "Judged by ", foreign(run.judged_by)),
    );
  return notices;
}
