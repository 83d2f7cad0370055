// Advice for the operator, by kind of loss and reason. A reason without an entry is shown without advice.

export const advice = {
  dropped: {
    ring_full: "The drainers can't keep up: add CPU, raise --drainers or --ring-slots, or set --buffer=block if clients may wait.",
    over_share: "One sender sends more than its share of what the drainers can count: add CPU, or raise --drainers or --ring-slots.",
    left_to_agent: "Not lost: these traces were forwarded without being counted, so that the agent counts them.",
    ignored: "Not lost: a rule of --ignore excludes these spans.",
    ring_contended: "This is a bug: please report it with the log of the daemon.",
    malformed: "A client violates the protocol; the log has the kind of error.",
    batch_too_large: "A client sends larger batches than the daemon announces; see docs/protocol.md.",
    not_wanted: "The agent does not accept statistics: update it, or enable them.",
    refused: "The connection was rejected, or closed after a protocol error; the protocol errors have the reason.",
    shutdown: "The daemon stopped before it counted them: raise --shutdown-grace.",
    bug: "This is a bug: please report it with the log of the daemon.",
  },
  unsent: {
    rejected: "The destination rejected the payload; its response is listed under last flushes.",
    not_wanted: "The destination does not accept statistics: enable them there.",
    ambiguous: "The destination got the complete payload, but did not respond. It may have counted the spans.",
    expired: "The destination was unreachable or rejected payloads for longer than --retry-age.",
    queue_full: "The destination was unreachable or rejected payloads until the queue reached --retry-bytes.",
    shutdown: "The destination did not accept them before the daemon stopped: raise --shutdown-grace.",
    unencodable: "This is a bug: please report it with the log of the daemon.",
  },
  "lost in a client": {
    buffer_full: "The daemon was unreachable or slow until the buffer of the client was full.",
    disconnected: "The daemon was unreachable for longer than the client waits (MaxAway of the Go client).",
  },
  collapsed: {
    whole_key: "Counted in the overflow aggregate of their origin: raise --max-aggregates or --max-key-bytes-total.",
    origin: "Counted under a shared origin, because there are more than --max-origins, or one process has half of them.",
    "": "Counted with this label replaced, because it has too many values: shorten the values in the application, or raise --cardinality-limit.",
  },
};
