package flush

import (
	"log/slog"
	"sync"
)

// link is what the log knows of the way to the agent. It writes one line when
// that changes, however many tries and payloads the change lasts.
type link struct {
	log *slog.Logger

	mu   sync.Mutex
	now  verdict
	lost bool // a line about lost spans was written since the last success
}

// observe notes the outcome of a try.
func (l *link) observe(a answer, s Stats) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a.verdict == l.now {
		return
	}
	l.now = a.verdict
	switch a.verdict {
	case accepted:
		l.lost = false
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

// lose notes a payload given up. The tries that caused it may be long past, so
// the first loss of an outage has a line of its own.
func (l *link) lose(reason Reason, p *payload) {
	if reason.result() != ResultGivenUp {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.lost {
		l.lost = true
		l.log.Warn("giving up payloads until the agent takes them again",
			"reason", string(reason), "spans", p.spans, "tries", p.attempts, "error", p.lastErr)
	}
}
