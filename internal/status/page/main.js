// Asks /status and has the sections drawn. One request is under way at a time;
// a page that nobody looks at asks seldom; a daemon that does not answer is
// asked again more and more slowly, and the page says that it is out of date.

import { byId, write } from "./dom.js";
import { drawBooks } from "./books.js";
import { drawHistory } from "./curve.js";
import { clock, count, span } from "./format.js";
import { drawPartitions } from "./partitions.js";
import { drawAgent, drawBusiest, drawConfig, drawDestinations, drawFlushes, drawOrigins, drawRings, drawTracers } from "./sections.js";

const LOOK = 1500, HIDDEN = 30000, SLOWEST = 15000, TIMEOUT = 8000;
const ROOM = 160; // samples of the pace that are kept, four minutes of them
const WINDOW = 5; // looks that a rate is taken over, so that it stands still

let looks = []; // the last few statuses, oldest first
let pace = [];
let failures = 0, answered = 0, timer = 0;

/** How fast a figure of status rose over the last looks; null when not known. */
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

/** Takes an answer in and draws it. */
function show(status) {
  if (looks.length && looks.at(-1).started !== status.started) looks = pace = []; // another daemon
  if (looks.length && looks.at(-1).at === status.at) return;
  looks = [...looks, status].slice(-WINDOW);
  const now = since((s) => s.books.received);
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
    show(status); // a mistake of ours in here is one for the console, not for the daemon
  } else {
    failures++;
  }
  say(why);
  const next = failures ? Math.min(LOOK * 2 ** (failures - 1), SLOWEST) : LOOK;
  timer = setTimeout(look, document.hidden ? Math.max(next, HIDDEN) : next);
}

/** Says whether what is shown is true at this moment. */
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
