/*
Which sessions are listed. A session matches if one of its tasks matches all that is asked of a task; these tasks are
marked in its line.

matchingSessions() -> [{row, tasks: Set of task numbers}]
filterBar(changed) -> form
*/

const VERDICTS = [
  ["all", "All"],
  ["wrong", "Wrong"],
  ["right", "Right"],
  ["disagree", "Scorers disagree"],
  ["unscored", "Not scored"],
];

const VERDICT_TESTS = {
  all: () => true,
  wrong: task => scoreOf(task).label === "error",
  right: task => scoreOf(task).label === "correct",
  disagree: task => task.disagrees,
  unscored: task => Object.values(task.scores).some(score => score.label === null),
};

function scoreOf(task) {
  return task.scores[page.scorer] || { label: null, error_class: null, reason: null };
}

function taskTest() {
  const words = filters.text.toLowerCase().split(/\s+/).filter(Boolean);
  const verdict = VERDICT_TESTS[filters.verdict] || VERDICT_TESTS.all;
  return (task, row) => {
    if (!verdict(task)) return false;
    if (filters.label && task.label !== filters.label) return false;
    if (filters.subtype && task.subtype !== filters.subtype) return false;
    if (filters.error && scoreOf(task).error_class !== filters.error) return false;
    if (!words.length) return true;
    const text = searchText(task, row);
    return words.every(word => text.includes(word));
  };
}

const searchTexts = new WeakMap();

function searchText(task, row) {
  if (!searchTexts.has(task)) {
    const reasons = Object.values(task.scores).map(score => `${score.reason || ""} ${score.rule || ""}`);
    searchTexts.set(task, [row.session, row.scenario, task.user, task.label, ...reasons].join("\n").toLowerCase());
  }
  return searchTexts.get(task);
}

function matchingSessions() {
  const test = taskTest();
  const found = [];
  for (const row of page.document.sessions) {
    if (filters.run && row.run !== filters.run) continue;
    const tasks = new Set(row.tasks.filter(task => test(task, row)).map(task => task.number));
    if (tasks.size) found.push({ row, tasks });
  }
  return found;
}

function tasksByVerdict() {
  const counts = Object.fromEntries(VERDICTS.map(([name]) => [name, 0]));
  for (const row of page.document.sessions) {
    for (const task of row.tasks) for (const [name] of VERDICTS) if (VERDICT_TESTS[name](task)) counts[name] += 1;
  }
  return counts;
}

function filterBar(changed) {
  const tasks = page.document.sessions.flatMap(row => row.tasks);
  const among = values => [...new Set(values.filter(Boolean))].sort();
  const classes = Object.entries(page.document.error_classes).filter(([id]) =>
    tasks.some(task => Object.values(task.scores).some(score => score.error_class === id)),
  );
  const made = element(
    "form",
    {
      class: "filters",
      role: "search",
      "aria-label": "Filter the sessions",
      on: { submit: event => event.preventDefault() },
    },
    verdictChoice(changed),
    element(
      "div",
      { class: "filter-fields" },
      several()
        ? choice(
            "run",
            "Run",
            page.document.runs.map(run => [run.key, run.title]),
            changed,
          )
        : null,
      choice("label", "Label", among(tasks.map(task => task.label)), changed),
      choice("subtype", "Subtype", among(tasks.map(task => task.subtype)), changed),
      classes.length
        ? choice(
            "error",
            "Error class",
            classes.map(([id, { title }]) => [id, title]),
            changed,
          )
        : null,
      textField(changed),
      button("Clear", () => {
        Object.assign(filters, NO_FILTERS);
        showFilters(made);
        changed();
      }),
    ),
  );
  return made;
}

function verdictChoice(changed) {
  const counts = tasksByVerdict();
  const choices = VERDICTS.filter(([name]) => counts[name] || ["all", "wrong"].includes(name)).map(
    ([name, title]) => {
      const input = element("input", {
        type: "radio",
        name: "verdict",
        value: name,
        checked: filters.verdict === name,
        on: { change: () => choose("verdict", name, changed) },
      });
      return element(
        "label",
        { class: "segment" },
        input,
        element("span", {}, title, element("span", { class: "count" }, number(counts[name]))),
      );
    },
  );
  return element(
    "fieldset",
    { class: "segments" },
    element("legend", { class: "visually-hidden" }, "Verdict, with tasks"),
    choices,
  );
}

function choose(name, value, changed) {
  filters[name] = value;
  changed();
}

function choice(name, title, values, changed) {
  const options = values
    .map(it => (Array.isArray(it) ? it : [it, it]))
    .map(([value, text]) =>
      element("option", { value, selected: filters[name] === value }, visibleText(clipped(text, 60))),
    );
  const select = element(
    "select",
    { name, id: `filter-${name}`, on: { change: event => choose(name, event.target.value, changed) } },
    element("option", { value: "" }, "any"),
    options,
  );
  return element("div", { class: "field" }, element("label", { for: select.id }, title), select);
}

function textField(changed) {
  const input = element("input", {
    type: "search",
    name: "text",
    id: "filter-text",
    autocomplete: "off",
    spellcheck: "false",
    placeholder: "words, scenario, reason",
    on: { input: event => choose("text", event.target.value, changed) },
  });
  input.value = filters.text;
  return element("div", { class: "field grow" }, element("label", { for: input.id }, "Text"), input);
}

/* The fields say what the filters are, after these were changed elsewhere. */
function showFilters(form) {
  for (const field of form.elements) {
    if (!field.name || !(field.name in filters)) continue;
    if (field.type === "radio") field.checked = field.value === filters.verdict;
    else field.value = filters[field.name];
  }
}
