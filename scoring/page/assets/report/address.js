/*
The part of the address behind `#`: `session=KEY&task=N` opens a session; `verdict=wrong&label=...` filters the list;
a single word goes to that part of the page.

sessionAddress(key, task), listAddress() -> text beginning with #
readAddress() -> {session, task, place, filters}
*/

const NO_FILTERS = { verdict: "all", run: "", label: "", subtype: "", error: "", text: "" };
const filters = { ...NO_FILTERS };

function sessionAddress(key, task) {
  return `#session=${encodeURIComponent(key)}${task ? `&task=${task}` : ""}`;
}

function listAddress() {
  const given = Object.entries(filters).filter(([name, value]) => value !== NO_FILTERS[name]);
  return `#${new URLSearchParams(given).toString()}`;
}

function readAddress() {
  const text = location.hash.slice(1);
  if (text && !text.includes("=")) return { session: null, task: null, place: text, filters: null };
  const given = new URLSearchParams(text);
  const task = Number(given.get("task"));
  const found = Object.fromEntries(Object.keys(NO_FILTERS).map(name => [name, given.get(name) ?? NO_FILTERS[name]]));
  return {
    session: given.get("session"),
    task: Number.isInteger(task) && task > 0 ? task : null,
    place: null,
    filters: found,
  };
}
