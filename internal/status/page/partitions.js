// Draws how the drainers share the key space: a strip of the busiest partitions, and the last plan of the balancer. The
// width of a partition is its share, and its color is that of its drainer.

import { byId, figure, make, set, write } from "./dom.js";
import { clock, count, percent } from "./format.js";

const COLORS = 6; // number of drainer colors in the style sheet; more drainers reuse them

/** Returns the CSS class of a drainer's color. */
export const owner = (drainer) => `owner-${drainer % COLORS}`;

function prepare(box) {
  box.append(
    make("h3", { id: "partitions-title" }, "Partitions"),
    make("span", { class: "strip", role: "img" }),
    make("p", { class: "note" }, make("span"), " (", make("bdi"), "); ", make("span"), " moved and ", make("span"), " split since the start", make("span")),
    make("p", { class: "note" }, make("span"), make("bdi")),
  );
}

export function drawPartitions(status) {
  const p = status.partitions, box = byId("partitions");
  if (!box.firstChild) prepare(box);
  const [, strip, sums, plan] = box.children;
  const [all, policy, moves, splits, ratio] = sums.children;
  figure(all, "partitions.partitions", count(p.partitions));
  figure(policy, "partitions.policy", p.policy);
  figure(moves, "partitions.moves", count(p.moves));
  figure(splits, "partitions.splits", count(p.splits));
  write(ratio, p.drainers.length > 1 && p.load_ratio > 1.005 ? `; the busiest drainer has ${p.load_ratio.toFixed(2)} times the load of the least busy one.` : ".");
  const planned = Date.parse(p.last_plan.at) > 0 && p.last_plan.reason;
  write(plan.children[0], planned ? `The balancer at ${clock(p.last_plan.at)}: ` : "");
  write(plan.children[1], planned ? p.last_plan.reason : "The balancer has not run yet.");
  drawStrip(strip, p);
}

/** Draws one segment per partition, the busiest first. The rest of the strip stands for all other partitions. */
function drawStrip(strip, p) {
  strip.hidden = p.busiest.length === 0;
  while (strip.children.length > p.busiest.length) strip.lastElementChild.remove();
  p.busiest.forEach((partition, i) => {
    const part = strip.children[i] || strip.appendChild(make("i"));
    const split = partition.owners.length > 1;
    set(part, {
      class: `${owner(partition.owners[0] ?? 0)}${split ? " split" : ""}`,
      title: `partition ${partition.partition}: ${percent(partition.share)}, drainer ${partition.owners.join(", ")}`,
    });
    part.style.width = `${partition.share * 100}%`;
  });
  set(strip, { "aria-label": p.busiest.slice(0, 3).map((q) => `partition ${q.partition} has ${percent(q.share)} on drainer ${q.owners.join(" and ")}`).join("; ") });
}
