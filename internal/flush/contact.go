package flush

import (
	"log/slog"
	"sync"
)

// contact is whether the agent answers at all, be it with a refusal. An agent
// that was never there is the commonest mistake of a new installation, and
// without traffic nothing else would show it, so it has a line of its own.
type contact struct {
	log *slog.Logger
	url AgentURL

	mu      sync.Mutex
	answers bool // the last request was answered
	misses  int  // in a row
	greeted bool // the log says that somebody is
}

// heard notes whether a payload was answered, and says whether contact is lost
// with it.
func (c *contact) heard(answered bool) (lost bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	lost = c.answers && !answered
	c.answers = answered
	return lost
}

// missing notes that the agent did not say what it wants. Only an agent that
// was never there is worth a warning; of others the payloads tell. It comes with
// the second miss: daemon and agent often start together.
func (c *contact) missing(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers = false
	c.misses++
	if c.misses != 2 || c.greeted {
		c.log.Debug("agent info is not to be had", "agent", c.url.String(), "error", err)
		return
	}
	c.log.Warn("agent does not answer; is it running, and is --agent-url where it listens? Until it does, payloads are kept for --retry-age",
		"agent", c.url.String(), "error", err)
}

// found notes that the agent said what it wants, and says whether it has come
// back with that: whether it was asked in vain before.
func (c *contact) found(said info) (back bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers = true
	back, c.misses = c.misses > 0, 0
	if !c.greeted {
		c.greeted = true
		c.log.Info("agent answers", "agent", c.url.String(), "agent_version", said.version, "takes_statistics", said.features.Stats)
	}
	return back
}

func (c *contact) isKept() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.answers
}
