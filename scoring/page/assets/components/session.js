/*
One session: its tasks, each with verdicts, evidence, graph and conversation. Takes the session detail that report
and live page share (keys may be missing while it plays) and knows nothing of either.

renderSession(detail, options) -> article
updateSession(element, detail)      only what changed is made anew; what was opened stays open; nothing scrolls
options: {scorers: [names in order], rules: {id: words}, classes: {id: title}, exchanges: async ids => raw or null,
          headingLevel: 2, taskLink: number => address or null}
*/

function renderSession(detail, options) {
  const made = element("article", { class: "session" });
  made.options = {
    headingLevel: 2,
    scorers: null,
    rules: {},
    classes: {},
    exchanges: null,
    taskLink: null,
    ...options,
  };
  append(
    made,
    element("nav", { class: "task-nav", "aria-label": "Tasks of this session" }),
    element("div", { class: "tasks" }),
  );
  updateSession(made, detail);
  return made;
}

function updateSession(made, detail) {
  const [nav, tasks] = made.children;
  const options = made.options;
  made.detail = detail;
  made.classList.toggle("playing", detail.state === "playing");
  syncChildren(
    nav,
    (detail.tasks || []).map(task => taskTab(task, detail, options)),
  );
  const before = [];
  if ((detail.tools || []).length) before.push(toolItem(detail));
  syncChildren(tasks, [...before, ...(detail.tasks || []).map(task => taskItem(task, detail, options))]);
  for (const task of detail.tasks || [])
    updateTask(tasks.querySelector(`:scope > [data-part="task ${task.number}"]`), task, options);
}

function taskTab(task, detail, options) {
  const outcome = taskOutcome(task, detail, options);
  const sign = [outcome, task.label];
  return {
    key: `tab ${task.number}`,
    sign: jsonText(sign),
    make: () => {
      const content = [
        element("span", { class: `dot ${outcome.kind}`, "aria-hidden": "true" }, SIGNS[outcome.kind] || ""),
        element("span", {}, `Task ${task.number}`),
        element("span", { class: "visually-hidden" }, `, ${outcome.text}`),
      ];
      const go = event => {
        const found = event.currentTarget.closest(".session").querySelector(`[data-part="task ${task.number}"]`);
        if (!options.taskLink) event.preventDefault();
        found.scrollIntoView({ block: "start" });
      };
      const href = options.taskLink ? options.taskLink(task.number) : "#";
      return element("a", { class: "task-tab", href, on: { click: go } }, content);
    },
  };
}

function taskOutcome(task, detail, options) {
  const names = scorersOf(task, options);
  const kinds = names.map(name => verdictKind(verdictLabel(task.verdicts[name])));
  if (task.failure) return { kind: "warn", text: "not scored" };
  if (kinds.length && kinds.every(it => it === kinds[0]))
    return { kind: kinds[0], text: verdictWords(task.verdicts[names[0]]) };
  if (kinds.length)
    return { kind: "warn", text: names.map(name => `${name}: ${verdictWords(task.verdicts[name])}`).join(", ") };
  const begun = (task.steps || []).length || (task.turns || []).length;
  return detail.state === "playing" && begun && !task.ending
    ? { kind: "playing", text: "playing" }
    : { kind: "unjudged", text: begun ? "played" : "not begun" };
}

function toolItem(detail) {
  const made = () =>
    element(
      "div",
      {},
      disclosure(
        capital(`${plural(detail.tools.length, "tool")} offered`),
        () => element("ul", { class: "tool-list" }, detail.tools.map(toolLine)),
        { class: "tools-offered" },
      ),
    );
  return { key: "tools", sign: jsonText(detail.tools), make: made };
}

function toolLine(tool) {
  return element(
    "li",
    {},
    disclosure(
      [
        element("code", {}, foreign(tool.name, { limit: 120 })),
        tool.side_effects ? badge("info", "has side effects") : null,
        element("span", { class: "quiet" }, foreign(tool.description, { limit: 160 })),
      ],
      () => [foreignBlock(tool.description || "", { class: "quiet" }), jsonView(tool.parameters ?? null)],
    ),
  );
}

function taskItem(task, detail, options) {
  const label = `task ${task.number}`;
  return {
    key: label,
    sign: label,
    make: () => {
      const heading = element(
        `h${options.headingLevel}`,
        { class: "task-title", tabindex: "-1" },
        `Task ${task.number}`,
      );
      const [facts, talk, evidence, reference] = [
        "task-facts",
        "task-talk conversation",
        "task-evidence",
        "task-reference",
      ].map(name => element("div", { class: name }));
      return element(
        "section",
        { class: "task", "aria-label": `Task ${task.number}` },
        element("header", { class: "task-head" }, heading, facts),
        element(
          "div",
          { class: "task-body" },
          talk,
          element(
            "div",
            {
              class: "task-side",
              tabindex: "0",
              role: "group",
              "aria-label": `Evidence and reference of task ${task.number}`,
            },
            evidence,
            reference,
          ),
        ),
      );
    },
  };
}

function updateTask(section, task, options) {
  const blamed = blamedNodes(task);
  const [facts, evidence, reference, talk] = ["task-facts", "task-evidence", "task-reference", "task-talk"].map(
    name => section.querySelector(`:scope .${name}`),
  );
  const part = (place, key, value, make) => {
    const present = make !== null;
    syncChildren(place, present ? [{ key, sign: jsonText(value), make }] : []);
  };
  part(facts, "facts", [task.label, task.subtype, task.verdicts, task.seconds, task.error_class, task.failure], () =>
    taskFacts(task, options),
  );
  const told = renderEvidence(task, options);
  part(evidence, "evidence", [task.verdicts, task.failure], told ? () => told : null);
  part(
    reference,
    "reference",
    [task.reference, [...blamed], task.judged_by],
    task.reference ? () => referencePart(task, blamed) : null,
  );
  syncChildren(talk, conversationItems(task, options));
}

function taskFacts(task, options) {
  const made = element("div", { class: "chips" });
  append(made, renderVerdicts(task, options));
  if (task.label) append(made, element("span", { class: "chip" }, foreign(task.label)));
  if (task.subtype) append(made, element("span", { class: "chip" }, foreign(task.subtype)));
  if (task.error_class)
    append(
      made,
      element("span", { class: "chip wrong" }, foreign(options.classes[task.error_class] || task.error_class)),
    );
  const steps = (task.steps || []).length;
  const least = task.reference && task.reference.least;
  if (steps)
    append(
      made,
      element(
        "span",
        { class: "chip" },
        isNumber(least) ? `${plural(steps, "step")}, least ${least}` : plural(steps, "step"),
      ),
    );
  if (isNumber(task.seconds)) append(made, element("span", { class: "chip" }, seconds(task.seconds)));
  return made;
}

function referencePart(task, blamed) {
  const words = () => renderNodes(task.reference, blamed);
  return element(
    "div",
    { class: "reference" },
    element("div", { class: "label" }, "Reference: what should have happened"),
    task.judged_by
      ? element(
          "div",
          { class: "quiet small" },
          "Steps and nodes as ",
          element("code", {}, foreign(task.judged_by)),
          " judges them",
        )
      : null,
    renderGraph(task.reference, blamed),
    disclosure("In words, with arguments and observations", words, {
      "data-opened": "reference",
      class: "quiet-summary",
    }),
  );
}
