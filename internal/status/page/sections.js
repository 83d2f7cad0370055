// Draws the sections below the accounting, one function each. All numbers are from /status. Texts from clients are in a
// bdi element, so that they can't change the text direction of the page.

import { agentState, destinationState, forwardState, hasAgent, isAgent } from "./destination.js";
import { byId, cell, figure, make, rows, set, write } from "./dom.js";
import { drawAxis, drawCurve, makeCurve, usedDecades } from "./curve.js";
import { owner } from "./partitions.js";
import { bytes, clock, count, latency, percent, rate, span } from "./format.js";

/** Sets the text of a cell to a label from a client, or to otherwise for an empty label. */
function labelled(td, text, otherwise = "–") {
  const bdi = td.firstElementChild || td.appendChild(make("bdi"));
  write(bdi, text || otherwise);
}

export function drawRings(status, since) {
  const rates = status.drainers.map((_, i) => since((s) => s.drainers[i]?.aggregated ?? 0));
  const all = rates.reduce((a, b) => a + (b ?? 0), 0);
  const lead = byId("rings-lead");
  if (!lead.firstChild) lead.append(make("span"), " of ", make("span"), " aggregates and ", make("span"), " of ", make("span"), " origins in this interval.");
  const [live, most, origins, mostOrigins] = lead.children;
  figure(live, "aggregates.live", count(status.aggregates.live));
  figure(most, "aggregates.max", count(status.aggregates.max));
  figure(origins, "origins.live", count(status.origins.live));
  figure(mostOrigins, "origins.max", count(status.origins.max));
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
const waiting = (retry) => retry.payloads === 0 ? "nothing"
  : `${count(retry.payloads)} payloads, ${bytes(retry.bytes)} of ${bytes(retry.max_bytes)}, the oldest for ${span(retry.oldest_seconds)} of ${span(retry.max_seconds)}`;

/** Draws all destinations, and the OTLP receiver's upstream as the last row. It hides the section if there is only an agent. */
export function drawDestinations(status) {
  const forward = status.receivers.otlp?.forward, all = status.destinations;
  byId("destinations").hidden = all.length === 1 && hasAgent(status) && !forward;
  rows(byId("destination-rows"), forward ? [...all, forward] : all,
    () => {
      const how = cell("", "wide");
      how.append(make("span"), make("bdi", { class: "second" }));
      return [cell("", "head"), cell("State"), cell("Flushed", "n"), cell("Held", "n"), cell("Unsent", "n"), cell("Waiting"), how];
    },
    (d, cells, i) => {
      if (i === all.length) return drawForward(status.receivers.otlp, cells);
      labelled(cells[0], d.name);
      set(cells[0], { title: d.url });
      const [text, well] = isAgent(d) ? agentState(status) : destinationState(d, status.at);
      write(cells[1], text);
      set(cells[1], { class: well ? "is-good" : "is-lost" });
      figure(cells[2], `destinations.${i}.accounting.flushed`, count(d.accounting.flushed));
      figure(cells[3], `destinations.${i}.accounting.pending`, count(d.accounting.pending));
      figure(cells[4], `destinations.${i}.accounting.unsent`, count(d.accounting.unsent));
      set(cells[4], { class: d.accounting.unsent > 0 ? "n is-lost" : "n none" });
      write(cells[5], waiting(d.retry));
      const [how, said] = cells[6].children, last = d.flushes[0];
      const [became, kind] = last ? outcome(last) : ["–", ""];
      write(how, became);
      set(how, { class: kind });
      write(said, last?.last_error || "");
      said.hidden = !last?.last_error;
    });
}

/** Draws the row of the OTLP receiver's upstream, with the results of the forwarded requests. */
function drawForward({ forward, forwarded }, cells) {
  labelled(cells[0], "OTLP goes on");
  set(cells[0], { title: forward.url });
  const [text, well] = forwardState(forward);
  write(cells[1], text);
  set(cells[1], { class: well ? "is-good" : "is-lost" });
  for (const unused of [cells[2], cells[3], cells[4]]) write(unused, "–");
  write(cells[5], "");
  const [how, said] = cells[6].children;
  const became = Object.entries(forwarded).filter(([, n]) => n > 0).map(([result, n]) => `${count(n)} ${result}`).join(", ");
  write(how, became ? `requests: ${became}` : "–");
  set(how, { class: well ? "" : "is-lost" });
  write(said, forward.last_error || "");
  said.hidden = !forward.last_error;
}

export function drawAgent(status) {
  byId("agent").hidden = !hasAgent(status);
  if (!hasAgent(status)) return;
  const a = status.agent, { retry, accounting: books } = status.destinations.find(isAgent);
  const state = byId("agent-state");
  const [text, well] = agentState(status);
  write(state, text[0].toUpperCase() + text.slice(1));
  set(state, { class: `state ${well ? "is-good" : "is-lost"}` });
  const facts = [
    ["Address", a.url, "agent.url"], ["Version", a.version || "not known yet", ""],
    ["Waiting", books.before_discovery > 0 ? `${waiting(retry)}; ${count(books.before_discovery)} spans were counted before it was found` : waiting(retry), ""],
    ["Kinds", a.span_kinds.join(", ") || "none", ""],
    ["Peer tags", `${a.peer_tags.length} wanted`, ""],
    ["Next flush", `every ${span(status.cycle.interval_seconds)}, in about ${span(Math.max(0, status.cycle.interval_seconds - (Date.parse(status.at) - Date.parse(status.cycle.last_seal)) / 1000))}`, ""],
  ];
  const list = byId("agent-facts");
  facts.forEach(([name, value, path], i) => {
    if (!list.children[2 * i]) list.append(make("dt", {}, name), make("dd", {}, make("bdi")));
    const bdi = list.children[2 * i + 1].firstChild;
    path ? figure(bdi, path, value) : write(bdi, value);
  });
}

export function drawBusiest(status) {
  const b = status.busiest, seconds = Math.max(0.001, (Date.parse(b.end) - Date.parse(b.start)) / 1000);
  byId("busiest").hidden = b.rows.length === 0;
  if (b.rows.length === 0) return;
  write(byId("busiest-lead"), `${count(b.rows.length)} of ${count(b.aggregates)} aggregates, in the ${span(seconds)} to ${clock(b.end)}. `
    + "Curves share one axis, most frequent latency highest; errors are red, the dotted line is p99.");
  const axis = usedDecades(b);
  drawAxis(axis);
  rows(byId("busiest-rows"), b.rows,
    () => {
      const name = cell("", "head");
      name.append(make("span", { class: "first" }, make("bdi"), " ", make("span", {}, make("bdi"))), make("span", { class: "second mono" }, make("bdi")));
      const curve = cell("", "curve");
      curve.append(makeCurve());
      return [name, cell("hits", "n"), cell("errors", "n"), cell("p50", "n"), cell("p95", "n"), cell("p99", "n"), curve];
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
  ambiguous: ["not answered", "is-lost"], given_up: ["given up", "is-lost"], superseded: ["superseded", "is-held"],
};

function outcome(flush) {
  const parts = Object.entries(flush.outcomes).map(([result, n]) => {
    const [text, kind] = outcomes[result] || [result, ""];
    return [n === flush.payloads && n > 0 ? text : `${n} ${text}`, kind];
  });
  if (flush.pending > 0) parts.push([`${flush.pending} waiting, ${flush.tries} ${flush.tries === 1 ? "try" : "tries"}`, "is-held"]);
  const worst = ["is-lost", "is-held", "is-good"].find((k) => parts.some(([, kind]) => kind === k)) || "";
  return [parts.map(([text]) => text).join(", "), worst];
}

export function drawFlushes(status) {
  byId("flushes").hidden = status.flushes.length === 0;
  const to = status.destinations.length > 1 ? ` to the destination ${status.destinations[0].name}` : "";
  write(byId("flushes-lead"), `The last ${count(status.flushes.length)}${to}, the newest first.` + (isAgent(status.destinations[0]) ? " A flush has one payload an origin." : ""));
  rows(byId("flush-rows"), status.flushes,
    () => {
      const how = cell("Outcome");
      how.append(make("span"), make("bdi", { class: "second" }));
      return [cell("", "head"), how, cell("Spans", "n"), cell("Payloads", "n"), cell("Size", "n"), cell("Encoded in", "n"), cell("Settled after", "n")];
    },
    (flush, cells, i) => {
      write(cells[0], clock(flush.sealed));
      const [text, kind] = outcome(flush), [how, said] = cells[1].children;
      write(how, text);
      set(how, { class: kind });
      write(said, flush.last_error || "");
      said.hidden = !flush.last_error;
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
  write(byId("origins-lead"), "Who was counted in that interval, the busiest first. Each has a payload of its own.");
  rows(byId("origin-rows"), b.origins,
    () => [cell("", "head first"), cell("Environment"), cell("Version"), cell("Language"), cell("Host"), cell("Spans", "n"), cell("Aggregates", "n")],
    (origin, cells) => {
      [origin.service, origin.env, origin.version, origin.lang, origin.host].forEach((text, i) => labelled(cells[i], text));
      write(cells[5], rate(origin.spans / seconds));
      write(cells[6], count(origin.aggregates));
    });
}

export function drawTracers(status, since) {
  const lead = byId("tracers-lead");
  if (!lead.firstChild) lead.append(make("span"), " of ", make("span"), " connections", make("span"));
  figure(lead.children[0], "connections.live", count(status.connections.live));
  figure(lead.children[1], "connections.max", count(status.connections.max));
  write(lead.children[2], status.clients_not_shown > 0 ? `; the ${count(status.clients.length)} with most spans are shown.` : ".");
  drawApm(status);
  byId("tracer-rows").parentElement.hidden = status.clients.length === 0;
  rows(byId("tracer-rows"), status.clients,
    () => [cell("", "head first"), cell("Client"), cell("Process"), cell("Container"), cell("Spans", "n"), cell("a second", "n"), cell("Dropped", "n"), cell("Connected", "n")],
    (tracer, cells, i) => {
      labelled(cells[0], tracer.service + (tracer.env ? ` · ${tracer.env}` : ""));
      labelled(cells[1], tracer.client + (tracer.lang ? ` (${tracer.lang})` : ""));
      write(cells[2], `${tracer.pid || "hidden"}, user ${tracer.uid}`);
      labelled(cells[3], tracer.container.length > 20 ? tracer.container.slice(0, 12) : tracer.container);
      set(cells[3], { title: tracer.container });
      figure(cells[4], `clients.${i}.received`, count(tracer.received));
      const same = (t) => t.pid === tracer.pid && t.since === tracer.since && t.service === tracer.service;
      write(cells[5], rate(since((s) => s.clients.find(same)?.received ?? null)));
      write(cells[6], count(tracer.dropped));
      set(cells[6], { class: tracer.dropped > 0 ? "n is-lost" : "n none" });
      write(cells[7], span((Date.parse(status.at) - Date.parse(tracer.since)) / 1000));
    });
}

/** Draws the requests of the Datadog receiver. Its tracers have no rows in the table. */
function drawApm(status) {
  const lead = byId("apm-lead");
  lead.hidden = !status.receivers.apm;
  if (!status.receivers.apm) return;
  const { counted, ...rest } = status.receivers.apm.requests;
  const others = Object.entries(rest).filter(([, n]) => n > 0).map(([result, n]) => `, ${count(n)} ${result.replaceAll("_", " ")}`).join("");
  write(lead, `Through the agent's API: ${count(counted ?? 0)} requests with traces counted${others}; ${count(status.receivers.apm.failed)} not answered by the agent.`);
}

export function drawConfig(status) {
  const m = status.memory, largest = m.parts.slice(0, 3).map((part) => `${part.name} ${bytes(part.bytes)}`).join(", ");
  write(byId("memory-lead"), `At their limits these values come to ${bytes(m.total_bytes)} of memory`
    + (m.limit_bytes > 0 ? `, of ${bytes(m.limit_bytes)} that ${m.limit_source} allows` : "") + (m.preset ? `, by the preset ${m.preset}` : "") + (largest ? `; the largest parts are ${largest}.` : "."));
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
      labelled(cells[1], s.effective && own ? `${own} (${s.effective})` : s.effective || own);
      write(cells[2].firstChild, s.origin);
      write(cells[2].lastElementChild, s.variable || (s.origin === "memory" || s.origin === "descriptors" ? `instead of ${s.default}` : ""));
    });
}
