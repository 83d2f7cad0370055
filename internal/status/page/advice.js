// Advice for the operator, by kind of loss and reason. A reason without an entry is shown without advice.

export const advice = {
  dropped: {
    ring_full: "The drainers can't keep up: more CPU, --drainers, --ring-slots, or --buffer=block if tracers may wait.",
    over_share: "One tracer sends more than the drainers can count and was held to its share: more CPU, --drainers, --ring-slots.",
    left_to_agent: "Traces that could not be counted here and were forwarded, so that the agent counts them.",
    ignored: "A rule of --ignore is about them.",
    ring_contended: "Please report it.",
    malformed: "A tracer is broken; the log says which kind of fault.",
    batch_too_large: "A tracer ignores the welcome's largest batch; see docs/protocol.md.",
    not_wanted: "The agent takes no statistics: it is too old, or has them off.",
    refused: "Written on a connection that was refused, or behind the fault that ended it; the protocol errors say which.",
    shutdown: "Raise --shutdown-grace.",
    bug: "A defect of ours. Please report it with the log.",
  },
  unsent: {
    rejected: "The destination refused the payload; below it says why.",
    not_wanted: "The destination takes no statistics.",
    ambiguous: "The destination was sent the payload whole and never answered. It may have been counted.",
    expired: "The destination was away, or did not take it, for longer than --retry-age.",
    queue_full: "The destination was away, or did not take it, for longer than --retry-bytes lasts.",
    shutdown: "The destination did not take it while we stopped. Raise --shutdown-grace.",
    unencodable: "Please report it.",
  },
  "lost by a tracer": {
    buffer_full: "The daemon was away or slow for longer than the tracer's buffer lasts.",
    disconnected: "The daemon was away for longer than the tracer waits for one (MaxAway of the Go client).",
  },
  collapsed: {
    whole_key: "Counted in its origin's overflow aggregate: the table was full, or the memory for numbered keys; see --max-aggregates and --max-key-bytes-total.",
    origin: "Counted with its labels, but for an origin that many have in common: there were more than --max-origins, or one process had half of them.",
    "": "Counted, with this label replaced: it has more values than its budget. Mend the tag, or raise --cardinality-limit.",
  },
};
