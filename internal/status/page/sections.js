// Draws the sections of the page except for the accounting, one function each. All numbers are from /status. Texts from
// clients are in a bdi element, so that they can't change the text direction of the page.

import { destinationState, hasAgent, isAgent, upstreamState } from "./destination.js";
import { byId, cell, figure, make, rows, set, write } from "./dom.js";
import { drawAxis, drawCurve, makeCurve, usedDecades } from "./curve.js";
import { owner } from "./partitions.js";
import { bytes, clock, count, latency, percent, rate, span } from "./format.js";

/** Sets the text of a cell to a label from a client, or to otherwise for an empty label. */
function labeled(td, text, otherwise = "–") {
  const bdi = td.firstElementChild || td.appendChild(make("bdi"));
  write(bdi, text || otherwise);
}

/** Draws the usage of the cardinality limits, and the memory of all limits. */
export function drawLimits(status) {
  const lead = byId("limits-lead");
  if (!lead.firstChild) lead.append(make("span"), " of ", make("span"), " aggregates and ", make("span"), " of ", make("span"), " origins are in use in this interval.");
  const [live, most, origins, mostOrigins] = lead.children;
  figure(live, "aggregates.live", count(status.aggregates.live));
  figure(most, "aggregates.max", count(status.aggregates.max));
  figure(origins, "origins.live", count(status.origins.live));
  figure(mostOrigins, "origins.max", count(status.origins.max));
  const m = status.memory, largest = m.parts.slice(0, 3).map((part) => `${part.name} ${bytes(part.bytes)}`).join(", ");
  write(byId("memory-lead"), `${bytes(status.machine.resident_bytes)} of memory are in use; with all limits exhausted, it is at most ${bytes(m.total_bytes)}`
    + (m.limit_bytes > 0 ? `, of ${bytes(m.limit_bytes)} allowed by ${m.limit_source}` : "") + (m.preset ? ` (preset ${m.preset})` : "") + (largest ? `; the largest parts are ${largest}.` : "."));
}

/** Draws the labels that exceeded their budgets, in the last interval with such labels. */
export function drawOverflow({ overflow }) {
  byId("overflow").hidden = !overflow;
  if (!overflow) return;
  const more = overflow.labels_not_measured, labels = overflow.labels;
  write(byId("overflow-lead"), `The interval until ${clock(overflow.ended)} would have had about ${count(overflow.keys)} aggregates without budgets`
    + (more > 0 ? `; ${count(more)} more labels exceeded their budgets and were not measured` : "") + ". spanstatsd plan proposes flags.");
  byId("overflow-rows").parentElement.hidden = labels.length === 0;
  rows(byId("overflow-rows"), labels,
    () => [cell("", "head first"), cell("Label", "mono"), cell("Budget", "n"), cell("Wanted", "n"), cell("Collapsed", "wide")],
    (l, cells, i) => {
      labeled(cells[0], l.service);
      labeled(cells[1], l.label);
      figure(cells[2], `overflow.labels.${i}.budget`, count(l.budget));
      figure(cells[3], `overflow.labels.${i}.wanted`, count(l.wanted));
      labeled(cells[4], l.collapsed.map(({ value }) => value).join(", "));
    });
}

export function drawRings(status, since) {
  const rates = status.drainers.map((_, i) => since((s) => s.drainers[i]?.aggregated ?? 0));
  const all = rates.reduce((a, b) => a + (b ?? 0), 0);
  rows(byId("ring-rows"), status.drainers,
    () => [cell("", "head first"), cell("", "wide"), cell("", "wide")].map((td, i) => {
      if (i === 0) td.append(make("span"), make("span"));
      if (i === 1) td.append(make("span", { class: "meter" }, make("i")), make("span", { class: "note" }));
      if (i === 2) td.append(make("span", { class: "meter" }, make("i"), make("b")),
        make("span", { class: "note" }, make("span"), " of ", make("span"), " slots, at most ", make("span")));
      return td;
    }),
    (drainer, cells, i) => {
      const ring = drainer.ring, high = ring.high_water / ring.slots;
      write(cells[0].lastElementChild, `${i}`);
      set(cells[0].firstElementChild, { class: `owner ${owner(i)}` });
      const [load, loadNote] = cells[1].children;
      load.firstChild.style.width = `${all > 0 ? ((rates[i] ?? 0) / all) * 100 : 0}%`;
      const owned = status.partitions.drainers[i]?.partitions;
      set(load.firstChild, { class: owner(i) });
      write(loadNote, (rates[i] === null ? "–" : `${rate(rates[i])}, ${percent(all > 0 ? rates[i] / all : 0)}`) + (owned ? `, ${count(owned)} ${owned === 1 ? "partition" : "partitions"}` : ""));
      const [meter, note] = cells[2].children;
      set(meter, { class: `meter ${high > 0.9 ? "full" : high > 0.6 ? "tight" : ""}` });
      meter.children[0].style.width = `${(ring.used / ring.slots) * 100}%`;
      meter.children[1].style.left = `min(${high * 100}%, 100% - 2px)`;
      figure(note.children[0], `drainers.${i}.ring.used`, count(ring.used));
      figure(note.children[1], `drainers.${i}.ring.slots`, count(ring.slots));
      figure(note.children[2], `drainers.${i}.ring.high_water`, count(ring.high_water));
    });
}

