// How the agent does, in words; the section about it and the sentence above the books
// say the same.

/** What it does, and whether that is well. */
export function agentState(status) {
  const { stats, state } = status.agent;
  if (state === "silent") return ["does not answer", false];
  if (!stats) return ["takes no statistics", false];
  if (state === "answers") return ["answers, and does not take payloads", false];
  return ["takes payloads", true];
}
