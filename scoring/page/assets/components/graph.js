/*
The Reference of a task as a graph: what waits for what, and what of it was done.

renderGraph(reference, blamed) -> figure     reference: {nodes: [{index, kind, name, dependencies, done, ...}]}
                                              blamed: indexes of nodes that a wrong call stood nearest to
renderNodes(reference, blamed) -> list        the same in words, with arguments and observations
nodeState(node, blamed) -> {kind, text}       right: done; wrong: due where it went wrong; none: not done

Nodes stand in layers: each one layer behind the last that it waits for. Layers go down the picture; across it where they
are few and hold many. The state is told by colour, by the line (full, heavy, dashed), by a sign and in words.
*/

const GRAPH = { width: 336, least: 94, most: 210, height: 44, beside: 12, between: 26, margin: 4, pass: 4 };

function nodeState(node, blamed) {
  if (node.done) {
    const call = node.done.call ? `, call ${node.done.call}` : "";
    return { kind: "right", text: `done in step ${node.done.step}${call}`, short: `step ${node.done.step}` };
  }
  return blamed.has(node.index)
    ? { kind: "wrong", text: "due, not done", short: "due" }
    : { kind: "none", text: "not done", short: "not done" };
}

function nodeTitle(node) {
  if (node.kind === "ask") return "ask the user";
  if (node.kind === "close") return "answer";
  return node.name || "a call";
}

function nodeLayers(nodes) {
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
  const layers = [];
  for (const node of nodes) {
    const layer = depth(node.index, new Set());
    (layers[layer] = layers[layer] || []).push(node);
  }
  return layers.filter(Boolean);
}

/* What a node waits for, without what it waits for already through others. */
function directDependencies(nodes) {
  const before = new Map(
    nodes.map(node => [node.index, (node.dependencies || []).filter(it => nodes.some(other => other.index === it))]),
  );
  const reaches = (from, to, seen) =>
    before.get(from).some(it => it === to || (!seen.has(it) && seen.add(it) && reaches(it, to, seen)));
  return new Map(
    [...before].map(([index, all]) => [
      index,
      all.filter(it => !all.some(other => other !== it && reaches(other, it, new Set()))),
    ]),
  );
}

/* The layers, with a thin place in each that a line crosses, so that lines go around nodes. */
function layersWithPasses(layers, direct, size) {
  const at = new Map(layers.flatMap((layer, number) => layer.map(node => [node.index, number])));
  const filled = layers.map(layer =>
    layer.map(node => ({ key: node.index, node, size, after: direct.get(node.index) })),
  );
  const lines = [];
  for (const [to, all] of direct) {
    for (const from of all) {
      const through = [];
      for (let number = at.get(from) + 1; number < at.get(to); number += 1) {
        const pass = {
          key: `${from} to ${to} at ${number}`,
          node: null,
          size: GRAPH.pass,
          after: [through.at(-1) ?? from],
        };
        filled[number].push(pass);
        through.push(pass.key);
      }
      lines.push([from, ...through, to]);
    }
  }
  return { filled, lines };
}

/* How large a node is, and whether layers go across the picture instead of down. */
function graphShape(layers) {
  const [most, depth] = [Math.max(...layers.map(layer => layer.length)), layers.length];
  const across = most > 3 && depth <= 3;
  const room = across
    ? (GRAPH.width + GRAPH.between) / depth - GRAPH.between
    : (GRAPH.width + GRAPH.beside) / most - GRAPH.beside;
  return { across, width: Math.max(GRAPH.least, Math.min(GRAPH.most, room)) };
}

