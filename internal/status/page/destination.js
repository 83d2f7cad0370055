// Describes the states of destinations and upstreams. The headline and the section about destinations use the same texts.

import { span } from "./format.js";

/** Returns a text about the state of a destination, and whether the state is good. */
export function destinationState(status, destination) {
  const { scraped, state } = destination;
  if (scraped) return [lastScrape(scraped, status.at), true];
  if (state === "discovering") return ["is not discovered yet", true];
  if (state === "unreachable") return ["does not respond", false];
  if (isAgent(destination) && !status.agent.stats) return ["does not accept statistics", false];
  if (state === "rejecting") return ["responds, but does not accept payloads", false];
  return ["accepts payloads", true];
}

/** Returns a text about the last scrape of a destination. Go's zero time means that there was none. */
function lastScrape({ last }, at) {
  const since = (Date.parse(at) - Date.parse(last)) / 1000;
  return last.startsWith("0001") ? "not scraped yet" : `scraped ${span(Math.max(0, since))} ago`;
}

/** Returns a text about the state of a receiver's upstream, and whether the state is good. */
export function upstreamState(forward) {
  if (forward.state === "unreachable") return ["does not respond", false];
  if (forward.state === "rejecting") return ["rejected the last request", false];
  return ["accepts requests", true];
}

/** Returns whether a destination is the agent. */
export const isAgent = (destination) => destination.name === "agent";

/** Returns whether there is an agent. An agent that has not been discovered yet does not count. */
export const hasAgent = (status) => status.agent.state !== "off" && status.agent.state !== "discovering";

/** Returns the first destination in a bad state with a text about it, or null if all states are good. */
export function inTrouble(status) {
  for (const destination of status.destinations) {
    const [text, well] = destinationState(status, destination);
    if (!well) return { destination, text: `The ${isAgent(destination) ? "agent" : `destination ${destination.name}`} ${text}.` };
  }
  return null;
}
