/*
The Reference of a task as a graph: what waits for what, and what of it was done.

renderGraph(reference, blamed) -> figure     reference: {nodes: [{index, kind, name, dependencies, done, ...}]}
                                              blamed: indexes of nodes that a wrong call stood nearest to
renderNodes(reference, blamed) -> list        the same in words, with arguments and observations
nodeState(node, blamed) -> {kind, text}       right: done; wrong: tried; none: not done

Nodes stand in columns: each one column behind the last that it waits for. The state is told by colour, by the
line (full, heavy, dashed), by a sign and in words.
*/

const NODE = { width: 176, height: 46, across: 44, down: 14, margin: 6 };
const NAME_CHARACTERS = 21;

function nodeState(node, blamed) {
  if (node.done) {
    const call = node.done.call ? `, call ${node.done.call}` : "";
    return { kind: "right", text: `done in step ${node.done.step}${call}` };
  }
  return blamed.has(node.index) ? { kind: "wrong", text: "went wrong here" } : { kind: "none", text: "not done" };
}

function nodeTitle(node) {
  if (node.kind === "ask") return "ask the user";
  if (node.kind === "close") return "answer";
  return node.name || "a call";
}

function nodeColumns(nodes) {
  const depths = new Map();
  const byIndex = new Map(nodes.map(node => [node.index, node]));
  const depth = (index, on) => {
    if (depths.has(index)) return depths.get(index);
    if (on.has(index)) return 0;
    on.add(index);
    const before = (byIndex.get(index).dependencies || []).filter(it => byIndex.has(it));
    const found = before.length ? 1 + Math.max(...before.map(it => depth(it, on))) : 0;
    depths.set(index, found);
    return found;
  };
  const columns = [];
  for (const node of nodes) {
    const column = depth(node.index, new Set());
    (columns[column] = columns[column] || []).push(node);
  }
  return columns.filter(Boolean);
}

/* Within a column nodes stand in the order of the middle of what they wait for, so that few lines cross. */
function placedNodes(nodes) {
  const columns = nodeColumns(nodes);
  const tallest = Math.max(...columns.map(column => column.length));
  const places = new Map();
  columns.forEach((column, x) => {
    const middle = node => {
      const rows = (node.dependencies || []).map(it => places.get(it)).filter(Boolean).map(place => place.y);
      return rows.length ? rows.reduce((sum, y) => sum + y, 0) / rows.length : 0;
    };
    const ordered = column.map(node => [middle(node), node]).sort((a, b) => a[0] - b[0]);
    const above = ((tallest - column.length) * (NODE.height + NODE.down)) / 2;
    ordered.forEach(([, node], y) => {
      places.set(node.index, {
        node,
        x: NODE.margin + x * (NODE.width + NODE.across),
        y: NODE.margin + above + y * (NODE.height + NODE.down),
      });
    });
  });
  return {
    places,
    width: columns.length * (NODE.width + NODE.across) - NODE.across + 2 * NODE.margin,
    height: tallest * (NODE.height + NODE.down) - NODE.down + 2 * NODE.margin,
  };
}

