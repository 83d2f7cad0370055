package flush

import (
	"log/slog"
	"sync/atomic"
)

// AgentState is how the agent does, in one word.
type AgentState string

const (
	AgentSilent  AgentState = "silent"  // it did not answer the last request
	AgentAnswers AgentState = "answers" // and does not take payloads
	AgentTakes   AgentState = "takes"   // it took the last payload, or was offered none yet
)

// reachability is whether the agent answers at all, be it with a refusal, and whether
// it takes what it is offered. An agent that was never there is the commonest mistake of a new installation, and
// without traffic nothing else would show it, so it has a line of its own.
type reachability struct {
	log *slog.Logger
	url AgentURL

	answers atomic.Bool // the last request was answered
	refuses atomic.Bool // the last payload was not taken

	// Of discovery only.
	failures int  // to read /info, in a row
	logged   bool // the log says that the agent answers
}

// payloadTried notes whether a try to deliver was answered and taken, and says whether
// the one before was answered and this is not. That an agent has no endpoint for
// statistics the features say.
func (r *reachability) payloadTried(a attempt) (lost bool) {
	if a.outcome != notWanted {
		r.refuses.Store(a.outcome != accepted)
	}
	return r.answers.Swap(!a.silent) && a.silent
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
// in vain before. Whether one that is back takes payloads is to be seen.
func (r *reachability) infoRead(said info) (returned bool) {
	r.answers.Store(true)
	if returned, r.failures = r.failures > 0, 0; returned {
		r.refuses.Store(false)
	}
	if !r.logged {
		r.logged = true
		r.log.Info("agent answers", "agent", r.url.String(), "agent_version", said.version, "takes_statistics", said.features.Stats)
	}
	return returned
}
