/*
The page document and what is packed beside it: one element a session, opened when it is asked for.

page.document, page.scorer      the document, the scorer whose verdicts are shown
figure(run, entry) -> {value, n, successes, low, high} or null
openDetail(key), openRaw(key) -> promise of JSON
*/

const page = { document: null, scorer: null, sessions: new Map(), runs: new Map() };

async function readDocument() {
  const read = await openPacked("document");
  page.document = read;
  page.scorer = read.scorers[0];
  for (const row of read.sessions) page.sessions.set(row.key, row);
  read.runs.forEach((run, index) => page.runs.set(run.key, Object.assign(run, { index })));
}

function several() {
  return page.document.runs.length > 1;
}

function figure(run, entry, scorer = page.scorer) {
  const from = entry.of === "run" ? run.figures : (run.scorers[scorer] || { figures: {} }).figures;
  const found = from[entry.key];
  return found && found.n > 0 && isNumber(found.value) ? found : null;
}

function definition(name) {
  return page.document.definitions[name] || { title: name, unit: "count", text: "", better: null };
}

function group(entry) {
  return entry.group ?? "";
}

function seriesColour(index) {
  return `var(--series-${index % 8})`;
}

function runMark(run) {
  return element("span", {
    class: "run-mark",
    style: `background: ${seriesColour(run.index)}`,
    "aria-hidden": "true",
  });
}

function runName(run) {
  return element("span", { class: "run-name" }, runMark(run), foreign(run.title, { limit: 80 }));
}

/* A document that is still being read may not have come to the element yet. */
async function packedElement(id) {
  const found = document.getElementById(id);
  if (found || document.readyState !== "loading") return found;
  await new Promise(resolve => document.addEventListener("DOMContentLoaded", resolve, { once: true }));
  return document.getElementById(id);
}

async function openPacked(id) {
  const packed = await packedElement(id);
  if (!packed) return null;
  const text = atob(packed.textContent.trim());
  const bytes = Uint8Array.from(text, character => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

const openedRaw = new Map();

function openDetail(key) {
  return openPacked(`detail-${key}`);
}

function openRaw(key) {
  if (!openedRaw.has(key)) {
    openedRaw.clear();
    openedRaw.set(key, openPacked(`raw-${key}`));
  }
  return openedRaw.get(key);
}
