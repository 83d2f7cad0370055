// Draws the accounting as a Sankey diagram: received spans on the left, their outcomes on the right. The height of each
// band is its share. An outcome of 0 is drawn as a dotted line, so that it is visible as well.

import { count, rate } from "./format.js";
import { byId, make, set, write } from "./dom.js";

const TALL = 150; // height of all received spans
const LABEL = 56; // height of a node's three lines of text
const GAP = 12; // vertical distance between two nodes
const BAR = 5; // width of a node
const WORD = 96; // width of a node's label

const bands = [
  ["received", "aggregated"], ["received", "dropped"],
  ["aggregated", "flushed"], ["aggregated", "pending"], ["aggregated", "unsent"],
];
const columns = [["received"], ["aggregated", "dropped"], ["flushed", "pending", "unsent"]];
const drawn = {};

function prepare(svg) {
  for (const [from, to] of bands) {
    const band = make("path", { class: "band" });
    const hair = make("path", { class: "hair" });
    const stream = make("path", { class: "stream" });
    svg.append(make("g", { class: `of-${to}` }, band, hair, stream));
    drawn[`${from} ${to}`] = { band, hair, stream };
  }
  for (const name of columns.flat()) {
    const part = {
      bar: make("rect", { class: "bar", width: BAR, rx: BAR / 2 }),
      name: make("text", { class: "node-name" }, name),
      count: make("text", { class: "node-count" }),
      rate: make("text", { class: "node-rate" }),
    };
    part.group = make("g", {}, part.bar, part.name, part.count, part.rate);
    svg.append(part.group);
    drawn[name] = part;
  }
}

/** Returns the position and height of each node in a diagram of the given width, and the height of the diagram. */
function layout(width, accounting) {
  const height = (n) => (n === 0 ? 0 : Math.max(2.5, (n / Math.max(accounting.received.spans, 1)) * TALL));
  const nodes = {};
  let bottom = 0;
  columns.forEach((names, i) => {
    let y = 0;
    for (const name of names) {
      const h = Math.min(height(accounting[name].spans), TALL);
      nodes[name] = { x: (width * i * 0.37), y, h };
      y += Math.max(h, LABEL) + GAP;
    }
    bottom = Math.max(bottom, y - GAP);
  });
  return { nodes, bottom };
}

const curve = (x0, y0, x1, y1) => `C${(x0 + x1) / 2} ${y0} ${(x0 + x1) / 2} ${y1} ${x1} ${y1}`;

/** Draws the accounting. accounting has the number of spans and the rate of each node. */
export function drawFlow(accounting) {
  const svg = byId("flow");
  if (!svg.firstChild) prepare(svg);
  const width = svg.clientWidth;
  if (width === 0) return; // on a phone the diagram is hidden, and the table is shown instead
  const { nodes, bottom } = layout(width, accounting);
  set(svg, { height: bottom + 4, viewBox: `0 0 ${width} ${bottom + 4}` });
  const left = {}; // height of each node that earlier bands use
  for (const [from, to] of bands) {
    const a = nodes[from], b = nodes[to], d = drawn[`${from} ${to}`];
    const y = a.y + (left[from] || 0);
    const h = Math.min(b.h, Math.max(a.h - (left[from] || 0), b.h > 0 ? 2.5 : 0));
    left[from] = (left[from] || 0) + b.h;
    const x0 = a.x + BAR, x1 = b.x;
    // In a tall band, draw the stream below the label.
    const low = (at, wide) => at + wide * (wide > LABEL ? 0.8 : 0.5);
    const middle = `M${x0 + 6} ${low(y, h)}${curve(x0 + 6, low(y, h), x1 - 6, low(b.y, b.h))}`;
    set(d.band, { d: b.h ? `M${x0} ${y}${curve(x0, y, x1, b.y)}L${x1} ${b.y + b.h}${curve(x1, b.y + b.h, x0, y + h)}Z` : "" });
    // If the source has no bar, the dotted line begins to the right of its label.
    const hair = a.h ? { x: x0, y: Math.min(y, a.y + a.h) } : { x: a.x + WORD, y: a.y + LABEL / 2 - 4 };
    set(d.hair, { d: b.h ? "" : `M${hair.x} ${hair.y}${curve(hair.x, hair.y, x1, b.y + LABEL / 2 - 4)}` });
    // The number of pending spans rises and falls with every cycle, so its band has no animation.
    const flows = b.h > 0 && to !== "pending" && accounting[to].rate > 0;
    set(d.stream, { d: flows ? middle : "" });
  }
  for (const [name, node] of Object.entries(nodes)) {
    const d = drawn[name], zero = accounting[name].spans === 0;
    set(d.group, { class: `of-${name}${zero ? " zero" : ""}` });
    const bar = zero ? { y: node.y + LABEL / 2 - 7, height: 6 } : { y: node.y, height: node.h };
    set(d.bar, { x: node.x, ...bar });
    const x = node.x + BAR + 11;
    const top = node.y + (node.h > LABEL + 30 ? 16 : 0);
    set(d.name, { x, y: top + 12 });
    set(d.count, { x, y: top + 33 });
    set(d.rate, { x, y: top + 51 });
    write(d.count, count(accounting[name].spans));
    write(d.rate, accounting[name].note || rate(accounting[name].rate));
  }
}
