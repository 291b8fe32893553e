/*
Elements, without markup in strings: nothing here, or in any other script, parses HTML.

element(name, attributes, ...children) -> HTMLElement     `on: {click: f}` listens; null and false are left out
drawing(name, attributes, ...children) -> SVGElement
append(parent, ...children) -> parent
badge(kind, text) -> span     kind: right, wrong, redundant, unjudged, warn, info, none
button(text, act, attributes) -> button
disclosure(summary, make, attributes) -> details     `make` gives the content when it is first opened
announce(text)     says it to screen readers
number(value), percent(value), seconds(value), plural(count, word, words) -> text
*/

const NOTHING = "–";

function element(name, attributes, ...children) {
  return furnish(document.createElement(name), attributes, children);
}

function drawing(name, attributes, ...children) {
  return furnish(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function furnish(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) made.addEventListener(event, listener);
    } else if (value !== null && value !== undefined && value !== false) {
      made.setAttribute(name, value === true ? "" : value);
    }
  }
  return append(made, ...children);
}

function append(parent, ...children) {
  for (const child of children.flat()) {
    if (child !== null && child !== undefined && child !== false) parent.append(child);
  }
  return parent;
}

const SIGNS = {
  right: "✓",
  wrong: "✗",
  redundant: "↺",
  unjudged: "·",
  warn: "!",
  info: "i",
  none: "",
};

function badge(kind, text) {
  const sign = SIGNS[kind] && element("span", { class: "sign", "aria-hidden": "true" }, SIGNS[kind]);
  return element("span", { class: `badge ${kind}` }, sign, text);
}

function button(text, act, attributes) {
  return element("button", { type: "button", class: "button", on: { click: act }, ...attributes }, text);
}

function disclosure(summary, make, attributes) {
  const { open, ...others } = attributes || {};
  const body = element("div", { class: "disclosed" });
  const made = element("details", others, append(element("summary"), summary), body);
  const fill = () => {
    if (made.open && !body.childNodes.length) append(body, make());
  };
  made.addEventListener("toggle", fill);
  made.fill = () => {
    made.open = true;
    fill();
  };
  if (open) made.fill();
  return made;
}

function announce(text) {
  let region = document.getElementById("announcements");
  if (!region) {
    region = element("div", { id: "announcements", class: "visually-hidden", role: "status" });
    document.body.append(region);
  }
  region.textContent = text;
}

function isNumber(value) {
  return typeof value === "number" && Number.isFinite(value);
}

function number(value, digits = 0) {
  if (!isNumber(value)) return NOTHING;
  return value.toLocaleString("en-GB", { maximumFractionDigits: digits, minimumFractionDigits: digits });
}

function percent(value, digits = 1) {
  return isNumber(value) ? (100 * value).toFixed(digits) : NOTHING;
}

function seconds(value) {
  if (!isNumber(value)) return NOTHING;
  if (value < 0.9995) return `${Math.round(1000 * value)} ms`;
  if (value < 59.95) return `${value.toFixed(value < 9.995 ? 2 : 1)} s`;
  const whole = Math.round(value);
  return whole < 3600
    ? `${Math.floor(whole / 60)} min ${whole % 60} s`
    : `${Math.floor(whole / 3600)} h ${Math.round((whole % 3600) / 60)} min`;
}

function plural(count, word, words = `${word}s`) {
  return `${number(count)} ${count === 1 ? word : words}`;
}

function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
