// Draws the latency curves of aggregates, all on the same logarithmic axis, and the rate of received spans since the
// page was opened.

import { byId, make, set, write } from "./dom.js";
import { count } from "./format.js";

const WIDE = 250, HIGH = 36;

/** Returns the axis of all curves: the range of decades in which any row has a count. */
export function usedDecades(busiest) {
  const each = busiest.curve.columns / busiest.curve.decades;
  let first = busiest.curve.decades, last = 0;
  for (const row of busiest.rows) {
    row.latency.forEach((n, i) => {
      if (n > 0) {
        first = Math.min(first, Math.floor(i / each));
        last = Math.max(last, Math.floor(i / each) + 1);
      }
    });
  }
  if (first >= last) [first, last] = [2, 6];
  while (last - first < 3) last < busiest.curve.decades ? last++ : first--;
  return { first, last, each, start: busiest.curve.first_seconds };
}

const decade = (s) => (s < 1e-3 ? `${Math.round(s * 1e6)} µs` : s < 1 ? `${Math.round(s * 1e3)} ms` : `${Math.round(s)} s`);

export function drawAxis(axis) {
  const svg = set(byId("axis"), { viewBox: `0 0 ${WIDE} 15` });
  const steps = axis.last - axis.first;
  const every = steps > 4 ? 2 : 1;
  const names = [];
  for (let i = 0; i <= steps; i += every) names.push([i, decade(axis.start * 10 ** (axis.first + i))]);
  if (svg.dataset.names === names.join()) return;
  svg.dataset.names = names.join();
  svg.replaceChildren(...names.map(([i, name]) => make("text", {
    x: (i / steps) * WIDE, y: 11, "text-anchor": i === 0 ? "start" : i === steps ? "end" : "middle",
  }, name)));
}

/** Returns the SVG path of a curve over the counts that are not 0. The path begins and ends at the base line. */
function outline(counts, axis, most) {
  const from = axis.first * axis.each, to = axis.last * axis.each, step = WIDE / (to - from);
  const y = (n) => HIGH - 1 - Math.sqrt(n / most) * (HIGH - 3); // the square root makes a thin tail visible
  const x = (i) => Math.min(Math.max((i - from + 0.5) * step, 0), WIDE);
  const first = counts.findIndex((n) => n > 0), last = counts.findLastIndex((n) => n > 0);
  if (first < 0) return "";
  let path = `M${x(first - 1)} ${y(0)}`, before = 0;
  for (let i = first; i <= last + 1; i++) {
    const n = i <= last ? counts[i] : 0, middle = (x(i - 1) + x(i)) / 2;
    path += `C${middle} ${y(before)} ${middle} ${y(n)} ${x(i)} ${y(n)}`;
    before = n;
  }
  return path;
}

/** Returns an empty SVG element for drawCurve. */
export function makeCurve() {
  const grid = make("path", { class: "grid" }), area = make("path", { class: "area" }), line = make("path", { class: "line" });
  const failed = make("path", { class: "failed" }), p99 = make("line", { class: "p99", y1: 2, y2: HIGH });
  return make("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, preserveAspectRatio: "none", role: "img" }, grid, area, failed, line, p99);
}

export function drawCurve(svg, row, axis, spoken) {
  const [grid, area, failed, line, p99] = svg.children;
  const most = Math.max(1, ...row.latency), steps = axis.last - axis.first;
  let lines = `M0 ${HIGH - 1}H${WIDE}`;
  for (let i = 1; i < steps; i++) lines += `M${(i / steps) * WIDE} 4V${HIGH - 1}`;
  set(svg, { "aria-label": spoken });
  set(grid, { d: lines });
  const shape = outline(row.latency, axis, most);
  set(area, { d: shape && shape + "Z" });
  set(line, { d: shape });
  set(failed, { d: row.error_latency ? outline(row.error_latency, axis, most) + "Z" : "" });
  const at = ((Math.log10(row.p99_seconds / axis.start) - axis.first) / steps) * WIDE;
  const x = Number.isFinite(at) ? Math.min(Math.max(at, 0), WIDE) : -9;
  set(p99, { x1: x, x2: x });
}

/** Draws the rates of received spans over time, the newest on the right. */
export function drawHistory(samples, longest) {
  const width = Math.min(Math.max(samples.length, 40), longest); // a few samples do not fill the whole width
  const svg = byId("history"), w = svg.clientWidth || 300, h = 56;
  set(svg, { viewBox: `0 0 ${w} ${h}` });
  if (!svg.firstChild) svg.append(make("path", { class: "area" }), make("path", { class: "line" }), make("line", { class: "base" }));
  const [area, line, base] = svg.children;
  const most = Math.max(1, ...samples) * 1.12;
  const points = samples.map((n, i) => `${w - ((samples.length - 1 - i) / (width - 1)) * w} ${h - 1 - (n / most) * (h - 4)}`);
  set(base, { x1: 0, x2: w, y1: h - 0.5, y2: h - 0.5 });
  if (points.length < 2) return;
  set(line, { d: "M" + points.join("L") });
  set(area, { d: `M${w - ((samples.length - 1) / (width - 1)) * w} ${h}L${points.join("L")}L${w} ${h}Z` });
  set(svg, { "aria-label": `Spans received per second since this page was opened: ${count(samples.at(-1))} now, at most ${count(Math.max(...samples))}` });
}
