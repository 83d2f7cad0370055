package doctor

// requestMends are for requests that were not counted, by their result.
var requestMends = map[string]string{
	"unread":     "what its sender writes is no valid body; spanstatsd's log says what is wrong with it",
	"no_room":    "there is too little CPU or memory to count it: raise --ring-slots, or the limits",
	"too_many":   "it has more spans than the rings have slots: raise --ring-slots, or lower the batch",
	"too_large":  "raise the door's --...-max-body and --...-max-body-bytes, or lower the batch",
	"busy":       "all workers that count were taken: give the daemon more CPU",
	"not_wanted": "the agent takes no statistics: see its line below",
	"refused":    "the destination of --otlp-forward refused them: see its log",
	"bug":        "please report it, with the daemon's log",
}

const clientMend = "a client writes what the protocol does not allow: spanstatsd-lab check-client says what"

// unsentMends are for spans in payloads that were given up, by their reason.
var unsentMends = map[string]string{
	"expired":     "it was away for longer than --retry-age: see why, or raise that",
	"queue_full":  "it was away for too long: raise --retry-bytes",
	"rejected":    "it refused the payload: its own log says why",
	"ambiguous":   "it did not answer what was sent whole: it may have those spans; look at its load",
	"not_wanted":  "it takes no statistics: see its line above",
	"shutdown":    "raise --shutdown-grace, and terminationGracePeriodSeconds with it",
	"unencodable": requestMends["bug"],
}

// droppedMends are for spans that were received and not counted, by their reason.
var droppedMends = map[string]string{
	"ring_full":       "the drainers can't keep up: give CPU, or raise --drainers or --ring-slots",
	"over_share":      "one tracer sends more than can be counted: give CPU, or raise --ring-slots",
	"malformed":       clientMend,
	"batch_too_large": requestMends["too_many"],
	"not_wanted":      requestMends["not_wanted"],
	"refused":         "their connection was refused: see door socket",
	"ring_contended":  requestMends["bug"],
	"bug":             requestMends["bug"],
	"shutdown":        unsentMends["shutdown"],
}

// lostMends are for spans that clients say they have lost before they came here.
var lostMends = map[string]string{
	"buffer_full":  "the daemon was slower than the client: give it CPU, or the client a larger buffer",
	"closed":       "the application ended before its client was closed",
	"daemon_died":  "see why the daemon was killed",
	"ambiguous":    "the same; of these nobody knows",
	"disconnected": "the daemon was away: start it before the application, as a sidecar of init containers",
	"too_large":    "a span's labels are longer than a message may be",
	"not_wanted":   requestMends["not_wanted"],
	"other":        "the client's log says why",
}
