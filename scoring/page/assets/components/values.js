/*
JSON values, pretty, with marks at paths.

jsonView(value, {marks, limit}) -> div      marks: Map of JSON path -> {kind, title}; a marked value is underlaid
jsonText(value) -> text                     compact, for labels
parsedJson(text) -> {value} or null         null: the text is no JSON
sameJson(a, b) -> boolean                   equal as JSON values, keys in any order
pathStep(path, key) -> path                 of the value under a key or an index, as faults write it

A text longer than `limit` characters (600) is clipped with a button; so is a value of more than 80 lines.
*/

const MOST_LINES = 80;
const DEEPEST = 40;

function parsedJson(text) {
  if (typeof text !== "string") return text === undefined || text === null ? null : { value: text };
  try {
    return { value: JSON.parse(text) };
  } catch {
    return null;
  }
}

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function sameJson(a, b) {
  if (Array.isArray(a)) return Array.isArray(b) && a.length === b.length && a.every((it, i) => sameJson(it, b[i]));
  if (isObject(a)) {
    const keys = Object.keys(a);
    return (
      isObject(b) &&
      keys.length === Object.keys(b).length &&
      keys.every(key => Object.hasOwn(b, key) && sameJson(a[key], b[key]))
    );
  }
  return a === b;
}

function jsonText(value) {
  try {
    return JSON.stringify(value) ?? "";
  } catch {
    return String(value);
  }
}

function pathStep(path, key) {
  if (typeof key === "number") return `${path}[${key}]`;
  return /^[\p{L}\p{Nl}_][\p{L}\p{Nl}\p{Mn}\p{Mc}\p{Nd}\p{Pc}]*$/u.test(key)
    ? `${path}.${key}`
    : `${path}[${JSON.stringify(key)}]`;
}

function jsonView(value, options) {
  const { marks = new Map(), limit = 600, path = "$", lines = MOST_LINES } = options || {};
  const made = element("div", { class: "json" });
  const left = { lines, limit, marks };
  append(made, jsonPieces(value, path, 0, left));
  if (left.lines < 0 && lines !== Infinity) {
    const more = button("Show all of it", () => {
      made.replaceWith(jsonView(value, { marks, limit, path, lines: Infinity }));
    });
    more.classList.add("small");
    append(made, "\n", more);
  }
  return made;
}

function jsonPieces(value, path, depth, left) {
  const mark = left.marks.get(path);
  const pieces = jsonBare(value, path, depth, left);
  if (!mark) return pieces;
  return [element("mark", { class: `marked ${mark.kind}`, title: mark.title || null }, pieces)];
}

function jsonBare(value, path, depth, left) {
  if (depth > DEEPEST) return ["… nested too deeply to be shown"];
  if (typeof value === "string") return [jsonString(value, left.limit)];
  if (Array.isArray(value)) {
    if (jsonIsShort(value)) return jsonShortList(value, path, left);
    return jsonMembers(
      "[",
      "]",
      value.map((it, i) => [null, it, pathStep(path, i)]),
      depth,
      left,
    );
  }
  if (isObject(value)) {
    const entries = Object.entries(value).map(([key, it]) => [key, it, pathStep(path, key)]);
    return entries.length ? jsonMembers("{", "}", entries, depth, left) : ["{}"];
  }
  return [element("span", { class: value === null ? "json-null" : "json-number" }, jsonText(value))];
}

function jsonIsShort(list) {
  return list.every(it => typeof it !== "object" || it === null) && jsonText(list).length < 60;
}

function jsonShortList(list, path, left) {
  const pieces = ["["];
  list.forEach((it, i) => pieces.push(i ? ", " : "", ...jsonPieces(it, pathStep(path, i), 0, left)));
  return [...pieces, "]"];
}

function jsonMembers(opening, closing, members, depth, left) {
  const pieces = [opening];
  const space = "  ".repeat(depth + 1);
  for (const [index, [key, value, path]] of members.entries()) {
    left.lines -= 1;
    if (left.lines < 0) {
      pieces.push(`\n${space}… ${number(members.length - index)} more`);
      break;
    }
    pieces.push(`\n${space}`);
    if (key !== null) pieces.push(foreign(key, { class: "json-key", limit: 200 }), ": ");
    pieces.push(...jsonPieces(value, path, depth + 1, left), index + 1 < members.length ? "," : "");
  }
  return [...pieces, `\n${"  ".repeat(depth)}${closing}`];
}

function jsonString(value, limit) {
  const made = element("bdi", { class: "foreign json-string" });
  const start = clipped(value, limit);
  append(made, '"', visiblePieces(start));
  if (start.length === value.length) return append(made, '"');
  const more = button(`Show all ${number(value.length)} characters`, () => {
    made.replaceChildren(...chunksOf(value).map(chunk => element("span", { class: "chunk" }, visiblePieces(chunk))));
  });
  more.classList.add("small");
  return append(made, "… ", more);
}
