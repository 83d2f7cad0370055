// Describes the states of destinations. The sections about destinations and the summary above the accounting use the
// same texts.

import { span } from "./format.js";

/** Returns a text about the state of the agent, and whether the state is good. */
export function agentState(status) {
  const { stats, state } = status.agent;
  if (state === "discovering") return ["is looked for there, not found", true];
  if (state === "unreachable") return ["does not answer", false];
  if (!stats) return ["takes no statistics", false];
  if (state === "rejecting") return ["answers, and does not take payloads", false];
  return ["takes payloads", true];
}

/** Returns a text about the state of a destination other than the agent, and whether the state is good. */
export function destinationState(destination, at) {
  if (destination.scraped) return [scraped(destination.scraped, at), true];
  if (destination.state === "unreachable") return ["does not answer", false];
  if (destination.state === "rejecting") return ["answers, and does not take payloads", false];
  return ["takes payloads", true];
}

/** Returns a text about the last scrape of a destination. Go's zero time means that there was none. */
function scraped({ last }, at) {
  const since = (Date.parse(at) - Date.parse(last)) / 1000;
  return last.startsWith("0001") ? "nobody has scraped it yet" : `scraped ${span(Math.max(0, since))} ago`;
}

/** Returns a text about the state of the OTLP receiver's upstream, and whether the state is good. */
export function forwardState(forward) {
  if (forward.state === "unreachable") return ["does not answer", false];
  if (forward.state === "rejecting") return ["answers, and did not take the last request", false];
  return ["takes requests", true];
}

/** Returns whether a destination is the agent. */
export const isAgent = (destination) => destination.name === "agent";

/** Returns whether there is an agent. An agent that has not been discovered yet does not count. */
export const hasAgent = (status) => status.agent.state !== "off" && status.agent.state !== "discovering";

/** Returns the first destination in a bad state with a text about it, or null if all states are good. */
export function troubled(status) {
  for (const destination of status.destinations) {
    const agent = isAgent(destination);
    const [text, well] = agent ? agentState(status) : destinationState(destination, status.at);
    if (!well) return { destination, text: `The ${agent ? "agent" : `destination ${destination.name}`} ${text}.` };
  }
  return null;
}
