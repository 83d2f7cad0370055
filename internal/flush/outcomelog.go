package flush

import (
	"log/slog"
	"sync"
)

// outcomeLog writes one line when the outcome of tries changes, however many tries
// and payloads the change lasts.
type outcomeLog struct {
	log *slog.Logger

	mu     sync.Mutex
	last   outcome
	losing bool // a line about lost spans was written since the last success
}

// tried notes the outcome of a try.
func (l *outcomeLog) tried(a attempt, s Stats) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a.outcome == l.last {
		return
	}
	l.last = a.outcome
	switch a.outcome {
	case accepted:
		l.losing = false
		l.log.Info("agent takes payloads again", "waiting_payloads", s.QueuePayloads, "held_spans", s.Held)
	case notYet:
		l.log.Warn("agent cannot be reached; payloads are kept and tried again", "error", a.err)
	case refused:
		l.log.Error("agent rejects payloads; their spans are lost", "error", a.err)
	case unknown:
		l.log.Warn("agent did not answer; whether it counted the payload is unknown", "error", a.err)
	case notWanted: // the features say so, once
	}
}

// lost notes a payload given up. The tries that caused it may be long past, so
// the first loss of an outage has a line of its own.
func (l *outcomeLog) lost(reason Reason, p *payload) {
	if reason.result() != ResultGivenUp {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.losing {
		l.losing = true
		l.log.Warn("giving up payloads until the agent takes them again",
			"reason", string(reason), "spans", p.spans, "tries", p.tries, "error", p.lastErr)
	}
}
