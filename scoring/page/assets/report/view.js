/*
One session, in place of the overview: where it stands, its neighbours in the list, the same scenario elsewhere, and
the session itself.

sessionView(key, task) -> promise of section
*/

async function sessionView(key) {
  const row = page.sessions.get(key);
  const made = element("section", { class: "page view", "aria-labelledby": "session-title" });
  if (!row) {
    return append(
      made,
      viewBar(null),
      element("h1", { id: "session-title", tabindex: "-1" }, "No such session"),
      element("p", {}, "There is no session ", foreign(key, { limit: 80 }), " in this report."),
    );
  }
  append(made, viewBar(row), viewHead(row));
  const detail = await openDetail(key);
  if (!detail)
    return append(made, element("p", { class: "notice warn" }, "What happened in this session is not in this file."));
  append(made, viewFacts(row, detail));
  const exchanges = row.raw ? () => openRaw(key) : null;
  const classes = Object.fromEntries(Object.entries(page.document.error_classes).map(([id, it]) => [id, it.title]));
  const order = [page.scorer, ...page.document.scorers.filter(name => name !== page.scorer)];
  const options = {
    scorers: order,
    rules: page.document.rules,
    classes,
    exchanges,
    headingLevel: 2,
    taskLink: number => sessionAddress(key, number),
  };
  return append(made, renderSession(detail, options));
}

function viewBar(row) {
  const at = row ? page.listed.indexOf(row.key) : -1;
  const step = (offset, text, name) => {
    const key = at < 0 ? null : page.listed[at + offset];
    return key
      ? element("a", { class: "button", href: sessionAddress(key), rel: name, "data-step": name }, text)
      : element("span", { class: "button disabled", "aria-hidden": "true" }, text);
  };
  return element(
    "div",
    { class: "view-bar" },
    element("a", { class: "button back", href: listAddress() }, "← All sessions"),
    element("span", { class: "spacer" }),
    row && at >= 0
      ? element("span", { class: "quiet small" }, `${number(at + 1)} of ${number(page.listed.length)}`)
      : null,
    step(-1, "← Previous", "prev"),
    step(1, "Next →", "next"),
  );
}

function viewHead(row) {
  const run = page.runs.get(row.run);
  const same = page.document.sessions.filter(it => it.scenario === row.scenario && it.key !== row.key).slice(0, 12);
  return element(
    "div",
    { class: "view-head" },
    element("h1", { id: "session-title", tabindex: "-1" }, foreign(row.session, { limit: 120 })),
    several() ? runName(run) : null,
    same.length
      ? element(
          "div",
          { class: "elsewhere" },
          element("span", { class: "label" }, "The same scenario"),
          same.map(sameLink),
        )
      : null,
  );
}

function sameLink(row) {
  const run = page.runs.get(row.run);
  const signs = row.tasks.map(task => {
    const label = scoreOf(task).verdict || scoreOf(task).label;
    const kind = label === null ? "warn" : verdictKind(label);
    return element("span", { class: `mini ${kind}`, "aria-hidden": "true" }, SIGNS[kind]);
  });
  const right = row.tasks.filter(task => scoreOf(task).label === "correct").length;
  return element(
    "a",
    { class: "chip", href: sessionAddress(row.key) },
    several() ? runName(run) : null,
    ` epoch ${row.epoch} `,
    signs,
    element("span", { class: "visually-hidden" }, `, ${right} of ${row.tasks.length} right`),
  );
}

function viewFacts(row, detail) {
  const sum = name =>
    row.tasks.reduce((total, task) => (total === null || !isNumber(task[name]) ? null : total + task[name]), 0);
  const [input, output, took, cost] = ["input_tokens", "output_tokens", "seconds", "cost"].map(sum);
  const run = page.runs.get(row.run);
  const facts = [
    detail.date ? `Current date ${detail.date}` : null,
    `Epoch ${row.epoch}`,
    detail.attempt > 1 ? `Attempt ${detail.attempt}` : null,
    plural(
      row.tasks.reduce((total, task) => total + task.steps, 0),
      "step",
    ),
    input === null ? null : `${number(input)} → ${number(output)} tokens`,
    took === null ? null : seconds(took),
    cost ? `${cost.toPrecision(3)} ${run.currency || ""}` : null,
    detail.state === "over" ? null : `State: ${detail.state}`,
  ].filter(Boolean);
  const findings = (run.findings || []).filter(it => it.session === row.session);
  return element(
    "div",
    { class: "view-facts" },
    element(
      "div",
      { class: "chips" },
      facts.map(text => element("span", { class: "chip" }, foreign(text, { limit: 120 }))),
    ),
    findings.map(it =>
      element("p", { class: "notice warn" }, `Turn ${it.turn}: `, foreign(it.detail, { limit: 600 })),
    ),
  );
}
