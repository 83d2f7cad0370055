// How a destination does, in words; the sections about them and the sentence above the
// books say the same.

/** What the agent does, and whether that is well. */
export function agentState(status) {
  const { stats, state } = status.agent;
  if (state === "silent") return ["does not answer", false];
  if (!stats) return ["takes no statistics", false];
  if (state === "answers") return ["answers, and does not take payloads", false];
  return ["takes payloads", true];
}

/** The same of any destination. */
export function destinationState(destination) {
  if (destination.state === "silent") return ["does not answer", false];
  if (destination.state === "answers") return ["answers, and does not take payloads", false];
  return ["takes payloads", true];
}

/** The same of where OTLP goes on to. */
export function forwardState(forward) {
  if (forward.state === "silent") return ["does not answer", false];
  if (forward.state === "answers") return ["answers, and did not take the last request", false];
  return ["takes requests", true];
}

/** Whether there is an agent; then it is the first destination. */
export const hasAgent = (status) => status.agent.state !== "off";

/** The first destination that does not do well, with what it does; null where all do. */
export function troubled(status) {
  for (const [i, destination] of status.destinations.entries()) {
    const agent = i === 0 && hasAgent(status);
    const [text, well] = agent ? agentState(status) : destinationState(destination);
    if (!well) return { destination, text: `The ${agent ? "agent" : `destination ${destination.name}`} ${text}.` };
  }
  return null;
}
