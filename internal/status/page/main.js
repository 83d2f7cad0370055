// Requests /status and draws the sections. Only one request is in flight at a time. A hidden page polls less often. If
// the daemon does not respond, the page retries with exponential backoff, and shows that it is out of date.

import { byId, write } from "./dom.js";
import { drawAccounting, drawCollapsed } from "./accounting.js";
import { drawHistory } from "./curve.js";
import { drawServiceGraph } from "./graph.js";
import { clock, count, span } from "./format.js";
import { drawPartitions } from "./partitions.js";
import { drawAgent, drawConfig, drawDestinations, drawFlushes, drawLimits, drawOrigins, drawOverflow, drawRequests, drawRings, drawSenders } from "./sections.js";

// Milliseconds between requests: usually, of a hidden page, and at most after failures. Timeout of a request.
const INTERVAL = 1500, HIDDEN = 30000, SLOWEST = 15000, TIMEOUT = 8000;
const SAMPLES = 160; // maximum number of rate samples, which cover four minutes
const WINDOW = 5; // number of statuses that a rate is computed from, so that it does not flicker

let statuses = []; // last statuses, the oldest first
let pace = [];
let failures = 0, answered = 0, timer = 0;

/** Returns the rate of a number over the last statuses, or null if it is unknown. figure reads the number from a status. */
function since(figure) {
  const last = statuses.at(-1);
  for (const first of statuses.slice(0, -1)) {
    const from = figure(first), to = figure(last);
    if (from === null || to === null || from === undefined || to === undefined) continue;
    const seconds = (Date.parse(last.at) - Date.parse(first.at)) / 1000;
    return seconds > 0 ? (to - from) / seconds : null;
  }
  return null;
}

/** Stores a status and draws it. */
function show(status) {
  if (statuses.length && statuses.at(-1).started !== status.started) statuses = pace = []; // the daemon was restarted
  if (statuses.length && statuses.at(-1).at === status.at) return;
  statuses = [...statuses, status].slice(-WINDOW);
  const now = since((s) => s.accounting.received);
  if (now !== null) pace = [...pace, now].slice(-SAMPLES);
  document.title = `spanstatsd – ${now === null ? "" : count(Math.round(now)) + " spans/s"}`;
  write(byId("version"), `${status.version} · up ${span(status.uptime_seconds)}`);
  write(byId("pace"), now === null ? "–" : count(Math.round(now)));
  draw();
  document.documentElement.dataset.at = status.at;
}

function draw() {
  const status = statuses.at(-1);
  if (!status) return;
  drawHistory(pace, SAMPLES);
  drawRequests(status);
  drawServiceGraph(status);
  drawAccounting(status, since);
  drawDestinations(status);
  drawAgent(status);
  drawFlushes(status);
  drawSenders(status, since);
  drawOrigins(status);
  drawLimits(status);
  drawCollapsed(status, since);
  drawOverflow(status);
  drawRings(status, since);
  drawPartitions(status);
  drawConfig(status);
}

async function request() {
  const response = await fetch("status", { cache: "no-store", signal: AbortSignal.timeout(TIMEOUT) });
  if (!response.ok) throw new Error(`status ${response.status}`);
  return response.json();
}

async function poll() {
  clearTimeout(timer);
  timer = 0;
  let status = null, failure = null;
  try {
    status = await request();
  } catch (error) {
    failure = error;
  }
  if (status) {
    failures = 0;
    answered = Date.now();
    show(status); // outside of try: an error in here is a bug of the page, not of the daemon
  } else {
    failures++;
  }
  showState(failure);
  const next = failures ? Math.min(INTERVAL * 2 ** (failures - 1), SLOWEST) : INTERVAL;
  timer = setTimeout(poll, document.hidden ? Math.max(next, HIDDEN) : next);
}

/** Shows whether the page is up to date. failure is the error of the last request, or null. */
function showState(failure) {
  document.body.dataset.state = failures === 0 ? "live" : "stale";
  write(byId("pulse"), failures === 0 ? "live" : "no response");
  const banner = byId("stale");
  banner.hidden = failures === 0;
  if (failures === 0) return;
  const seen = answered ? `The page shows its state at ${clock(answered)}.` : "The page has nothing to show yet.";
  const reason = failure && failure.message.startsWith("status ") ? ` (${failure.message})` : "";
  write(banner, `The daemon does not respond${reason}. ${seen} It retries automatically.`);
}

document.addEventListener("visibilitychange", () => { if (!document.hidden && timer) poll(); });
byId("chosen").addEventListener("change", draw);
new ResizeObserver(draw).observe(byId("accounting"));
poll();
