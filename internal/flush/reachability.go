package flush

import (
	"log/slog"
	"sync"
	"sync/atomic"
)

// reachability is whether the agent answers at all, be it with a refusal. An agent
// that was never there is the commonest mistake of a new installation, and
// without traffic nothing else would show it, so it has a line of its own.
type reachability struct {
	log *slog.Logger
	url AgentURL

	answers atomic.Bool // the last request was answered

	// Of discovery only.
	failures int  // to read /info, in a row
	logged   bool // the log says that the agent answers
}

// payloadTried notes whether a try to deliver was answered, and says whether the
// one before was and this is not.
func (r *reachability) payloadTried(answered bool) (lost bool) {
	return r.answers.Swap(answered) && !answered
}

// infoFailed notes that the agent did not say what it wants. Only an agent that
// was never there is worth a warning; of others the payloads tell. It comes with
// the second failure: daemon and agent often start together.
func (r *reachability) infoFailed(err error) {
	r.answers.Store(false)
	r.failures++
	if r.failures != 2 || r.logged {
		r.log.Debug("agent info is not to be had", "agent", r.url.String(), "error", err)
		return
	}
	r.log.Warn("agent does not answer; is it running, and is --agent-url where it listens? Until it does, payloads are kept for --retry-age",
		"agent", r.url.String(), "error", err)
}

// infoRead notes that the agent said what it wants, and says whether it was asked
// in vain before.
func (r *reachability) infoRead(said info) (returned bool) {
	r.answers.Store(true)
	returned, r.failures = r.failures > 0, 0
	if !r.logged {
		r.logged = true
		r.log.Info("agent answers", "agent", r.url.String(), "agent_version", said.version, "takes_statistics", said.features.Stats)
	}
	return returned
}

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
