/*
The arguments of a call beside those that were expected, name by name, the difference marked.

renderArguments(call) -> div      call: {arguments: raw text, expected: {..} or null, faults: [{rule, path, message, expected, actual}]}

Each name has a line: what was sent, what was expected. Equal values are told once. Values that differ without a
fault are told to be taken as equal (a date in other words, a default that was left out).
*/

function renderArguments(call) {
  const made = element("div", { class: "arguments" });
  const faults = call.faults || [];
  const sent = parsedJson(call.arguments);
  const atRoot = faults.filter(fault => fault.path === "$" || !isObject(sent && sent.value));
  if (!sent || !isObject(sent.value)) {
    append(made, argumentsUnreadable(call, sent));
  } else {
    const names = argumentNames(sent.value, call.expected);
    if (names.length) append(made, argumentsTable(names, sent.value, call.expected, faults));
    else append(made, element("p", { class: "quiet" }, "No arguments."));
  }
  if (atRoot.length) append(made, faultList(atRoot));
  return made;
}

function argumentsUnreadable(call, sent) {
  const raw = call.arguments === null || call.arguments === undefined ? null : String(call.arguments);
  const parts = [
    element("h6", {}, sent ? "Sent, no JSON object" : "Sent, cannot be read as JSON"),
    raw === null ? element("p", { class: "quiet" }, "nothing") : foreignBlock(raw, { class: "code" }),
  ];
  if (isObject(call.expected)) parts.push(element("h6", {}, "Expected"), jsonView(call.expected));
  return parts;
}

function argumentNames(sent, expected) {
  return [...new Set([...Object.keys(isObject(expected) ? expected : {}), ...Object.keys(sent)])];
}

function argumentsTable(names, sent, expected, faults) {
  const compared = isObject(expected);
  const rows = names.map(name => argumentRow(name, sent, compared ? expected : null, faults));
  const titles = ["argument", "sent", compared && "expected"].filter(Boolean);
  const head = titles.map(title => element("div", { role: "columnheader" }, title));
  return element(
    "div",
    { class: `argument-rows ${compared ? "compared" : ""}`, role: "table", "aria-label": "Arguments" },
    element("div", { class: "argument-row head", role: "row" }, head),
    rows,
  );
}

function argumentRow(name, sent, expected, faults) {
  const path = pathStep("$", name);
  const own = faults.filter(fault => isBelow(fault.path, path));
  const isSent = Object.hasOwn(sent, name);
  const cells = [element("div", { role: "rowheader", class: "argument-name" }, foreign(name, { limit: 120 }))];
  const same =
    expected && isSent && Object.hasOwn(expected, name) && sameJson(sent[name], expected[name]) && !own.length;
  if (same || !expected) {
    cells.push(argumentCell("sent", own, isSent, sent[name], path, ""));
    if (same) cells.push(element("div", { class: "argument-cell expected equal", role: "cell" }, "= as expected"));
  } else {
    const isExpected = Object.hasOwn(expected, name);
    cells.push(argumentCell("sent", own, isSent, sent[name], path, "left out"));
    cells.push(argumentCell("expected", own, isExpected, expected[name], path, "nothing"));
  }
  const kind = own.length ? "wrong" : same ? "same" : expected ? "taken" : "plain";
  if (own.length) cells.push(element("div", { class: "argument-faults", role: "cell" }, faultList(own)));
  else if (kind === "taken") cells.push(element("div", { class: "argument-faults", role: "cell" }, takenNote()));
  return element("div", { class: `argument-row ${kind}`, role: "row" }, cells);
}

function takenNote() {
  return element("p", { class: "quiet small" }, "≈ written otherwise, taken as equal");
}

function isBelow(path, root) {
  return path === root || (path.startsWith(root) && (path[root.length] === "." || path[root.length] === "["));
}

function argumentCell(side, faults, is, value, path, absent) {
  const marks = new Map(
    faults
      .filter(it => it.path !== path)
      .map(it => [it.path, { kind: side === "sent" ? "wrong" : "right", title: it.message }]),
  );
  const shown = is ? jsonView(value, { marks, path }) : element("span", { class: "quiet" }, absent);
  const kind = faults.length ? (side === "sent" ? "wrong" : "right") : "";
  const sign = kind && element("span", { class: "sign", "aria-hidden": "true" }, SIGNS[kind]);
  return element(
    "div",
    { class: `argument-cell ${side} ${kind}`, role: "cell" },
    element("span", { class: "side" }, side),
    sign,
    shown,
  );
}

function withoutPath({ path, message }) {
  const text = message || "";
  return text.startsWith(`${path}: `) ? text.slice(path.length + 2) : text;
}

function faultList(faults) {
  const items = faults.map(fault =>
    element(
      "li",
      {},
      element("code", { class: "path" }, foreign(fault.path, { limit: 200 })),
      " ",
      foreign(withoutPath(fault), { limit: 800 }),
      fault.rule && element("span", { class: "rule" }, foreign(fault.rule)),
      fault.coercible && element("span", { class: "quiet" }, " Only the type is wrong."),
    ),
  );
  return element("ul", { class: "faults" }, items);
}