function renderGraph(reference, blamed = new Set()) {
  const nodes = (reference && reference.nodes) || [];
  if (!nodes.length) return element("p", { class: "quiet" }, "No reference.");
  const { places, width, height } = placedNodes(nodes);
  const lines = [];
  for (const { node, x, y } of places.values()) {
    for (const before of node.dependencies || []) {
      const from = places.get(before);
      if (from) lines.push(graphLine(from, { x, y }, from.node.done && node.done));
    }
  }
  const boxes = [...places.values()].map(place => graphBox(place, nodeState(place.node, blamed)));
  const picture = drawing(
    "svg",
    { class: "graph", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": graphWords(nodes, blamed) },
    lines,
    boxes,
  );
  return element("div", { class: "graph-scroll", tabindex: "0", role: "group", "aria-label": "Reference graph" }, picture);
}

function graphWords(nodes, blamed) {
  const words = nodes.map(node => {
    const waits = (node.dependencies || []).map(it => it + 1).join(", ");
    const after = waits ? `, after ${waits}` : "";
    return `${node.index + 1}: ${clipped(nodeTitle(node), 80)}${after}, ${nodeState(node, blamed).text}`;
  });
  return `Reference: ${words.slice(0, 40).join("; ")}.`;
}

function graphLine(from, to, done) {
  const [x1, y1] = [from.x + NODE.width, from.y + NODE.height / 2];
  const [x2, y2] = [to.x - 5, to.y + NODE.height / 2];
  const bend = Math.max(18, (x2 - x1) / 2);
  const kind = done ? "right" : "none";
  return drawing(
    "g",
    { class: `edge ${kind}` },
    drawing("path", { d: `M${x1} ${y1} C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}` }),
    drawing("path", { class: "head", d: `M${x2 - 3} ${y2 - 4} L${x2 + 4} ${y2} L${x2 - 3} ${y2 + 4} Z` }),
  );
}

function graphBox({ node, x, y }, state) {
  const title = nodeTitle(node);
  const short = [...title].slice(0, NAME_CHARACTERS).join("") + ([...title].length > NAME_CHARACTERS ? "…" : "");
  const radius = node.kind === "close" ? NODE.height / 2 : node.kind === "ask" ? 14 : 5;
  return drawing(
    "g",
    { class: `node ${state.kind} ${node.kind}`, transform: `translate(${x} ${y})` },
    drawing("title", {}, visibleText(`${node.index + 1}. ${clipped(title, 300)}: ${state.text}`)),
    drawing("rect", { width: NODE.width, height: NODE.height, rx: radius }),
    drawing("text", { class: "sign", x: 13, y: 29 }, state.kind === "none" ? "○" : SIGNS[state.kind]),
    drawing("text", { class: "name", x: 31, y: 20 }, visibleText(short)),
    drawing("text", { class: "state", x: 31, y: 35 }, state.text),
  );
}

function visibleText(text) {
  return visiblePieces(text)
    .map(piece => (typeof piece === "string" ? piece : piece.textContent))
    .join("");
}

function renderNodes(reference, blamed = new Set()) {
  const items = ((reference && reference.nodes) || []).map(node => {
    const state = nodeState(node, blamed);
    const waits = (node.dependencies || []).map(it => it + 1).join(", ");
    return element(
      "li",
      { class: "reference-node" },
      element(
        "div",
        { class: "reference-node-head" },
        element("span", { class: "index" }, node.index + 1),
        node.kind === "call" ? element("code", {}, foreign(nodeTitle(node), { limit: 120 })) : element("strong", {}, capital(nodeTitle(node))),
        badge(state.kind === "none" ? "unjudged" : state.kind, state.text),
        waits && element("span", { class: "quiet" }, `waits for ${waits}`),
      ),
      nodeContent(node),
    );
  });
  return element("ol", { class: "reference-nodes" }, items);
}

function nodeContent(node) {
  const parts = [];
  if (node.kind === "call") {
    parts.push(labelled("arguments", jsonView(node.arguments || {})));
    for (const other of node.alternatives || []) parts.push(labelled("or", jsonView(other)));
    if (node.observation !== undefined && node.observation !== null) parts.push(labelled("observation", observationView(node.observation)));
  } else if (node.text) {
    parts.push(labelled(node.kind === "ask" ? "question" : "answer", foreignBlock(node.text, { limit: 1200 })));
  }
  if (node.reply) parts.push(labelled("the user then says", foreignBlock(node.reply, { limit: 1200 })));
  return element("div", { class: "reference-node-content" }, parts);
}

function labelled(label, content) {
  return element("div", { class: "labelled" }, element("span", { class: "label" }, label), content);
}

function observationView(observation) {
  const read = typeof observation === "string" ? parsedJson(observation) : { value: observation };
  return read && typeof read.value === "object" && read.value !== null
    ? jsonView(read.value)
    : foreignBlock(typeof observation === "string" ? observation : jsonText(observation), { limit: 1200 });
}
