/*
What the scorers say of a task, and why, in plain words.

verdictKind(label) -> kind of badge       "correct": right; "error": wrong; null: unjudged; verdicts of live runs too
verdictWords(verdict) -> text             "right", "wrong", "right after errors", "not reached", "not scored"
renderVerdicts(task, scorers) -> span     a badge for each scorer, or one where they agree
renderEvidence(task, options) -> div      the evidence of each scorer that has some; null without any
blamedNodes(task) -> Set of indexes       nodes of the Reference that wrong calls stood nearest to
*/

const VERDICT_WORDS = {
  correct: ["right", "right"],
  error: ["wrong", "wrong"],
  wrong: ["wrong", "wrong"],
  correct_after_errors: ["warn", "right after errors"],
  not_reached: ["unjudged", "not reached"],
};

function verdictKind(label) {
  return (VERDICT_WORDS[label] || ["unjudged"])[0];
}

function verdictWords(verdict) {
  const label = verdictLabel(verdict);
  return (VERDICT_WORDS[label] || ["unjudged", "not scored"])[1];
}

function verdictLabel(verdict) {
  return verdict ? verdict.verdict || verdict.label || null : null;
}

function scorersOf(task, options) {
  const known = Object.keys(task.verdicts || {});
  const order = (options && options.scorers) || known;
  return order.filter(name => known.includes(name));
}

function renderVerdicts(task, options) {
  const names = scorersOf(task, options);
  if (!names.length) return element("span", { class: "verdicts" });
  const words = names.map(name => verdictWords(task.verdicts[name]));
  const agree = words.every(it => it === words[0]);
  const shown = agree ? names.slice(0, 1) : names;
  const badges = shown.map((name, i) => {
    const kind = verdictKind(verdictLabel(task.verdicts[name]));
    return badge(kind, agree ? words[i] : `${name}: ${words[i]}`);
  });
  return element("span", { class: "verdicts" }, badges);
}

function renderEvidence(task, options) {
  const names = scorersOf(task, options);
  const told = names.filter(
    name =>
      task.verdicts[name].evidence || (task.verdicts[name].reason && verdictLabel(task.verdicts[name]) !== "correct"),
  );
  if (!told.length && !task.failure) return null;
  const made = element("div", { class: "evidence-list" });
  if (task.failure)
    append(
      made,
      element(
        "div",
        { class: "notice warn" },
        element("strong", {}, "Not scored. "),
        foreign(task.failure, { limit: 800 }),
      ),
    );
  const groups = sameEvidence(told, task.verdicts);
  const agree =
    new Set(told.map(name => verdictKind(verdictLabel(task.verdicts[name])))).size === 1 &&
    told.length === names.length;
  const [first, ...others] = groups.map(group => evidenceOf(group, names, task.verdicts[group[0]], options || {}));
  if (!first) return made;
  if (!agree || !others.length) return append(made, first, others);
  const label = `In the words of ${groups.slice(1).flat().join(" and ")}`;
  return append(
    made,
    append(
      first,
      disclosure(label, () => others, { class: "other-words", "data-opened": "other words" }),
    ),
  );
}

/* Scorers whose evidence is about the same step, call and words are told together. */
function sameEvidence(names, verdicts) {
  const groups = new Map();
  for (const name of names) {
    const evidence = verdicts[name].evidence;
    const key = evidence
      ? jsonText([evidence.step, evidence.message, evidence.nearest])
      : `reason ${verdicts[name].reason}`;
    groups.set(key, [...(groups.get(key) || []), name]);
  }
  return [...groups.values()];
}

function evidenceOf(group, all, verdict, options) {
  const evidence = verdict.evidence;
  const who = group.length === all.length && all.length > 1 ? "Both scorers" : group.join(" and ");
  const heading = element(
    "p",
    { class: "evidence-who" },
    badge(verdictKind(verdictLabel(verdict)), verdictWords(verdict)),
    element(
      "span",
      {},
      ` ${all.length > 1 ? (all.length > 2 && group.length === all.length ? "All scorers" : who) : capital(who)}`,
    ),
  );
  const made = element("div", { class: `evidence ${verdictKind(verdictLabel(verdict))}` }, heading);
  if (!evidence)
    return append(made, element("p", { class: "evidence-message" }, foreign(verdict.reason, { limit: 1000 })));
  append(
    made,
    element(
      "p",
      { class: "evidence-message" },
      element("strong", {}, `Step ${evidence.step + 1}: `),
      foreign(evidence.message, { limit: 1200 }),
    ),
  );
  const rule = options.rules && options.rules[evidence.rule];
  append(
    made,
    element(
      "p",
      { class: "evidence-rule quiet" },
      rule ? `${rule} ` : null,
      element("code", {}, foreign(evidence.rule)),
    ),
  );
  const facts = evidenceFacts(evidence);
  if (facts.length) append(made, element("dl", { class: "facts" }, facts));
  return made;
}

function evidenceFacts(evidence) {
  const facts = [];
  if (evidence.allowed && evidence.allowed.length) {
    const batches = evidence.allowed.map(names => element("li", {}, batchWords(names)));
    facts.push(
      element(
        "div",
        {},
        element("dt", {}, "Allowed here"),
        element("dd", {}, element("ul", { class: "batches" }, batches)),
      ),
    );
  }
  const nearest = evidence.nearest;
  if (nearest) {
    const what =
      nearest.action === "call"
        ? [
            element("code", {}, foreign(nearest.name, { limit: 120 })),
            " ",
            nearest.arguments && jsonView(nearest.arguments, { lines: 40 }),
          ]
        : nearest.action === "ask"
          ? "a question to the user"
          : "the closing answer";
    facts.push(element("div", {}, element("dt", {}, "Nearest"), element("dd", {}, what)));
  }
  return facts;
}

const TEXT_ACTIONS = {
  ask_user_for_required_parameters: "ask the user",
  prepare_to_answer: "answer",
};

function batchWords(names) {
  const counts = new Map();
  for (const name of names) counts.set(name, (counts.get(name) || 0) + 1);
  return [...counts].flatMap(([name, count], i) => [
    i ? " + " : "",
    TEXT_ACTIONS[name] || element("code", {}, foreign(name, { limit: 80 })),
    count > 1 ? ` × ${count}` : "",
  ]);
}

function blamedNodes(task) {
  const blamed = new Set();
  for (const step of task.steps || []) {
    for (const call of step.calls || []) {
      if (call.verdict === "wrong" && isNumber(call.node)) blamed.add(call.node);
    }
  }
  const judge = task.verdicts && task.verdicts[task.judged_by];
  const nearest = judge && judge.evidence && judge.evidence.nearest;
  if (nearest) blamed.add(nearest.node);
  return blamed;
}
