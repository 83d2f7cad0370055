package agent

import (
	"context"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/flush"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// discoveryPause is how long discovery waits before it looks again, where the
// agent could not be asked or wanted no statistics.
const discoveryPause = 10 * time.Second

// infoTimeout is how long one reading of /info may take.
const infoTimeout = 10 * time.Second

// Watch implements flush.Exporter. It is discovery: it reads /info until that has
// succeeded once, again when the agent's state changes or a payload is not answered,
// since another agent may come in its place, and every pause while statistics are not
// wanted, because an agent can be upgraded under a running daemon.
func (e *Exporter) Watch(ctx context.Context, link *flush.Link) {
	for e.awaitDiscovery(ctx, link, e.readInfo(ctx, link)) {
	}
}

// awaitDiscovery returns when /info is to be read, false when no more. known
// says whether the last reading succeeded.
func (e *Exporter) awaitDiscovery(ctx context.Context, link *flush.Link, known bool) bool {
	var again <-chan time.Time
	if !known || !e.Features().Stats {
		again = time.After(discoveryPause)
	}
	for {
		select {
		case <-ctx.Done():
			return false
		case <-again:
			return true
		case <-link.Lost():
		case <-e.changed:
		}
		if e.Features().Stats {
			return true
		}
		// A downgrade was just seen on an answer. Asking at once would find
		// the same agent that said so.
		if again == nil {
			again = time.After(discoveryPause)
		}
	}
}

// readInfo asks the agent once and publishes what it says.
func (e *Exporter) readInfo(ctx context.Context, link *flush.Link) bool {
	asking, cancel := context.WithTimeout(ctx, infoTimeout)
	defer cancel()
	said, err := e.client.info(asking)
	if err != nil {
		if ctx.Err() == nil {
			link.Silent()
			e.contact.failed(err)
		}
		return false
	}
	if e.contact.made(said) {
		link.Returned()
	} else {
		link.Answers()
	}
	e.info.Store(&said)
	e.publish(func(Features) Features { return said.features })
	return true
}

// downgrade publishes that this agent has no statistics endpoint. Discovery
// finds out when it has one.
func (e *Exporter) downgrade() {
	e.publish(func(now Features) Features { now.Stats = false; return now })
	e.lookAgain()
}

// publish changes the features, with a line in the log where statistics begin
// or cease to be wanted.
func (e *Exporter) publish(edit func(Features) Features) {
	before, after := e.features.change(edit)
	switch {
	case before.Stats && !after.Stats:
		e.cfg.Log.Warn("agent takes no statistics: downgraded; looking again every " + discoveryPause.String())
	case !before.Stats && after.Stats:
		e.cfg.Log.Info("agent takes statistics again")
	}
}

// noticeState reads /info again where an answer to a payload shows that the
// agent's configuration has changed. Behind a proxy that rewrites /info its state
// and the answers' never agree; a state already acted upon is therefore not acted
// upon again.
func (e *Exporter) noticeState(state string) {
	if state == "" || *e.lastState.Swap(&state) == state {
		return
	}
	if state != e.info.Load().state {
		e.lookAgain()
	}
}

// lookAgain has discovery read /info.
func (e *Exporter) lookAgain() {
	select {
	case e.changed <- struct{}{}:
	default: // it is about to
	}
}

// maxAgentVersion bounds what is shown of what an agent calls itsele.
const maxAgentVersion = 100

// Version is how the agent last called itself; "" before it was asked.
func (e *Exporter) Version() string { return span.Text(e.info.Load().version, maxAgentVersion) }
