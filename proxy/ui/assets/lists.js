/*
The lists: sessions, exchanges that were recorded, errors. Each row is a link to what it is about.

sessionItems(rows, chosen), exchangeItems(rows, chosen), errorItems(rows, chosen) -> items for `syncChildren`
linkTo({run, session, exchange, list}) -> address
refreshAges(root, now)
*/

function linkTo(place) {
  const parts = new URLSearchParams();
  for (const [name, value] of Object.entries({ ...(runInAddress() ? { run: runInAddress() } : {}), ...place })) {
    if (value) parts.set(name, value);
  }
  return `#${parts}`;
}

function runInAddress() {
  return new URLSearchParams(location.hash.slice(1)).get("run");
}

function sessionItems(rows, chosen) {
  return rows.map(row => ({
    key: row.id,
    sign: jsonText([row, row.id === chosen]),
    make: () => sessionRow(row, row.id === chosen),
  }));
}

function sessionRow(row, chosen) {
  const attempt = row.attempt > 1 ? element("span", { class: "chip" }, `attempt ${row.attempt}`) : null;
  return rowLink(
    linkTo({ session: row.id }),
    chosen,
    `session-row ${row.state}`,
    element("span", { class: "row-head" }, element("code", {}, foreign(row.name, { limit: 120 })), attempt, element("span", { class: "spacer" }), age(row)),
    element("span", { class: "row-tasks" }, taskDots(row), element("span", { class: "row-words" }, sessionWords(row))),
  );
}

function rowLink(href, chosen, kind, ...content) {
  return element("li", {}, element("a", { class: `row ${kind}`, href, "aria-current": chosen ? "true" : null }, content));
}

function age(row) {
  const at = row.state === "playing" ? row.opened_at : row.last_at;
  return element("time", { class: "quiet small", "data-at": at, "data-after": row.state === "playing" ? "" : " ago", title: new Date(1000 * at).toLocaleString("en-GB") });
}

function taskDots(row) {
  const kinds = row.tasks.map((task, i) => taskKind(row, task, i));
  return element(
    "span",
    { class: "dots" },
    kinds.map(([kind, words], i) => element("span", { class: `dot ${kind}`, title: `task ${i + 1}: ${words}` }, SIGNS[kind] || "")),
    element("span", { class: "visually-hidden" }, `Tasks: ${kinds.map(([, words]) => words).join(", ")}. `),
  );
}

function taskKind(row, task, i) {
  if (task.ending !== null) {
    if (task.right === true) return task.released === false ? ["right", "right, wrong as released"] : ["right", "right"];
    if (task.right === false) return ["wrong", "wrong"];
    return ["warn", task.ending === "not_reached" ? "not reached" : "not scored"];
  }
  return row.state === "playing" && row.task === i + 1 ? ["playing", "playing"] : ["unjudged", "not over"];
}

function sessionWords(row) {
  const right = row.tasks.filter(it => it.right === true).length;
  const errors = row.errors ? [element("span", { class: "row-errors" }, plural(row.errors, "error"))] : [];
  if (row.state === "over") return join([`${right} of ${row.tasks.length} right`, `${compact(row.input_tokens + row.output_tokens)} tokens`, ...errors]);
  if (row.state === "replaced") return "another attempt took over";
  if (row.state === "unfinished") return join([row.task ? `left in task ${row.task}` : "not begun", ...errors]);
  if (!row.task) return "opened";
  return join([`task ${row.task} of ${row.tasks.length}`, doing(row), ...errors]);
}

function doing(row) {
  if (row.asking_since === null) return "with the agent";
  return element("span", {}, "asks the LLM, ", element("time", { "data-at": row.asking_since }));
}

function join(parts) {
  return parts.flatMap((part, i) => (i ? [" · ", part] : [part]));
}

function exchangeItems(rows, chosen) {
  return rows.map(row => ({
    key: row.id,
    sign: jsonText([row, row.id === chosen]),
    make: () =>
      rowLink(
        linkTo({ exchange: row.id }),
        row.id === chosen,
        "exchange-row",
        element("span", { class: "row-head" }, exchangeBadge(row), element("code", {}, foreign(row.model || row.path, { limit: 60 })), element("span", { class: "spacer" }), since(row.started_at)),
        element("span", { class: "row-words clip" }, row.asked === null ? foreign(row.path, { limit: 100 }) : foreign(String(row.asked).replace(/\s+/g, " "), { limit: 160 })),
        element("span", { class: "row-words" }, exchangeFacts(row)),
      ),
  }));
}

function exchangeFailed(row) {
  return (row.finish_state !== "complete" && row.finish_state !== "pending") || row.status >= 400;
}

function exchangeBadge(row) {
  if (row.finish_state === "pending") return badge("info", "under way");
  const words = row.status ? `${row.status}` : "no answer";
  return badge(exchangeFailed(row) ? "wrong" : "right", row.finish_state === "complete" ? words : `${words}, ${row.finish_state.replaceAll("_", " ")}`);
}

function exchangeFacts(row) {
  const facts = [];
  if (isNumber(row.finished_at)) facts.push(seconds(row.finished_at - row.started_at));
  if (isNumber(row.input_tokens) || isNumber(row.output_tokens)) facts.push(`${number(row.input_tokens)} → ${number(row.output_tokens)} tokens`);
  if (row.stream) facts.push("streamed");
  return join(facts);
}

function since(at) {
  return element("time", { class: "quiet small", "data-at": at, "data-after": " ago", title: new Date(1000 * at).toLocaleString("en-GB") });
}

function errorItems(rows, chosen) {
  return rows.map(row => ({
    key: row.id,
    sign: jsonText([row, row.id === chosen]),
    make: () => {
      const where = row.session ? [element("code", {}, foreign(row.session, { limit: 80 })), row.turn ? `, turn ${row.turn}` : ""] : [foreign(row.path, { limit: 80 })];
      return rowLink(
        linkTo({ exchange: row.id, list: "errors" }),
        row.id === chosen,
        "error-row",
        element("span", { class: "row-head" }, exchangeBadge(row), element("span", {}, row.side === "provider" ? "the provider" : row.reason === "refused" ? "refused" : "recorded"), element("span", { class: "spacer" }), since(row.started_at)),
        element("span", { class: "row-words" }, where),
        element("span", { class: "row-words clip" }, foreign(row.error || row.error_type || "", { limit: 240 })),
      );
    },
  }));
}

function refreshAges(root, now) {
  for (const it of root.querySelectorAll("time[data-at]")) {
    const words = `${shortAge(now - Number(it.dataset.at))}${it.dataset.after || ""}`;
    if (it.textContent !== words) it.textContent = words;
  }
}

function shortAge(span) {
  const whole = Math.max(0, Math.round(span));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min`;
  if (whole < 86400) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
  return plural(Math.floor(whole / 86400), "day");
}
