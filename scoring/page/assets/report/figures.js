/*
All figures of the runs in one table, with what each means, and what agents without a model get.
*/

function allFigures() {
  return disclosure("All figures, with their definitions", () => [figuresTable(), floorsTable()], {
    class: "card all-figures",
    id: "all-figures",
  });
}

function figuresTable() {
  const entries = new Map();
  for (const run of page.document.runs) {
    const own = (run.scorers[page.scorer] || { figures: {} }).figures;
    for (const [of, figures] of [
      ["scorer", own],
      ["run", run.figures],
    ]) {
      for (const key of Object.keys(figures)) {
        const found = key.match(/^([^[]+)(?:\[(.*)\])?$/s);
        if (found) entries.set(`${of} ${key}`, { key, of, name: found[1], group: found[2] ?? null });
      }
    }
  }
  const runs = page.document.runs;
  const head = ["figure", ...runs.flatMap(run => [several() ? run.title : "value", "n", "95 %"])];
  const rows = [...entries.values()].map(entry => {
    const { unit, text } = definition(entry.name);
    return [
      element("span", { title: text }, foreign(entryTitle(entry), { limit: 160 })),
      ...runs.flatMap(run => {
        const found = figure(run, entry);
        return [
          figureValue(found, unit, run.currency),
          found
            ? isNumber(found.successes)
              ? `${number(found.successes)}/${number(found.n)}`
              : number(found.n)
            : "0",
          found && isNumber(found.low) ? intervalText(found) : NOTHING,
        ];
      }),
    ];
  });
  return plainTable({ head, rows }, "All figures");
}

function floorsTable() {
  const rows = page.document.runs.flatMap(run =>
    (run.null_agents || []).map(agent => {
      const found = agent.figures.find(it => it.scorer === page.scorer);
      const value = name => (found && isNumber(found[name].value) ? `${percent(found[name].value)} %` : NOTHING);
      return [
        ...(several() ? [runName(run)] : []),
        agent.name,
        agent.bound || "",
        value("session_accuracy"),
        value("task_accuracy"),
        agent.text,
      ];
    }),
  );
  if (!rows.length) return null;
  const head = [...(several() ? ["run"] : []), "agent without a model", "bound", "sessions", "tasks", "what it does"];
  return element(
    "div",
    {},
    element("h3", {}, "Agents without a model"),
    plainTable({ head, rows }, "Agents without a model"),
  );
}
