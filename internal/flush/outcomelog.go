package flush

import (
	"log/slog"
	"sync"
	"time"
)

// troubleEvery is how often at most the log says that a trouble of one kind begins: a
// destination that takes some payloads and others not would have a line for each.
const troubleEvery = 10 * time.Second

// warningEvery is how often at most the log has a warning that a destination gives with what
// it takes: one that has something to say says it with each payload.
const warningEvery = time.Hour

// outcomeLog writes one line when the outcome of tries changes, however many tries
// and payloads the change lasts.
type outcomeLog struct {
	log  *slog.Logger
	name string // of the destination
	// totals says that what is not taken is in the next payload too.
	totals bool

	mu     sync.Mutex
	last   trouble
	began  map[trouble]time.Time // when the last line of each was written
	warned time.Time             // when the last warning was written
	losing bool                  // a line about lost spans was written since the last success
}

// trouble is what the log tells apart: a kind of outcome, whether anybody answered, and
// whether a part was left out.
type trouble struct {
	outcome Outcome
	silent  bool
	partly  bool
}

func newOutcomeLog(log *slog.Logger, x Exporter) *outcomeLog {
	return &outcomeLog{log: log, name: x.Name(), totals: SendsTotals(x), began: map[trouble]time.Time{}}
}

// tried notes the outcome of a try, and how many payloads wait and spans are held.
func (l *outcomeLog) tried(a Attempt, waiting int, held uint64) {
	now := trouble{a.Outcome, a.Silent, a.Rejected > 0}
	l.mu.Lock()
	defer l.mu.Unlock()
	if a.Outcome == OutcomeAccepted && !now.partly && a.Err != nil && time.Since(l.warned) >= warningEvery {
		l.warned = time.Now()
		l.log.Warn(l.name+" takes payloads, and warns of something", "warning", a.Err)
	}
	if now == l.last {
		return
	}
	if now != (trouble{}) {
		if time.Since(l.began[now]) < troubleEvery {
			return // and its end is not told either
		}
		l.began[now] = time.Now()
	}
	l.last = now
	switch a.Outcome {
	case OutcomeAccepted:
		if now.partly {
			l.log.Error(l.name+" leaves out a part of payloads; its spans are lost", "error", a.Err)
			return
		}
		l.losing = false
		l.log.Info(l.name+" takes payloads again", "waiting_payloads", waiting, "held_spans", held)
	case OutcomeNotYet:
		if a.Silent {
			l.log.Warn(l.name+" cannot be reached; payloads are kept and tried again", "error", a.Err)
		} else {
			l.log.Warn(l.name+" answers and does not take payloads; they are kept and tried again",
				"error", a.Err)
		}
	case OutcomeRefused:
		if l.totals {
			l.log.Error(l.name+" rejects payloads; their spans are held for the next", "error", a.Err)
			return
		}
		l.log.Error(l.name+" rejects payloads; their spans are lost", "error", a.Err)
	case OutcomeUnknown:
		l.log.Warn(l.name+" did not answer; whether it counted the payload is unknown", "error", a.Err)
	case OutcomeNotWanted: // its exporter says so, once
	}
}

// lost notes a payload given up. The tries that caused it may be long past, so
// the first loss of an outage has a line of its own.
func (l *outcomeLog) lost(reason Reason, p *Payload) {
	if reason.result() != ResultGivenUp {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.losing {
		l.losing = true
		l.log.Warn("giving up payloads until the "+l.name+" takes them again",
			"reason", string(reason), "spans", p.Spans, "tries", p.tries, "error", p.lastErr)
	}
}
