/*
Text of others: a model, a scenario, an agent. It is shown as text, isolated from the direction of what stands
around it; what would not be seen, or would be obeyed (controls, escapes, bidirectional formats), is shown as a sign.

foreign(text, {limit}) -> bdi            in a line; behind `limit` characters (400) an ellipsis
foreignBlock(text, {limit, quiet}) -> div   of many lines; behind `limit` characters (3000) a button shows all
visiblePieces(text) -> [string or span]  for a text that another element isolates
*/

const UNSEEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0]|(?<![\p{Extended_Pictographic}\ufe0f\u{1f3fb}-\u{1f3ff}])\u200d|(?!\u200d)\p{Cf}|\p{Cs}|\p{Co}|[\u2028\u2029]/gu;
const CONTROLS =
  "NUL SOH STX ETX EOT ENQ ACK BEL BS HT LF VT FF CR SO SI DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC FS GS RS US".split(
    " ",
  );
const UNSEEN_NAMES = {
  0x200b: "zero width space",
  0x200e: "left-to-right mark",
  0x200f: "right-to-left mark",
  0x202a: "left-to-right embedding",
  0x202b: "right-to-left embedding",
  0x202c: "end of direction",
  0x202d: "left-to-right override",
  0x202e: "right-to-left override",
  0x2066: "left-to-right isolate",
  0x2067: "right-to-left isolate",
  0x2068: "isolate",
  0x2069: "end of isolate",
  0xfeff: "byte order mark",
};
const MOST_SIGNS = 2000;
const CHUNK = 20000;

function visiblePieces(text) {
  const pieces = [];
  let from = 0;
  let signs = 0;
  let last = null;
  const normal = text.replace(/\r\n/g, "\n");
  for (const found of normal.matchAll(UNSEEN)) {
    const between = normal.slice(from, found.index);
    from = found.index + found[0].length;
    if (last && !between && last.character === found[0]) {
      last.times += 1;
      continue;
    }
    if (between) pieces.push(between);
    last = { character: found[0], times: 1 };
    pieces.push(last);
    signs += 1;
  }
  if (from < normal.length) pieces.push(normal.slice(from));
  return pieces.map(piece => (typeof piece === "string" ? piece : unseenSign(piece, signs <= MOST_SIGNS)));
}

function unseenSign({ character, times }, asElement) {
  const code = character.codePointAt(0);
  const hex = `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
  const shown = CONTROLS[code] || (code === 0x7f ? "DEL" : hex);
  const text = times > 1 ? `${shown}×${times}` : shown;
  if (!asElement) return text;
  const name = UNSEEN_NAMES[code];
  return element("span", { class: "unseen", title: name ? `${hex}, ${name}` : hex }, text);
}

function foreign(text, options) {
  const { limit = 400, ...attributes } = options || {};
  const whole = String(text ?? "");
  const start = clipped(whole, limit);
  const made = element(
    "bdi",
    { ...attributes, class: `foreign ${attributes.class || ""}`.trim() },
    visiblePieces(start),
  );
  return start.length < whole.length ? append(made, "…") : made;
}

function foreignBlock(text, options) {
  const { limit = 3000, ...attributes } = options || {};
  const whole = String(text ?? "");
  const made = element("div", { ...attributes, class: `foreign block ${attributes.class || ""}`.trim() });
  const start = clipped(whole, limit);
  if (start.length === whole.length) return append(made, visiblePieces(whole));
  const more = button(`Show all ${number(whole.length)} characters`, () => {
    made.replaceChildren(...chunksOf(whole).map(chunk => element("div", { class: "chunk" }, visiblePieces(chunk))));
    made.tabIndex = -1;
    made.focus({ preventScroll: true });
  });
  more.classList.add("small");
  return append(made, visiblePieces(start), "… ", more);
}

function clipped(text, limit) {
  if (text.length <= limit) return text;
  const splits = text.charCodeAt(limit - 1);
  return text.slice(0, splits >= 0xd800 && splits < 0xdc00 ? limit - 1 : limit);
}

/* Parts that the browser lays out only when they are scrolled to; broken at the end of a line where there is one near. */
function chunksOf(text) {
  const chunks = [];
  for (let from = 0; from < text.length;) {
    const part = clipped(text.slice(from, from + CHUNK + 1), CHUNK);
    const lineEnd = from + part.length < text.length ? part.lastIndexOf("\n") : -1;
    const length = lineEnd > CHUNK / 2 ? lineEnd + 1 : part.length;
    chunks.push(part.slice(0, lineEnd > CHUNK / 2 ? lineEnd : length));
    from += length;
  }
  return chunks;
}
