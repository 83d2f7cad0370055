package flush

import (
	"log/slog"
	"sync"
	"time"
)

// troubleEvery is how often at most the log says that a trouble of one kind begins: an
// agent that takes some payloads and others not would have a line for each.
const troubleEvery = 10 * time.Second

// outcomeLog writes one line when the outcome of tries changes, however many tries
// and payloads the change lasts.
type outcomeLog struct {
	log *slog.Logger

	mu     sync.Mutex
	last   trouble
	began  map[trouble]time.Time // when the last line of each was written
	losing bool                  // a line about lost spans was written since the last success
}

// trouble is what the log tells apart: a kind of outcome, and whether anybody answered.
type trouble struct {
	outcome outcome
	silent  bool
}

// tried notes the outcome of a try.
func (l *outcomeLog) tried(a attempt, s Stats) {
	now := trouble{a.outcome, a.silent}
	l.mu.Lock()
	defer l.mu.Unlock()
	if now == l.last {
		return
	}
	if a.outcome != accepted {
		if time.Since(l.began[now]) < troubleEvery {
			return // and its end is not told either
		}
		l.began[now] = time.Now()
	}
	l.last = now
	switch a.outcome {
	case accepted:
		l.losing = false
		l.log.Info("agent takes payloads again", "waiting_payloads", s.QueuePayloads, "held_spans", s.Held)
	case notYet:
		if a.silent {
			l.log.Warn("agent cannot be reached; payloads are kept and tried again", "error", a.err)
		} else {
			l.log.Warn("agent answers and does not take payloads; they are kept and tried again", "error", a.err)
		}
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
