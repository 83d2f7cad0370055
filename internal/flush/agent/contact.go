package agent

import "log/slog"

// contact is what the log is told of whether the agent is there. An agent that was
// never there is the commonest mistake of a new installation, and without traffic
// nothing else would show it, so it has a line of its own. It is discovery's alone.
type contact struct {
	log *slog.Logger
	url URL

	failures int  // to read /info, in a row
	logged   bool // the log says that the agent answers
}

// failed notes that the agent did not say what it wants. Only an agent that was never
// there is worth a warning; of others the payloads tell. It comes with the second
// failure: daemon and agent often start together.
func (c *contact) failed(err error) {
	c.failures++
	if c.failures != 2 || c.logged {
		c.log.Debug("agent info is not to be had", "agent", c.url.String(), "error", err)
		return
	}
	c.log.Warn("agent does not answer; is it running, and is --agent-url where it listens? Until it does, payloads are kept for --retry-age",
		"agent", c.url.String(), "error", err)
}

// made notes that the agent said what it wants, and says whether it was asked in vain
// before.
func (c *contact) made(said info) (returned bool) {
	returned, c.failures = c.failures > 0, 0
	if !c.logged {
		c.logged = true
		c.log.Info("agent answers", "agent", c.url.String(), "agent_version", said.version, "takes_statistics", said.features.Stats)
	}
	return returned
}