/* Within a layer all stand in the order of the middle of what they wait for, so that few lines cross. */
function placedNodes(nodes) {
  const layers = nodeLayers(nodes);
  const { across, width } = graphShape(layers);
  const [size, thick] = across ? [GRAPH.height, width] : [width, GRAPH.height];
  const { filled, lines } = layersWithPasses(layers, directDependencies(nodes), size);
  const extent = layer => layer.reduce((sum, it) => sum + it.size + GRAPH.beside, -GRAPH.beside);
  const widest = Math.max(...filled.map(extent));
  const places = new Map();
  filled.forEach((layer, number) => {
    const middle = ({ after }) => after.reduce((sum, it) => sum + places.get(it).middle, 0) / (after.length || 1);
    const ordered = layer.map(it => [middle(it), it]).sort((a, b) => a[0] - b[0]);
    let side = GRAPH.margin + (widest - extent(layer)) / 2;
    const start = GRAPH.margin + number * (thick + GRAPH.between);
    for (const [, { key, node, size: own }] of ordered) {
      places.set(key, { node, across, start, end: start + thick, side, middle: side + own / 2, width });
      side += own + GRAPH.beside;
    }
  });
  const length = filled.length * (thick + GRAPH.between) - GRAPH.between + 2 * GRAPH.margin;
  const breadth = widest + 2 * GRAPH.margin;
  return { places, lines, width: across ? length : breadth, height: across ? breadth : length };
}

function renderGraph(reference, blamed = new Set()) {
  const nodes = (reference && reference.nodes) || [];
  if (!nodes.length) return element("p", { class: "quiet" }, "No reference.");
  const { places, lines, width, height } = placedNodes(nodes);
  const boxes = [...places.values()]
    .filter(place => place.node)
    .map(place => graphBox(place, nodeState(place.node, blamed)));
  const picture = drawing(
    "svg",
    {
      class: "graph",
      width,
      height,
      viewBox: `0 0 ${width} ${height}`,
      role: "img",
      "aria-label": graphWords(nodes, blamed),
    },
    lines.map(line => graphLine(line.map(key => places.get(key)))),
    boxes,
  );
  return element(
    "div",
    { class: "graph-scroll", tabindex: "0", role: "group", "aria-label": "Reference graph" },
    picture,
  );
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
  const at = (along, beside) => (first.across ? `${along} ${beside}` : `${beside} ${along}`);
  let [along, beside] = [first.end, first.middle];
  let path = `M${at(along, beside)}`;
  for (const place of places.slice(1)) {
    const to = place === last ? place.start - 5 : place.start;
    const bend = (to - along) / 2;
    path += ` C${at(along + bend, beside)} ${at(to - bend, place.middle)} ${at(to, place.middle)}`;
    [along, beside] = [place === last ? to : place.end, place.middle];
    if (place !== last) path += ` L${at(along, beside)}`;
  }
  const [tip, back] = [last.start - 1, last.start - 8];
  const head = `M${at(back, last.middle - 4)} L${at(tip, last.middle)} L${at(back, last.middle + 4)} Z`;
  return drawing(
    "g",
    { class: `edge ${first.node.done ? "right" : "none"}` },
    drawing("path", { d: path }),
    drawing("path", { class: "head", d: head }),
  );
}

function graphBox({ node, across, start, side, width }, state) {
  const [x, y] = across ? [start, side] : [side, start];
  const title = nodeTitle(node);
  const narrow = width < 130;
  const most = Math.floor((width - (narrow ? 26 : 36)) / (narrow ? 6.4 : 7.5));
  const short = [...title].length > most ? `${[...title].slice(0, most - 1).join("")}…` : title;
  const radius = node.kind === "close" ? GRAPH.height / 2 : node.kind === "ask" ? 14 : 5;
  return drawing(
    "g",
    { class: `node ${state.kind} ${node.kind} ${narrow ? "narrow" : ""}`, transform: `translate(${x} ${y})` },
    drawing("title", {}, visibleText(`${node.index + 1}. ${clipped(title, 300)}: ${state.text}`)),
    drawing("rect", { width, height: GRAPH.height, rx: radius }),
    drawing("text", { class: "sign", x: narrow ? 12 : 15, y: 27 }, state.kind === "none" ? "○" : SIGNS[state.kind]),
    drawing("text", { class: "name", x: narrow ? 22 : 29, y: 19 }, visibleText(short)),
    drawing("text", { class: "state", x: narrow ? 22 : 29, y: 34 }, width < 150 ? state.short : state.text),
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
        node.kind === "call"
          ? element("code", {}, foreign(nodeTitle(node), { limit: 120 }))
          : element("strong", {}, capital(nodeTitle(node))),
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
    if (node.observation !== undefined && node.observation !== null)
      parts.push(labelled("observation", observationView(node.observation)));
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
