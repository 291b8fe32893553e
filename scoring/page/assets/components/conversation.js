/*
The conversation of a task: what the user said, what the assistant did step by step, what it was told.

conversationItems(task, options) -> [{key, sign, make}]   turns and steps in the order in which they came
renderTurn(turn), renderStep(step, task, options), renderCall(call, position, step) -> elements
syncChildren(parent, items)                       brings the children up to date: those whose `sign` is the same stay
*/

function syncChildren(parent, items) {
  const old = new Map([...parent.children].map(child => [child.dataset.part, child]));
  let before = null;
  for (const { key, sign, make } of items) {
    let child = old.get(key);
    old.delete(key);
    if (!child || child.sign !== sign) {
      const made = make();
      made.dataset.part = key;
      made.sign = sign;
      if (child) {
        openAsBefore(child, made);
        child.replaceWith(made);
      }
      child = made;
    }
    const place = before ? before.nextSibling : parent.firstChild;
    if (place !== child) parent.insertBefore(child, place);
    before = child;
  }
  for (const gone of old.values()) gone.remove();
}

/* Parts are known by the path of their summaries, so that what a reader opened stays open while the rest grows. */
function openAsBefore(old, made) {
  const open = new Set([...old.querySelectorAll("details[open][data-opened]")].map(it => it.dataset.opened));
  for (const part of made.querySelectorAll("details[data-opened]")) {
    if (open.has(part.dataset.opened)) part.fill ? part.fill() : (part.open = true);
  }
}

function conversationItems(task, options) {
  const turns = task.turns && task.turns.length ? task.turns : [{ user: task.user, origin: "task" }];
  const items = [];
  const add = (key, value, make) => items.push({ key, sign: jsonText(value), make });
  let shown = 0;
  const showTurn = () => {
    const turn = turns[shown];
    add(`turn ${shown}`, turn, () => renderTurn(turn));
    shown += 1;
  };
  if (turns.length) showTurn();
  let ended = false;
  for (const step of task.steps || []) {
    while (
      shown < turns.length &&
      (isNumber(step.turn) && isNumber(turns[shown].turn) ? turns[shown].turn <= step.turn : ended)
    ) {
      ended = false;
      showTurn();
    }
    add(`step ${step.number}`, step, () => renderStep(step, task, options));
    ended = !(step.calls || []).length;
  }
  while (shown < turns.length) showTurn();
  if ((task.standing || []).length) add("standing", task.standing, () => renderStanding(task.standing));
  const end = endingWords(task);
  if (end) add("end", end, () => element("p", { class: "ending quiet" }, end));
  return items;
}

const ENDINGS = {
  closed: null,
  stopped: "A step was wrong, and the task was ended there.",
  agent_stopped: "The agent left before the task was over.",
  infrastructure: "The task ended by a failure that is not the agent's.",
  not_reached: "The session ended before this task.",
};

function endingWords(task) {
  return ENDINGS[task.ending] || null;
}

function renderTurn(turn) {
  const from = turn.origin === "scripted reply" ? "User, answering the question" : "User";
  return element(
    "div",
    { class: "turn user" },
    element("div", { class: "who" }, from),
    foreignBlock(turn.user, { class: "words" }),
  );
}

const STEP_WORDS = {
  calls: "calls",
  ask: "asks",
  close: "answers",
  text: "text where none was due",
  nothing: "empty reply",
};

function renderStep(step, task, options) {
  const calls = step.calls || [];
  const kind = step.kind || (calls.length ? "calls" : step.text ? null : "nothing");
  const words =
    kind === "calls" ? `calls ${calls.length === 1 ? "a tool" : `${calls.length} tools`}` : STEP_WORDS[kind];
  const head = element(
    "div",
    { class: "step-head" },
    element("span", { class: "who" }, `Step ${step.number}`),
    words && element("span", { class: "quiet" }, words),
    step.verdict && badge(step.verdict, step.verdict === "unjudged" ? "not judged" : step.verdict),
    element("span", { class: "spacer" }),
    stepCosts(step),
  );
  const made = element("div", { class: `turn step ${step.verdict || "unjudged"}` }, head);
  if (step.reasoning) {
    append(
      made,
      disclosure("Reasoning", () => foreignBlock(step.reasoning, { class: "words quiet" }), {
        "data-opened": "reasoning",
        class: "reasoning",
      }),
    );
  }
  if (step.text) append(made, foreignBlock(step.text, { class: "words" }));
  if (!step.text && !calls.length) append(made, element("p", { class: "quiet" }, "Neither a text nor a call."));
  calls.forEach((call, i) =>
    append(made, renderCall({ ...call, expected: expectedOf(call, task) }, i + 1, calls.length)),
  );
  const ids = step.exchanges || [];
  if (options && options.exchanges && ids.length) append(made, rawExchanges(ids, options));
  return made;
}

