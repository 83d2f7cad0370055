package doctor

import "github.com/spanstatsd/spanstatsd/internal/status"

// sums checks the accounting: how many spans were received, and what happened to them.
func (f *Findings) sums(s *status.Status) {
	const about = "sums"
	dropped := uint64(0)
	for _, n := range s.Books.Dropped {
		dropped += n
	}
	if !s.Books.Balanced {
		f.add(Wrong, about, requestFixes["bug"],
			"the books do not balance: %d received, %d counted, %d dropped",
			s.Books.Received, s.Books.Aggregated, dropped)
	} else {
		f.ok(about, "%d spans received = %d counted + %d not counted (%d of them ignored) + %d on their way",
			s.Books.Received, s.Books.Aggregated, dropped, s.Books.Dropped["ignored"], s.Books.InTransit)
	}
	for i := range s.Destinations {
		b := &s.Destinations[i].Books
		f.ok(about, "of %d counted %s has %d; %d did not get there, %d are still here", s.Books.Aggregated,
			s.Destinations[i].Name, b.Flushed, b.Unsent, b.Held)
	}
	f.reasons(Wrong, about, s.Books.Dropped, droppedFixes, "%d spans came and were not counted: %s")
	if n := s.Books.Dropped["left_to_agent"]; n > 0 {
		f.add(Notice, about, "none is needed for the totals; the door's line says why",
			"%d spans could not be counted here and went on, for the agent to count", n)
	}
	f.reasons(Wrong, about, s.ClientLost, lostFixes, "%d spans never came, as their clients say: %s")
	for _, name := range sortedNonZero(s.Collapsed) {
		fix := "find what has so many values and shorten it, or raise --cardinality-limit " + name + "=N"
		switch name {
		case "whole_key":
			fix = "raise --max-aggregates and --label-bytes"
		case "origin":
			fix = "raise --max-origins, or name less in --otlp-resource-attributes"
		}
		f.add(Notice, about, fix, "%d spans are counted without their own %s, which had too many values",
			s.Collapsed[name], name)
	}
	if s.Early > 0 {
		f.add(Notice, about, "set the clock of who sends them by NTP", "%d spans end in the future", s.Early)
	}
}

// requestFixes are fixes for requests that were not counted, by result.
var requestFixes = map[string]string{
	"unparsable": "what its sender writes is no valid body; spanstatsd's log says what is wrong with it",
	"no_room":    "there is too little CPU or memory to count it: raise --ring-slots, or the limits",
	"too_many":   "it has more spans than the rings have slots: raise --ring-slots, or lower the batch",
	"too_large":  "raise the door's --...-max-body and --...-max-body-bytes, or lower the batch",
	"busy":       "all workers that count were taken: give the daemon more CPU",
	"not_wanted": "the agent takes no statistics: see its line below",
	"refused":    "path, method or headers are not accepted here: check the sender's endpoint and protocol",
	"bug":        "please report it, with the daemon's log",
}

const clientFix = "a client writes what the protocol does not allow: spanstatsd-lab check-client says what"

// unsentFixes are fixes for spans in abandoned payloads, by reason.
var unsentFixes = map[string]string{
	"expired":     "it was away for longer than --retry-age: see why, or raise that",
	"queue_full":  "it was away for too long: raise --retry-bytes",
	"rejected":    "it refused the payload: its own log says why",
	"ambiguous":   "it did not answer what was sent whole: it may have those spans; look at its load",
	"not_wanted":  "it takes no statistics: see its line above",
	"shutdown":    "raise --shutdown-grace, and terminationGracePeriodSeconds with it",
	"unencodable": requestFixes["bug"],
}

// droppedFixes are fixes for spans that were received and not counted, by reason.
var droppedFixes = map[string]string{
	"ring_full":       "the drainers can't keep up: give CPU, or raise --drainers or --ring-slots",
	"over_share":      "one tracer sends more than can be counted: give CPU, or raise --ring-slots",
	"malformed":       clientFix,
	"batch_too_large": requestFixes["too_many"],
	"not_wanted":      requestFixes["not_wanted"],
	"refused":         "their connection was refused, see door socket, or a Zipkin request found no room, see door zipkin",
	"ring_contended":  requestFixes["bug"],
	"bug":             requestFixes["bug"],
	"shutdown":        unsentFixes["shutdown"],
}

// lostFixes are fixes for spans that clients have lost, by reason.
var lostFixes = map[string]string{
	"buffer_full":  "the daemon was slower than the client: give it CPU, or the client a larger buffer",
	"closed":       "the application ended before its client was closed",
	"daemon_died":  "see why the daemon was killed",
	"ambiguous":    "the same; of these nobody knows",
	"disconnected": "the daemon was away: start it before the application, as a sidecar of init containers",
	"too_large":    "a span's labels are longer than a message may be",
	"not_wanted":   requestFixes["not_wanted"],
	"other":        "the client's log says why",
}
