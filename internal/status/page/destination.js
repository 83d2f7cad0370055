// How a destination does, in words; the sections about them and the sentence above the
// books say the same.

import { span } from "./format.js";

/** What the agent does, and whether that is well. */
export function agentState(status) {
  const { stats, state } = status.agent;
  if (state === "looked_for") return ["is looked for there, not found", true];
  if (state === "silent") return ["does not answer", false];
  if (!stats) return ["takes no statistics", false];
  if (state === "answers") return ["answers, and does not take payloads", false];
  return ["takes payloads", true];
}

/** The same of any destination. */
export function destinationState(destination, at) {
  if (destination.scraped) return [scraped(destination.scraped, at), true];
  if (destination.state === "silent") return ["does not answer", false];
  if (destination.state === "answers") return ["answers, and does not take payloads", false];
  return ["takes payloads", true];
}

/** When somebody last took what is kept to be scraped; the zero time stands for never. */
function scraped({ last }, at) {
  const since = (Date.parse(at) - Date.parse(last)) / 1000;
  return last.startsWith("0001") ? "nobody has scraped it yet" : `scraped ${span(Math.max(0, since))} ago`;
}

/** The same of where OTLP goes on to. */
export function forwardState(forward) {
  if (forward.state === "silent") return ["does not answer", false];
  if (forward.state === "answers") return ["answers, and did not take the last request", false];
  return ["takes requests", true];
}

/** Whether a destination is the agent. */
export const isAgent = (destination) => destination.name === "agent";

/** Whether there is an agent, and not just one that is looked for. */
export const hasAgent = (status) => status.agent.state !== "off" && status.agent.state !== "looked_for";

/** The first destination that does not do well, with what it does; null where all do. */
export function troubled(status) {
  for (const destination of status.destinations) {
    const agent = isAgent(destination);
    const [text, well] = agent ? agentState(status) : destinationState(destination, status.at);
    if (!well) return { destination, text: `The ${agent ? "agent" : `destination ${destination.name}`} ${text}.` };
  }
  return null;
}