/** Returns a text about the retry queue of a destination. */
const queued = (retry) => retry.payloads === 0 ? "empty"
  : `${count(retry.payloads)} payloads, ${bytes(retry.bytes)} of ${bytes(retry.max_bytes)}, the oldest for ${span(retry.oldest_seconds)} of ${span(retry.max_seconds)}`;

/** Draws all destinations, and then the upstreams of receivers. */
export function drawDestinations(status) {
  const all = status.destinations, upstreams = Object.values(status.receivers).filter((receiver) => receiver.forward);
  rows(byId("destination-rows"), [...all, ...upstreams],
    () => {
      const last = cell("", "wide");
      last.append(make("span"), make("bdi", { class: "second" }));
      return [cell("", "head"), cell("State"), cell("Flushed", "n"), cell("Pending", "n"), cell("Unsent", "n"), cell("Queue"), last];
    },
    (d, cells, i) => {
      if (i >= all.length) return drawUpstream(d, cells);
      labeled(cells[0], d.name);
      set(cells[0], { title: d.url });
      const [text, well] = destinationState(status, d);
      write(cells[1], text);
      set(cells[1], { class: well ? "is-good" : "is-lost" });
      figure(cells[2], `destinations.${i}.accounting.flushed`, count(d.accounting.flushed));
      figure(cells[3], `destinations.${i}.accounting.pending`, count(d.accounting.pending));
      figure(cells[4], `destinations.${i}.accounting.unsent`, count(d.accounting.unsent));
      set(cells[4], { class: d.accounting.unsent > 0 ? "n is-lost" : "n none" });
      write(cells[5], queued(d.retry));
      const [result, error] = cells[6].children, last = d.flushes[0];
      const [text6, kind] = last ? outcome(last) : ["–", ""];
      write(result, text6);
      set(result, { class: kind });
      write(error, last?.last_error || "");
      error.hidden = !last?.last_error;
    });
}

/** Draws the row of a receiver's upstream, with the results of the forwarded requests. */
function drawUpstream({ data, forward, forwarded }, cells) {
  labeled(cells[0], `${data} upstream`);
  set(cells[0], { title: forward.url });
  const [text, well] = upstreamState(forward);
  write(cells[1], text);
  set(cells[1], { class: well ? "is-good" : "is-lost" });
  for (const unused of [cells[2], cells[3], cells[4]]) {
    unused.removeAttribute("data-figure");
    write(unused, "–");
  }
  write(cells[5], "");
  const [result, error] = cells[6].children;
  const results = nonZero(forwarded ?? {});
  write(result, results ? `requests: ${results}` : "–");
  set(result, { class: well ? "" : "is-lost" });
  write(error, forward.last_error || "");
  error.hidden = !forward.last_error;
}

/** Returns the counts that are not 0, by result. */
const nonZero = (by) => Object.entries(by).filter(([, n]) => n > 0).map(([result, n]) => `${count(n)} ${result.replaceAll("_", " ")}`).join(", ");

export function drawAgent(status) {
  byId("agent").hidden = !hasAgent(status);
  if (!hasAgent(status)) return;
  const a = status.agent, destination = status.destinations.find(isAgent), { retry, accounting } = destination;
  const state = byId("agent-state");
  const [text, well] = destinationState(status, destination);
  write(state, text[0].toUpperCase() + text.slice(1));
  set(state, { class: `state ${well ? "is-good" : "is-lost"}` });
  const facts = [
    ["Address", a.url, "agent.url"], ["Version", a.version || "unknown", ""],
    ["Queue", accounting.before_discovery > 0 ? `${queued(retry)}; ${count(accounting.before_discovery)} spans were counted before the agent was discovered` : queued(retry), ""],
    ["Span kinds", a.span_kinds.join(", ") || "none", ""],
    ["Peer tags", `${a.peer_tags.length} requested`, ""],
    ["Next flush", `every ${span(status.cycle.interval_seconds)}, in about ${span(Math.max(0, status.cycle.interval_seconds - (Date.parse(status.at) - Date.parse(status.cycle.last_seal)) / 1000))}`, ""],
  ];
  const list = byId("agent-facts");
  facts.forEach(([name, value, path], i) => {
    if (!list.children[2 * i]) list.append(make("dt", {}, name), make("dd", {}, make("bdi")));
    const bdi = list.children[2 * i + 1].firstChild;
    path ? figure(bdi, path, value) : write(bdi, value);
  });
}

