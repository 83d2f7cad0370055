// Draws the service graph: a picture of the nodes and edges, and a table with the numbers of each edge. The nodes are in
// layers, so that requests go from left to right, or from top to bottom on a narrow screen.

import { byId, cell, figure, make, rows, set, write } from "./dom.js";
import { count, latency, percent, rate, shown, span } from "./format.js";

const NARROW = 640; // width below which layers are rows
const BOX = { width: 132, height: 34 };
const GAP = { between: 14, layers: 74 };
const LETTER = 7.2; // approximate width of a letter in a box

/**
 * Returns the layers of a graph, each a list of names. A node is one layer after the last of its callers. In a cycle, the
 * node with the fewest callers left comes first; of several, one that a node of an earlier layer calls.
 */
export function layersOf(edges) {
  const callers = new Map(), callees = new Map();
  for (const { client, server } of edges) {
    for (const name of [client, server]) {
      if (!callers.has(name)) {
        callers.set(name, new Set());
        callees.set(name, new Set());
      }
    }
    if (client === server) continue;
    callers.get(server).add(client);
    callees.get(client).add(server);
  }
  const left = new Map([...callers].map(([name, all]) => [name, all.size])), depth = new Map(), layers = [];
  while (left.size > 0) {
    const placed = (name) => [...callers.get(name)].filter((caller) => depth.has(caller));
    const order = ([name, callersLeft]) => callersLeft - (placed(name).length > 0 ? 0.5 : 0);
    const [name] = [...left].reduce((a, b) => (order(b) < order(a) ? b : a));
    left.delete(name);
    const before = placed(name).map((caller) => depth.get(caller));
    const at = before.length > 0 ? Math.max(...before) + 1 : 0;
    depth.set(name, at);
    (layers[at] ??= []).push(name);
    for (const callee of callees.get(name)) if (left.has(callee)) left.set(callee, left.get(callee) - 1);
  }
  return layers;
}

/** Returns the center of each node by name, the size of their boxes, and the height of the picture. */
function layout(layers, width) {
  const widest = Math.max(...layers.map((layer) => layer.length)), centers = new Map();
  if (width < NARROW) {
    const box = { width: Math.min(BOX.width, width / widest - 6), height: BOX.height };
    layers.forEach((layer, i) => layer.forEach((name, j) => centers.set(name, {
      x: (width * (j + 0.5)) / layer.length, y: box.height / 2 + 1 + i * (box.height + GAP.layers / 2),
    })));
    return { box, centers, isVertical: true, height: layers.length * (box.height + GAP.layers / 2) - GAP.layers / 2 + 2 };
  }
  const box = { width: Math.min(BOX.width, width / layers.length - 24), height: BOX.height };
  const height = widest * (box.height + GAP.between);
  const step = layers.length > 1 ? (width - box.width - 2) / (layers.length - 1) : 0;
  layers.forEach((layer, i) => layer.forEach((name, j) => centers.set(name, {
    x: box.width / 2 + 1 + i * step, y: (height * (j + 0.5)) / layer.length,
  })));
  return { box, centers, isVertical: false, height };
}

/** Returns the path of an edge, from the side of one box to the facing side of another. */
function pathOf({ client, server }, { box, centers, isVertical }) {
  const a = centers.get(client), b = centers.get(server);
  if (client === server) return `M${a.x - 12} ${a.y - box.height / 2}c-8 -14 32 -14 24 0`;
  if (isVertical) {
    const way = b.y >= a.y ? 1 : -1, y0 = a.y + (way * box.height) / 2, y1 = b.y - (way * box.height) / 2, middle = (y0 + y1) / 2;
    return `M${a.x} ${y0}C${a.x} ${middle} ${b.x} ${middle} ${b.x} ${y1}`;
  }
  const way = b.x >= a.x ? 1 : -1, x0 = a.x + (way * box.width) / 2, x1 = b.x - (way * box.width) / 2, middle = (x0 + x1) / 2;
  return `M${x0} ${a.y}C${middle} ${a.y} ${middle} ${b.y} ${x1} ${b.y}`;
}

/** Returns a name that fits in a width. */
const fitting = (name, width) => {
  const letters = Math.max(3, Math.floor(width / LETTER)), text = shown(name);
  return text.length <= letters ? text : text.slice(0, letters - 1) + "…";
};

/** Draws the picture of at least one edge. */
function drawPicture(edges) {
  const svg = byId("graph"), width = svg.clientWidth;
  if (width === 0) return;
  const services = new Set(edges.flatMap(({ client, server, connection_type: type }) => [
    ...(type === "messaging_system" ? [] : [client]), ...(type === "" ? [server] : []),
  ]).filter((name) => name !== "user"));
  const picture = layout(layersOf(edges), width), most = Math.max(1, ...edges.map((e) => e.requests));
  set(svg, { height: picture.height, viewBox: `0 0 ${width} ${picture.height}` });
  svg.replaceChildren(
    ...edges.map((e) => make("path", {
      class: `edge${e.requests === 0 ? " idle" : e.failed > 0 ? " failing" : ""}`,
      d: pathOf(e, picture), "stroke-width": 1.2 + 3.5 * Math.sqrt(e.requests / most),
    }, make("title", {}, shown(`${e.client} → ${e.server}`)))),
    ...[...picture.centers].map(([name, { x, y }]) => make("g", { class: services.has(name) ? "node service" : "node" },
      make("title", {}, shown(name)),
      make("rect", { class: "box", x: x - picture.box.width / 2, y: y - picture.box.height / 2, ...picture.box, rx: 8 }),
      make("text", { x, y }, fitting(name, picture.box.width - 8)))),
  );
}

const connections = { "": "HTTP or RPC", database: "database", messaging_system: "messaging", virtual_node: "no spans of the caller" };

export function drawServiceGraph(status) {
  const graph = status.service_graph;
  byId("service-graph").hidden = !graph || graph.edges.length === 0;
  if (!graph || graph.edges.length === 0) return;
  const { edges } = graph, seconds = Math.max(0.001, graph.interval_seconds);
  const more = graph.edges_not_shown > 0 ? ` Another ${count(graph.edges_not_shown)} edges are in the scrape only.` : "";
  write(byId("service-graph-lead"), `Which service calls which. Rates and errors are those of the last ${span(seconds)}, p95 is that of all requests. Red edges have errors.${more}`);
  drawPicture(edges);
  rows(byId("edge-rows"), edges,
    () => [cell("", "head first"), cell("To"), cell("Connection"), cell("Rate", "n"), cell("Errors", "n"), cell("p95", "n")].map((td, i) => {
      if (i < 2) td.append(make("bdi"));
      return td;
    }),
    (edge, cells, i) => {
      figure(cells[0].firstChild, `service_graph.edges.${i}.client`, edge.client);
      figure(cells[1].firstChild, `service_graph.edges.${i}.server`, edge.server);
      write(cells[2], connections[edge.connection_type] ?? edge.connection_type);
      write(cells[3], rate(edge.requests / seconds));
      write(cells[4], edge.failed > 0 ? percent(edge.failed / edge.requests) : "–");
      set(cells[4], { class: edge.failed > 0 ? "n is-lost" : "n none" });
      write(cells[5], latency(edge.p95_seconds));
    });
}
