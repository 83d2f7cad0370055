package flush

import (
	"context"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// discoveryPause is how long discovery waits before it looks again, where the
// agent could not be asked or wanted no statistics.
const discoveryPause = 10 * time.Second

// discover is the goroutine that reads /info: until it has succeeded once, again
// when the agent's state changes or a payload is not answered, since another agent
// may come in its place, and every pause while statistics are not wanted,
// because an agent can be upgraded under a running daemon.
func (f *Flusher) discover() {
	for f.awaitDiscovery(f.readInfo()) {
	}
}

// awaitDiscovery returns when /info is to be read, false when no more. known
// says whether the last reading succeeded.
func (f *Flusher) awaitDiscovery(known bool) bool {
	var again <-chan time.Time
	if !known || !f.Features().Stats {
		again = time.After(discoveryPause)
	}
	for {
		select {
		case <-f.closing.Done():
			return false
		case <-again:
			return true
		case <-f.rediscover:
			if f.Features().Stats {
				return true
			}
			// A downgrade was just seen on an answer. Asking at once would find
			// the same agent that said so.
			if again == nil {
				again = time.After(discoveryPause)
			}
		}
	}
}

// readInfo asks the agent once and publishes what it says.
func (f *Flusher) readInfo() bool {
	ctx, cancel := context.WithTimeout(f.closing, f.cfg.Timeout)
	defer cancel()
	said, err := f.agent.info(ctx)
	if err != nil {
		if f.closing.Err() == nil {
			f.reachability.infoFailed(err)
		}
		return false
	}
	if returned := f.reachability.infoRead(said); returned {
		notify(f.returned)
	}
	f.info.Store(&said)
	f.publish(func(Features) Features { return said.features })
	return true
}

// downgrade publishes that this agent has no statistics endpoint. Discovery
// finds out when it has one.
func (f *Flusher) downgrade() {
	f.publish(func(now Features) Features { now.Stats = false; return now })
	notify(f.rediscover)
}

// publish changes the features, with a line in the log where statistics begin
// or cease to be wanted.
func (f *Flusher) publish(edit func(Features) Features) {
	before, after := f.features.change(edit)
	switch {
	case before.Stats && !after.Stats:
		f.cfg.Log.Warn("agent takes no statistics: downgraded; looking again every " + discoveryPause.String())
	case !before.Stats && after.Stats:
		f.cfg.Log.Info("agent takes statistics again")
	}
}

// noticeState reads /info again where an answer to a payload shows that the
// agent's configuration has changed. Behind a proxy that rewrites /info its state
// and the answers' never agree; a state already acted upon is therefore not acted
// upon again.
func (f *Flusher) noticeState(state string) {
	if state == "" || state == f.lastState {
		return
	}
	f.lastState = state
	if state != f.info.Load().state {
		notify(f.rediscover)
	}
}

// maxAgentVersion bounds what is shown of what an agent calls itself.
const maxAgentVersion = 100

// AgentVersion is how the agent last called itself; "" before it was asked.
func (f *Flusher) AgentVersion() string { return span.Text(f.info.Load().version, maxAgentVersion) }
