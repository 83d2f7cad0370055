// Draws the headline and the accounting: whether any spans are lost, where, and why.

import { advice } from "./advice.js";
import { inTrouble, upstreamState } from "./destination.js";
import { byId, cell, figure, make, prose, rows, set, write } from "./dom.js";
import { drawFlow } from "./flow.js";
import { count, rate, span } from "./format.js";

const sum = (by) => Object.values(by).reduce((a, b) => a + b, 0);

// Dropped spans that are not lost: excluded by a rule of --ignore, or forwarded for the agent to count.
const notLost = ["ignored", "left_to_agent"];
const dropLosses = (dropped) => sum(dropped) - notLost.reduce((all, reason) => all + (dropped[reason] ?? 0), 0);

/** Returns a sentence about spans that samplers discarded before the daemon, if spans or SDKs report it. */
function sampled({ accounting: a, sdks }) {
  if (a.adjusted_count > a.aggregated) return ` The ${count(a.aggregated)} counted spans stand for about ${count(a.adjusted_count)}: samplers discarded the others before the daemon.`;
  if (sdks && sdks.sampled < sdks.started) return ` SDKs report that they sampled ${count(sdks.sampled)} of ${count(sdks.started)} started spans; the others are not counted here.`;
  return "";
}

/** Returns the state of the accounting as a CSS keyword, a headline and a summary. pace is the rate of received spans. */
function headline(status, pace) {
  // A span that is unsent at two destinations is one lost span, so take the maximum.
  const a = status.accounting, lost = dropLosses(a.dropped) + Math.max(...status.destinations.map((d) => d.accounting.unsent));
  const received = `${count(a.received)} spans were received in ${span(status.uptime_seconds)}.`;
  if (!status.ready) return ["unready", "The daemon is not ready.", `Reason: ${status.not_ready}.`];
  // While spans move between components, the accounting is inexact. Only an imbalance without moving spans is a bug.
  if (!a.balanced && pace === 0) return ["wrong", "The accounting does not balance.", "No spans arrive, but the counts disagree. This is a bug: please report it with the log of the daemon."];
  if (a.received === 0) return ["empty", "Waiting for spans.", connections(status) > 0 ? "Senders are connected, but have not sent spans yet." : "No sender has connected yet."];
  const trouble = inTrouble(status);
  if (trouble) {
    const { accounting, retry } = trouble.destination;
    const queued = accounting.pending_in_payloads === 0 ? "" : ` ${count(accounting.pending_in_payloads)} spans are queued for it, the oldest for ${span(retry.oldest_seconds)}; they are dropped after ${span(retry.max_seconds)}.`;
    if (lost === 0) return ["waiting", trouble.text, `No received span is lost yet.${queued} ${received}${sampled(status)}`];
    return ["lossy", `${count(lost)} spans are lost.`, `${trouble.text}${queued} ${received} The reasons are listed below.${sampled(status)}`];
  }
  if (lost > 0) return ["lossy", `${count(lost)} spans are lost.`, `${received} The reasons are listed below.${sampled(status)}`];
  for (const receiver of Object.values(status.receivers)) {
    const [text, well] = receiver.forward ? upstreamState(receiver.forward) : ["", true];
    if (!well) return ["waiting", `The upstream of ${receiver.data} ${text}.`, `No received span is lost. ${received}${sampled(status)}`];
  }
  return ["good", "Every received span is accounted for.", `None is lost. ${received}${sampled(status)}`];
}

/** Returns the number of connections to all receivers. */
const connections = (status) => Object.values(status.receivers).reduce((all, r) => all + r.connections.live, status.connections.live);

/** Draws the headline and the accounting. since returns the rate of a number that a function reads from a status. */
export function drawAccounting(status, since) {
  const a = status.accounting;
  const [state, text, summary] = headline(status, since((s) => s.accounting.received));
  document.body.dataset.accounting = state;
  write(byId("headline"), text);
  write(byId("summary"), summary);
  drawCrashes(status);
  const announced = byId("announce");
  if (announced.dataset.state !== state) {
    announced.dataset.state = state;
    write(announced, text);
  }
  const node = (path, of) => ({ path, spans: of(status), rate: since(of) });
  const nodes = {
    received: node("accounting.received", (s) => s.accounting.received),
    aggregated: node("accounting.aggregated", (s) => s.accounting.aggregated),
    flushed: node("accounting.flushed", (s) => s.accounting.flushed),
    pending: node("accounting.pending", (s) => s.accounting.pending),
    unsent: node("accounting.unsent", (s) => s.accounting.unsent),
    dropped: node("sum accounting.dropped", (s) => sum(s.accounting.dropped)),
  };
  nodes.pending.note = a.pending_in_payloads > 0 ? `${count(a.pending_in_payloads)} queued` : "until the next flush";
  write(byId("accounting-lead"), "Every span since the start." + (status.destinations.length > 1 ? ` Flushed, pending and unsent refer to the destination ${status.destinations[0].name}.` : ""));
  drawFlow(nodes);
  drawLedger(nodes);
  drawLosses(status, since);
}

