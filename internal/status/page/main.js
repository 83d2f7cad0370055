// Requests /status and draws the sections. Only one request is in flight at a time. A hidden page polls less often. If
// the daemon does not respond, the page retries with exponential backoff, and shows that it is out of date.

import { byId, write } from "./dom.js";
import { drawBooks } from "./books.js";
import { drawHistory } from "./curve.js";
import { clock, count, span } from "./format.js";
import { drawPartitions } from "./partitions.js";
import { drawAgent, drawBusiest, drawConfig, drawDestinations, drawFlushes, drawOrigins, drawRings, drawTracers } from "./sections.js";

const LOOK = 1500, HIDDEN = 30000, SLOWEST = 15000, TIMEOUT = 8000;
const ROOM = 160; // maximum number of rate samples, which cover four minutes
const WINDOW = 5; // number of statuses that a rate is computed from, so that it does not flicker

let looks = []; // last statuses, the oldest first
let pace = [];
let failures = 0, answered = 0, timer = 0;

/** Returns the rate of a number over the last statuses, or null if it is unknown. figure reads the number from a status. */
function since(figure) {
  const last = looks.at(-1);
  for (const first of looks.slice(0, -1)) {
    const from = figure(first), to = figure(last);
    if (from === null || to === null || from === undefined || to === undefined) continue;
    const seconds = (Date.parse(last.at) - Date.parse(first.at)) / 1000;
    return seconds > 0 ? (to - from) / seconds : null;
  }
  return null;
}

/** Stores a status and draws it. */
function show(status) {
  if (looks.length && looks.at(-1).started !== status.started) looks = pace = []; // the daemon was restarted
  if (looks.length && looks.at(-1).at === status.at) return;
  looks = [...looks, status].slice(-WINDOW);
  const now = since((s) => s.accounting.received);
  if (now !== null) pace = [...pace, now].slice(-ROOM);
  document.title = `spanstatsd – ${now === null ? "" : count(Math.round(now)) + " spans/s"}`;
  write(byId("version"), `${status.version} · up ${span(status.uptime_seconds)}`);
  write(byId("pace"), now === null ? "–" : count(Math.round(now)));
  draw();
  document.documentElement.dataset.at = status.at;
}

function draw() {
  const status = looks.at(-1);
  if (!status) return;
  drawHistory(pace, ROOM);
  drawBooks(status, since);
  drawRings(status, since);
  drawPartitions(status);
  drawAgent(status);
  drawDestinations(status);
  drawBusiest(status);
  drawFlushes(status);
  drawOrigins(status);
  drawTracers(status, since);
  drawConfig(status);
}

async function ask() {
  const answer = await fetch("status", { cache: "no-store", signal: AbortSignal.timeout(TIMEOUT) });
  if (!answer.ok) throw new Error(`it answered ${answer.status}`);
  return answer.json();
}

async function look() {
  clearTimeout(timer);
  timer = 0;
  let status = null, why = null;
  try {
    status = await ask();
  } catch (error) {
    why = error;
  }
  if (status) {
    failures = 0;
    answered = Date.now();
    show(status); // outside of try: an error in here is a bug of the page, not of the daemon
  } else {
    failures++;
  }
  say(why);
  const next = failures ? Math.min(LOOK * 2 ** (failures - 1), SLOWEST) : LOOK;
  timer = setTimeout(look, document.hidden ? Math.max(next, HIDDEN) : next);
}

/** Shows whether the page is up to date. why is the error of the last request, or null. */
function say(why) {
  document.body.dataset.state = failures === 0 ? "live" : "stale";
  write(byId("pulse"), failures === 0 ? "live" : "no answer");
  const banner = byId("stale");
  banner.hidden = failures === 0;
  if (failures === 0) return;
  const seen = answered ? `What you see is from ${clock(answered)}.` : "Nothing has been seen of it yet.";
  const reason = why && why.message.startsWith("it answered") ? `: ${why.message}` : "";
  write(banner, `The daemon does not answer${reason}. ${seen} It is asked again.`);
}

document.addEventListener("visibilitychange", () => { if (!document.hidden && timer) look(); });
byId("chosen").addEventListener("change", draw);
new ResizeObserver(draw).observe(byId("books"));
look();