export function drawRequests(status) {
  const b = status.busiest, seconds = Math.max(0.001, (Date.parse(b.end) - Date.parse(b.start)) / 1000);
  byId("requests").hidden = b.rows.length === 0;
  if (b.rows.length === 0) return;
  write(byId("requests-lead"), `The busiest ${count(b.rows.length)} of ${count(b.aggregates)} label sets, in the ${span(seconds)} before ${clock(b.end)}. `
    + "All latency curves have the same axis; errors are red, and the dotted line is p99.");
  const axis = usedDecades(b);
  drawAxis(axis);
  rows(byId("request-rows"), b.rows,
    () => {
      const name = cell("", "head");
      name.append(make("span", { class: "first" }, make("bdi"), " ", make("span", {}, make("bdi"))), make("span", { class: "second mono" }, make("bdi")));
      const curve = cell("", "curve");
      curve.append(makeCurve());
      return [name, cell("rate", "n"), cell("errors", "n"), cell("p50", "n"), cell("p95", "n"), cell("p99", "n"), curve];
    },
    (row, cells, i) => {
      const [first, second] = cells[0].children;
      figure(first.children[0], `busiest.rows.${i}.service`, row.service);
      figure(first.children[1].firstChild, `busiest.rows.${i}.operation`, row.operation);
      figure(second.firstChild, `busiest.rows.${i}.resource`, row.resource);
      set(second, { title: row.resource });
      write(cells[1], rate(row.hits / seconds));
      write(cells[2], row.errors === 0 ? "–" : percent(row.errors / row.hits));
      set(cells[2], { class: row.errors > 0 ? "n is-lost" : "n none" });
      write(cells[3], latency(row.p50_seconds));
      write(cells[4], latency(row.p95_seconds));
      write(cells[5], latency(row.p99_seconds));
      drawCurve(cells[6].firstChild, row, axis, `half within ${latency(row.p50_seconds)}, 99 % within ${latency(row.p99_seconds)}`);
    });
}

const outcomes = {
  accepted: ["accepted", "is-good"], rejected: ["rejected", "is-lost"], not_wanted: ["not wanted", "is-lost"],
  ambiguous: ["no response", "is-lost"], given_up: ["dropped", "is-lost"], superseded: ["superseded", "is-pending"],
};

function outcome(flush) {
  const parts = Object.entries(flush.outcomes).map(([result, n]) => {
    const [text, kind] = outcomes[result] || [result, ""];
    return [n === flush.payloads && n > 0 ? text : `${n} ${text}`, kind];
  });
  if (flush.pending > 0) parts.push([`${flush.pending} pending, ${flush.tries} ${flush.tries === 1 ? "try" : "tries"}`, "is-pending"]);
  const worst = ["is-lost", "is-pending", "is-good"].find((k) => parts.some(([, kind]) => kind === k)) || "";
  return [parts.map(([text]) => text).join(", "), worst];
}

export function drawFlushes(status) {
  byId("flushes").hidden = status.flushes.length === 0;
  const to = status.destinations.length > 1 ? ` to the destination ${status.destinations[0].name}` : "";
  write(byId("flushes-lead"), `The last ${count(status.flushes.length)}${to}, the newest first.` + (isAgent(status.destinations[0]) ? " A flush has one payload per origin." : ""));
  rows(byId("flush-rows"), status.flushes,
    () => {
      const outcome = cell("Outcome");
      outcome.append(make("span"), make("bdi", { class: "second" }));
      return [cell("", "head"), outcome, cell("Spans", "n"), cell("Payloads", "n"), cell("Size", "n"), cell("Encoded in", "n"), cell("Settled after", "n")];
    },
    (flush, cells, i) => {
      write(cells[0], clock(flush.sealed));
      const [text, kind] = outcome(flush), [result, error] = cells[1].children;
      write(result, text);
      set(result, { class: kind });
      write(error, flush.last_error || "");
      error.hidden = !flush.last_error;
      figure(cells[2], `flushes.${i}.spans`, count(flush.spans));
      figure(cells[3], `flushes.${i}.payloads`, count(flush.payloads));
      write(cells[4], bytes(flush.bytes));
      write(cells[5], latency(flush.encode_seconds));
      write(cells[6], flush.settle_seconds ? latency(flush.settle_seconds) : "–");
    });
}