/** Draws the losses of crashed predecessors. */
function drawCrashes(status) {
  const crashed = status.crashed_predecessors, lost = status.lost_to_crashes;
  byId("predecessors").hidden = crashed === 0;
  const all = (kind) => Object.values(lost.receivers).reduce((total, receiver) => total + receiver[kind], 0);
  write(byId("predecessors"), `${crashed === 1 ? "The previous daemon crashed or was" : `${count(crashed)} previous daemons crashed or were`} killed: ${count(all("lost"))} spans are lost, ${count(all("ambiguous"))} more may be lost, and clients are expected to resend ${count(lost.awaiting_replay)}.`);
}

const order = [["received", 0], ["aggregated", 1], ["flushed", 2], ["pending", 2], ["unsent", 2], ["dropped", 1]];

function drawLedger(nodes) {
  rows(byId("ledger"), order, () => [make("th", { scope: "row" }), make("td"), make("td")], ([name, deep], cells, _, row) => {
    set(row, { class: `of-${name} deep-${deep}` });
    write(cells[0], name);
    figure(cells[1], nodes[name].path, count(nodes[name].spans));
    write(cells[2], name === "pending" ? "" : rate(nodes[name].rate));
  });
}

/** Returns the kinds of losses: the key of their advice, their name, their path in the status, and a function that reads them. */
function kinds(status) {
  const unsent = status.destinations.length === 1 ? [["unsent", "unsent", "accounting.unsent_by_reason", (s) => s.accounting.unsent_by_reason]]
    : status.destinations.map((d, i) => ["unsent", `unsent to ${d.name}`, `destinations.${i}.accounting.unsent_by_reason`, (s) => s.destinations[i]?.accounting.unsent_by_reason ?? {}]);
  return [
    ["dropped", "dropped", "accounting.dropped", (s) => s.accounting.dropped],
    ...unsent,
    ["lost in a client", "lost in a client", "client_lost", (s) => s.client_lost],
  ];
}

function drawLosses(status, since) {
  const losses = [];
  let zeros = 0;
  for (const [kind, name, path, of] of kinds(status)) {
    for (const [reason, spans] of Object.entries(of(status))) {
      if (spans === 0) zeros++;
      else losses.push({ kind, name, reason, spans, path: `${path}.${reason}`, rate: since((s) => of(s)[reason] || 0) });
    }
  }
  byId("losses").hidden = losses.length === 0;
  byId("no-losses").hidden = losses.length > 0;
  write(byId("no-losses"), `No span was dropped, left unsent or lost in a client. All ${zeros} reasons are at 0.`);
  drawReasons(byId("loss-rows"), losses);
}

/** Draws spans that did not fit the cardinality limits: they are counted, with a replaced label. */
export function drawCollapsed(status, since) {
  const collapsed = Object.entries(status.collapsed).filter(([, spans]) => spans > 0).map(([reason, spans]) => ({
    kind: "collapsed", name: "label replaced", reason, spans, path: `collapsed.${reason}`, rate: since((s) => s.collapsed[reason] || 0),
  }));
  byId("collapsed").hidden = collapsed.length === 0;
  drawReasons(byId("collapsed-rows"), collapsed);
}

/** Draws one row per reason, with the number of spans and advice. */
function drawReasons(body, reasons) {
  rows(body, reasons,
    () => [cell("", "head"), cell("Reason"), cell("Spans", "n"), cell("Rate", "n"), cell("", "wide soft")],
    (one, cells) => {
      write(cells[0], one.name);
      set(cells[0], { class: one.kind === "collapsed" || notLost.includes(one.reason) ? "head is-pending" : "head is-lost" });
      write(cells[1], one.reason);
      set(cells[1], { class: "reason" });
      figure(cells[2], one.path, count(one.spans));
      write(cells[3], rate(one.rate));
      const known = advice[one.kind];
      prose(cells[4], known[one.reason] || known[""] || "");
    });
}