/* What a right call is measured against is that of its node. */
function expectedOf(call, task) {
  if (call.expected || call.verdict !== "right" || !isNumber(call.node)) return call.expected;
  const node = ((task && task.reference && task.reference.nodes) || []).find(it => it.index === call.node);
  return node ? node.arguments : null;
}

function stepCosts(step) {
  const costs = [];
  const tell = (text, title) => costs.push(element("span", { title }, text));
  if (isNumber(step.input_tokens) || isNumber(step.output_tokens)) {
    tell(
      `${number(step.input_tokens)} → ${number(step.output_tokens)} tokens`,
      "tokens of the prompt and of the answer",
    );
  }
  if (isNumber(step.seconds)) tell(seconds(step.seconds), "from sending the request to the end of the answer");
  if (isNumber(step.time_to_first_chunk))
    tell(`first after ${seconds(step.time_to_first_chunk)}`, "until the first event of the stream");
  if (step.tries > 1) tell(`${step.tries} tries`, "requests to the provider, failed ones included");
  return costs.length ? element("span", { class: "costs" }, costs) : null;
}

function renderCall(call, position, of) {
  const verdict = call.verdict || "unjudged";
  const head = element(
    "div",
    { class: "call-head" },
    of > 1 ? element("span", { class: "quiet" }, `${position}.`) : null,
    element("code", { class: "call-name" }, foreign(call.name || "without a name", { limit: 120 })),
    badge(verdict, verdict === "unjudged" ? "not judged" : verdict),
    isNumber(call.node)
      ? element("span", { class: "quiet" }, `${verdict === "right" ? "node" : "nearest to node"} ${call.node + 1}`)
      : null,
    Object.entries(call.also || {}).map(([name, says]) => badge("info", `${name}: ${says}`)),
    (call.at_fault || []).map(({ kind }) => badge("warn", kind)),
  );
  const made = element("div", { class: `call ${verdict}` }, head);
  const told = (call.faults || []).some(fault => fault.message === call.message);
  if (call.message && verdict !== "right" && !told)
    append(made, element("p", { class: "call-message" }, foreign(call.message, { limit: 800 })));
  append(made, renderWriteFaults(call), renderArguments(call), renderObservation(call));
  return made;
}

/* What is wrong with a call that changes something, beyond what the verdict says of it. */
function renderWriteFaults(call) {
  const why = (call.at_fault || []).map(fault => fault.why);
  return why.length ? element("p", { class: "write-fault" }, foreign(`This write ${why.join(", and ")}.`)) : null;
}

function renderStanding(standing) {
  return element(
    "div",
    { class: "standing" },
    standing.map(told =>
      element("p", { class: "write-fault" }, badge("warn", "stale write"), " ", foreign(told, { limit: 800 })),
    ),
  );
}

const OUTCOMES = {
  redundant: "told again",
  unknown_tool: "told that there is no such tool",
  invalid_arguments: "told that the arguments are invalid",
  no_data: "told that there is no data",
};

function renderObservation(call) {
  if (call.observation === null || call.observation === undefined) {
    return element("p", { class: "quiet small observation-none" }, "Nothing was told.");
  }
  const text = typeof call.observation === "string" ? call.observation : jsonText(call.observation);
  const summary = [
    element("span", { class: "label" }, "Observation"),
    OUTCOMES[call.outcome] && element("span", { class: "quiet" }, OUTCOMES[call.outcome]),
    foreign(text.slice(0, 400).replace(/\s+/g, " "), { limit: 140, class: "preview" }),
  ].filter(Boolean);
  return disclosure(summary, () => observationView(call.observation), {
    class: "observation",
    "data-opened": `observation ${call.name}`,
  });
}
