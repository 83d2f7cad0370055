// Draws the accounting: whether any spans are lost, and why.

import { advice } from "./advice.js";
import { forwardState, troubled } from "./destination.js";
import { byId, cell, figure, make, prose, rows, set, write } from "./dom.js";
import { drawFlow } from "./flow.js";
import { count, rate, span } from "./format.js";

const sum = (by) => Object.values(by).reduce((a, b) => a + b, 0);

/** Returns the state of the accounting as a CSS keyword, a headline and a summary. pace is the rate of received spans. */
function sentences(status, pace) {
  // A span that is unsent at two destinations is one lost span, so take the maximum.
  const b = status.accounting, lost = sum(b.dropped) + Math.max(...status.destinations.map((d) => d.accounting.unsent));
  const taken = `${count(b.received)} spans in ${span(status.uptime_seconds)}`;
  if (!status.ready) return ["unready", "Not ready.", `The daemon says: ${status.not_ready}.`];
  // While spans move between components, the accounting is inexact. Only an imbalance without moving spans is a bug.
  if (!b.balanced && pace === 0) return ["wrong", "The books do not balance.", "No span moves, and the figures disagree. That is a defect of ours: please report it with the log."];
  if (b.received === 0) return ["empty", "Waiting for spans.", status.connections.live ? "Tracers are connected and have sent none yet." : "No tracer has connected yet."];
  const trouble = troubled(status);
  if (trouble) {
    const { accounting: books, retry } = trouble.destination;
    const waiting = books.pending_in_payloads === 0 ? "" : ` ${count(books.pending_in_payloads)} wait for it, the oldest for ${span(retry.oldest_seconds)}; after ${span(retry.max_seconds)} they are given up.`;
    if (lost === 0) return ["waiting", trouble.text, `${taken}, and none lost yet.${waiting}`];
    return ["lossy", `${count(lost)} spans are lost.`, `${trouble.text}${waiting} ${taken}; every one is accounted for, and below is why.`];
  }
  const onward = status.receivers.otlp?.forward, [how, well] = onward ? forwardState(onward) : ["", true];
  if (lost === 0 && !well) return ["waiting", `The destination of OTLP ${how}.`, `${taken}, and none lost.`];
  if (lost === 0) return ["good", "Every span is accounted for.", `${taken}, and none lost.`];
  return ["lossy", `${count(lost)} spans are lost.`, `${taken}; every one is accounted for, and below is why.`];
}

/** Draws the accounting. since returns the rate of a number that a function reads from a status. */
export function drawBooks(status, since) {
  const b = status.accounting;
  const [state, sentence, summary] = sentences(status, since((s) => s.accounting.received));
  document.body.dataset.books = state;
  write(byId("books-say"), sentence);
  write(byId("summary"), summary);
  const died = status.crashed_predecessors;
  byId("predecessors").hidden = died === 0;
  const killed = status.lost_to_crashes;
  const of = (what) => Object.values(killed.receivers).reduce((all, door) => all + door[what], 0);
  write(byId("predecessors"), `${died === 1 ? "The daemon before this one was" : `${count(died)} daemons before this one were`} killed: ${count(of("lost"))} spans are lost, ${count(of("ambiguous"))} more may have arrived, ${count(killed.awaiting_replay)} are awaited from clients.`);
  const announced = byId("announce");
  if (announced.dataset.state !== state) {
    announced.dataset.state = state;
    write(announced, sentence);
  }
  const node = (path, of) => ({ path, spans: of(status), rate: since(of) });
  const books = {
    received: node("accounting.received", (s) => s.accounting.received),
    aggregated: node("accounting.aggregated", (s) => s.accounting.aggregated),
    flushed: node("accounting.flushed", (s) => s.accounting.flushed),
    held: node("accounting.pending", (s) => s.accounting.pending),
    unsent: node("accounting.unsent", (s) => s.accounting.unsent),
    dropped: node("sum accounting.dropped", (s) => sum(s.accounting.dropped)),
  };
  books.held.note = b.pending_in_payloads > 0 ? `${count(b.pending_in_payloads)} wait for the ${status.destinations[0].name}` : "until the next flush";
  drawFlow(books);
  drawLedger(books);
  drawLosses(status, since);
}

const order = [["received", 0], ["aggregated", 1], ["flushed", 2], ["held", 2], ["unsent", 2], ["dropped", 1]];

function drawLedger(books) {
  rows(byId("ledger"), order, () => [make("th", { scope: "row" }), make("td"), make("td")], ([name, deep], cells, _, row) => {
    set(row, { class: `of-${name} deep-${deep}` });
    write(cells[0], name);
    figure(cells[1], books[name].path, count(books[name].spans));
    write(cells[2], name === "held" ? "" : rate(books[name].rate));
  });
}

/** Returns the kinds of losses: the key of their advice, their name, their path in the status, and a function that reads them. */
function kinds(status) {
  const unsent = status.destinations.length === 1 ? [["unsent", "unsent", "accounting.unsent_by_reason", (s) => s.accounting.unsent_by_reason]]
    : status.destinations.map((d, i) => ["unsent", `unsent to ${d.name}`, `destinations.${i}.accounting.unsent_by_reason`, (s) => s.destinations[i]?.accounting.unsent_by_reason ?? {}]);
  return [
    ["dropped", "dropped", "accounting.dropped", (s) => s.accounting.dropped],
    ...unsent,
    ["lost by a tracer", "lost by a tracer", "client_lost", (s) => s.client_lost],
    ["collapsed", "collapsed", "collapsed", (s) => s.collapsed],
  ];
}

function drawLosses(status, since) {
  const losses = [], quiet = [];
  for (const [kind, what, path, of] of kinds(status)) {
    for (const [reason, spans] of Object.entries(of(status))) {
      if (spans === 0) quiet.push(reason);
      else losses.push({ kind, what, reason, spans, path: `${path}.${reason}`, rate: since((s) => of(s)[reason] || 0) });
    }
  }
  byId("losses").hidden = losses.length === 0;
  byId("no-losses").hidden = losses.length > 0;
  write(byId("no-losses"), `Nothing was dropped, unsent, lost by a tracer or collapsed: all ${quiet.length} reasons stand at 0.`);
  rows(byId("loss-rows"), losses,
    () => [cell("", "head"), cell("Reason"), cell("Spans", "n"), cell("a second", "n"), cell("", "wide soft")],
    (loss, cells) => {
      write(cells[0], loss.what);
      set(cells[0], { class: loss.what === "collapsed" ? "head is-held" : "head is-lost" });
      write(cells[1], loss.reason);
      set(cells[1], { class: "reason" });
      figure(cells[2], loss.path, count(loss.spans));
      write(cells[3], rate(loss.rate));
      const known = advice[loss.kind];
      prose(cells[4], known[loss.reason] || known[""] || "");
    });
}
