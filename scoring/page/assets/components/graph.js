/*
The Reference of a task as a graph: what waits for what, and what of it was done.

renderGraph(reference, blamed) -> figure     reference: {nodes: [{index, kind, name, dependencies, done, ...}]}
                                              blamed: indexes of nodes that a wrong call stood nearest to
renderNodes(reference, blamed) -> list        the same in words, with arguments and observations
nodeState(node, blamed) -> {kind, text}       right: done; wrong: due where it went wrong; none: not done

Nodes stand in rows: each one row below the last that it waits for. The state is told by colour, by the line (full,
heavy, dashed), by a sign and in words.
*/

const GRAPH = { width: 336, least: 112, most: 210, height: 44, across: 12, down: 26, margin: 4, pass: 4 };

function nodeState(node, blamed) {
  if (node.done) {
    const call = node.done.call ? `, call ${node.done.call}` : "";
    return { kind: "right", text: `done in step ${node.done.step}${call}`, short: `step ${node.done.step}` };
  }
  return blamed.has(node.index) ? { kind: "wrong", text: "due, not done", short: "due" } : { kind: "none", text: "not done", short: "not done" };
}

function nodeTitle(node) {
  if (node.kind === "ask") return "ask the user";
  if (node.kind === "close") return "answer";
  return node.name || "a call";
}

function nodeRows(nodes) {
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
  const rows = [];
  for (const node of nodes) {
    const row = depth(node.index, new Set());
    (rows[row] = rows[row] || []).push(node);
  }
  return rows.filter(Boolean);
}

/* What a node waits for, without what it waits for already through others. */
function directDependencies(nodes) {
  const before = new Map(nodes.map(node => [node.index, (node.dependencies || []).filter(it => nodes.some(other => other.index === it))]));
  const reaches = (from, to, seen) => before.get(from).some(it => it === to || (!seen.has(it) && seen.add(it) && reaches(it, to, seen)));
  return new Map([...before].map(([index, all]) => [index, all.filter(it => !all.some(other => other !== it && reaches(other, it, new Set())))]));
}

/* The rows, with a thin place in each that a line crosses, so that lines go around nodes. */
function rowsWithPasses(rows, direct, width) {
  const at = new Map(rows.flatMap((row, y) => row.map(node => [node.index, y])));
  const filled = rows.map(row => row.map(node => ({ key: node.index, node, width, after: direct.get(node.index) })));
  const lines = [];
  for (const [to, all] of direct) {
    for (const from of all) {
      const through = [];
      for (let y = at.get(from) + 1; y < at.get(to); y += 1) {
        const pass = { key: `${from} to ${to} at ${y}`, node: null, width: GRAPH.pass, after: [through.at(-1) ?? from] };
        filled[y].push(pass);
        through.push(pass.key);
      }
      lines.push([from, ...through, to]);
    }
  }
  return { filled, lines };
}

/* Within a row all stand in the order of the middle of what they wait for, so that few lines cross. */
function placedNodes(nodes) {
  const rows = nodeRows(nodes);
  const most = Math.max(...rows.map(row => row.length));
  const nodeWidth = Math.max(GRAPH.least, Math.min(GRAPH.most, (GRAPH.width + GRAPH.across) / most - GRAPH.across));
  const { filled, lines } = rowsWithPasses(rows, directDependencies(nodes), nodeWidth);
  const widthOf = row => row.reduce((sum, it) => sum + it.width + GRAPH.across, -GRAPH.across);
  const widest = Math.max(...filled.map(widthOf));
  const places = new Map();
  filled.forEach((row, y) => {
    const middle = ({ after }) => after.reduce((sum, it) => sum + places.get(it).middle, 0) / (after.length || 1);
    const ordered = row.map(it => [middle(it), it]).sort((a, b) => a[0] - b[0]);
    let x = GRAPH.margin + (widest - widthOf(row)) / 2;
    for (const [, { key, node, width }] of ordered) {
      places.set(key, { node, x, y: GRAPH.margin + y * (GRAPH.height + GRAPH.down), width, middle: x + width / 2 });
      x += width + GRAPH.across;
    }
  });
  const height = filled.length * (GRAPH.height + GRAPH.down) - GRAPH.down + 2 * GRAPH.margin;
  return { places, lines, width: widest + 2 * GRAPH.margin, height };
}

function renderGraph(reference, blamed = new Set()) {
  const nodes = (reference && reference.nodes) || [];
  if (!nodes.length) return element("p", { class: "quiet" }, "No reference.");
  const { places, lines, width, height } = placedNodes(nodes);
  const boxes = [...places.values()].filter(place => place.node).map(place => graphBox(place, nodeState(place.node, blamed)));
  const picture = drawing(
    "svg",
    { class: "graph", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": graphWords(nodes, blamed) },
    lines.map(line => graphLine(line.map(key => places.get(key)))),
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

function graphLine(places) {
  const [first, last] = [places[0], places.at(-1)];
  let from = [first.middle, first.y + GRAPH.height];
  let path = `M${from[0]} ${from[1]}`;
  for (const place of places.slice(1)) {
    const to = [place.middle, place === last ? place.y - 5 : place.y];
    const bend = (to[1] - from[1]) / 2;
    path += ` C${from[0]} ${from[1] + bend} ${to[0]} ${to[1] - bend} ${to[0]} ${to[1]}`;
    from = to;
    if (!place.node) {
      from = [place.middle, place.y + GRAPH.height];
      path += ` V${from[1]}`;
    }
  }
  const head = `M${last.middle - 4} ${last.y - 8} L${last.middle} ${last.y - 1} L${last.middle + 4} ${last.y - 8} Z`;
  return drawing("g", { class: `edge ${first.node.done ? "right" : "none"}` }, drawing("path", { d: path }), drawing("path", { class: "head", d: head }));
}

function graphBox({ node, x, y, width }, state) {
  const title = nodeTitle(node);
  const most = Math.floor((width - 36) / (node.kind === "call" ? 7.3 : 7.8));
  const short = [...title].length > most ? `${[...title].slice(0, most - 1).join("")}…` : title;
  const radius = node.kind === "close" ? GRAPH.height / 2 : node.kind === "ask" ? 14 : 5;
  return drawing(
    "g",
    { class: `node ${state.kind} ${node.kind}`, transform: `translate(${x} ${y})` },
    drawing("title", {}, visibleText(`${node.index + 1}. ${clipped(title, 300)}: ${state.text}`)),
    drawing("rect", { width, height: GRAPH.height, rx: radius }),
    drawing("text", { class: "sign", x: 15, y: 27 }, state.kind === "none" ? "○" : SIGNS[state.kind]),
    drawing("text", { class: "name", x: 29, y: 19 }, visibleText(short)),
    drawing("text", { class: "state", x: 29, y: 34 }, width < 150 ? state.short : state.text),
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