export function drawOrigins(status) {
  const b = status.busiest, seconds = Math.max(0.001, (Date.parse(b.end) - Date.parse(b.start)) / 1000);
  byId("origins").hidden = b.origins.length === 0;
  write(byId("origins-lead"), "Services and hosts that sent spans in the last interval, the busiest first.");
  rows(byId("origin-rows"), b.origins,
    () => [cell("", "head first"), cell("Environment"), cell("Version"), cell("Language"), cell("Host"), cell("Spans", "n"), cell("Aggregates", "n")],
    (origin, cells) => {
      [origin.service, origin.env, origin.version, origin.lang, origin.host].forEach((text, i) => labeled(cells[i], text));
      write(cells[5], rate(origin.spans / seconds));
      write(cells[6], count(origin.aggregates));
    });
}

/** Draws one row per HTTP receiver, and the native clients if there was one or there is no other receiver. */
export function drawSenders(status, since) {
  const receivers = Object.entries(status.receivers);
  byId("receivers").hidden = receivers.length === 0;
  rows(byId("receiver-rows"), receivers,
    () => [cell("", "head first"), cell("Requests"), cell("Connections", "n"), cell("Last activity", "n")],
    ([name, receiver], cells) => {
      labeled(cells[0], receiver.data);
      set(cells[0], { title: `receiver ${name}` });
      const failed = receiver.failed > 0 ? `; ${count(receiver.failed)} without a response from the agent` : "";
      write(cells[1], (nonZero(receiver.requests) || "none yet") + failed);
      write(cells[2], `${count(receiver.connections.live)} of ${count(receiver.connections.max)}`);
      write(cells[3], receiver.last_response.startsWith("0001") ? "–" : `${span((Date.parse(status.at) - Date.parse(receiver.last_response)) / 1000)} ago`);
    });
  drawClients(status, since, receivers.length > 0);
}

/** Draws the clients of the native socket. */
function drawClients(status, since, hasReceivers) {
  byId("clients").hidden = status.connections.total === 0 && hasReceivers;
  const lead = byId("clients-lead");
  if (!lead.firstChild) lead.append(make("span"), " of ", make("span"), " connections to the native socket", make("span"));
  figure(lead.children[0], "connections.live", count(status.connections.live));
  figure(lead.children[1], "connections.max", count(status.connections.max));
  write(lead.children[2], status.clients_not_shown > 0 ? `; the ${count(status.clients.length)} clients with the most spans are shown.` : ".");
  byId("client-rows").parentElement.hidden = status.clients.length === 0;
  rows(byId("client-rows"), status.clients,
    () => [cell("", "head first"), cell("Client"), cell("Process"), cell("Container"), cell("Spans", "n"), cell("Rate", "n"), cell("Dropped", "n"), cell("Connected", "n")],
    (client, cells, i) => {
      labeled(cells[0], client.service + (client.env ? ` · ${client.env}` : ""));
      labeled(cells[1], client.client + (client.lang ? ` (${client.lang})` : ""));
      write(cells[2], `${client.pid || "hidden"}, user ${client.uid}`);
      labeled(cells[3], client.container.length > 20 ? client.container.slice(0, 12) : client.container);
      set(cells[3], { title: client.container });
      figure(cells[4], `clients.${i}.received`, count(client.received));
      const same = (c) => c.pid === client.pid && c.since === client.since && c.service === client.service;
      write(cells[5], rate(since((s) => s.clients.find(same)?.received ?? null)));
      write(cells[6], count(client.dropped));
      set(cells[6], { class: client.dropped > 0 ? "n is-lost" : "n none" });
      write(cells[7], span((Date.parse(status.at) - Date.parse(client.since)) / 1000));
    });
}

export function drawConfig(status) {
  const chosen = byId("chosen").checked;
  const settings = status.config.filter((s) => !chosen || s.origin !== "default");
  rows(byId("config-rows"), settings,
    () => {
      const from = cell("From");
      from.append(make("span", { class: "chip" }), " ", make("code"));
      return [cell("", "head reason"), cell("Value", "mono"), from];
    },
    (s, cells, _, row) => {
      set(row, { class: s.origin === "default" ? "by-default" : "" });
      write(cells[0], `--${s.name}`);
      const own = s.value === "" || s.value === "[]" ? "" : s.value;
      labeled(cells[1], s.effective && own ? `${own} (${s.effective})` : s.effective || own);
      write(cells[2].firstChild, s.origin);
      write(cells[2].lastElementChild, s.variable || (s.origin === "memory" || s.origin === "descriptors" ? `instead of ${s.default}` : ""));
    });
}
