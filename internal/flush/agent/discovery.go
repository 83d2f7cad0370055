package agent

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/flush"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

const (
	// discoveryPause is how long discovery waits before it looks again, where the agent
	// could not be asked or wanted no statistics.
	discoveryPause = 10 * time.Second
	// infoTimeout is how long one reading of /info may take.
	infoTimeout = 10 * time.Second
	// maxAgentVersion bounds what is shown of what an agent calls itself.
	maxAgentVersion = 100
)

// errNoStatistics is why an agent that is looked for is not found where somebody answers.
var errNoStatistics = errors.New("who answers takes no statistics")

// discovery is what is known of the agent. It reads /info until that has succeeded once,
// again when the agent's state changes or a payload is not answered, since another agent
// may come in its place, and every pause while statistics are not wanted, because an agent
// can be upgraded under a running daemon. An agent that nobody named is found when it says that it wants
// them; until then it has said nothing.
type discovery struct {
	log    *slog.Logger
	client client
	url    URL

	joined    atomic.Bool // it was named, or found
	features  *featureStore
	info      atomic.Pointer[info]   // as it was last read
	lastState atomic.Pointer[string] // of the agent, by an answer
	changed   chan struct{}          // holds a token when /info is to be read now

	// Of the goroutine that watches.
	failures int  // to read /info, in a row
	isLogged bool // the log says that the agent answers
}

func newDiscovery(log *slog.Logger, c client, url URL, lookedFor bool) *discovery {
	d := &discovery{
		log: log, client: c, url: url,
		features: newFeatureStore(DefaultFeatures()), changed: make(chan struct{}, 1),
	}
	d.info.Store(&info{})
	d.lastState.Store(new(string))
	d.joined.Store(!lookedFor)
	return d
}

// Watch asks the agent what it wants, until its context ends.
func (d *discovery) Watch(ctx context.Context, link *flush.Link) {
	for d.await(ctx, link, d.readInfo(ctx, link)) {
	}
}

// await returns when /info is to be read, false when no more. known says whether the last
// reading succeeded.
func (d *discovery) await(ctx context.Context, link *flush.Link, known bool) bool {
	var again <-chan time.Time
	if !known || !d.Features().Stats {
		again = time.After(discoveryPause)
	}
	for {
		select {
		case <-ctx.Done():
			return false
		case <-again:
			return true
		case <-link.Lost():
		case <-d.changed:
		}
		if d.Features().Stats {
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
func (d *discovery) readInfo(ctx context.Context, link *flush.Link) bool {
	asking, cancel := context.WithTimeout(ctx, infoTimeout)
	defer cancel()
	said, err := d.client.info(asking)
	if err == nil && !said.features.Stats && !d.Joined() {
		err = errNoStatistics
	}
	if err != nil {
		if ctx.Err() == nil {
			link.Silent()
			d.failed(err)
		}
		return false
	}
	if d.failures > 0 {
		link.Returned()
	} else {
		link.Answers()
	}
	d.failures = 0
	if !d.isLogged {
		d.isLogged = true
		says := "agent answers"
		if !d.Joined() {
			says = "agent found; statistics go there from now on"
		}
		d.log.Info(says, "agent", d.url.String(),
			"agent_version", said.version, "takes_statistics", said.features.Stats)
	}
	d.info.Store(&said)
	d.publish(func(Features) Features { return said.features })
	d.joined.Store(true)
	return true
}

// failed notes that the agent did not say what it wants. An agent that was never there is
// the commonest mistake of a new installation, and without traffic nothing else would show
// it, so it has a line of its own; of others the payloads tell. It comes with the second
// failure: daemon and agent often start together. That nobody is found who was only looked for is
// no mistake.
func (d *discovery) failed(err error) {
	d.failures++
	if d.failures != 2 || d.isLogged || !d.Joined() {
		d.log.Debug("agent info is not to be had", "agent", d.url.String(), "error", err)
		return
	}
	d.log.Warn("agent does not answer; is it running, and is --agent-url where it listens? "+
		"Until it does, payloads are kept for --retry-age", "agent", d.url.String(), "error", err)
}

// downgrade publishes that this agent has no statistics endpoint. Discovery finds out when
// it has one.
func (d *discovery) downgrade() {
	d.publish(func(now Features) Features { now.Stats = false; return now })
	d.lookAgain()
}

// publish changes the features, with a line in the log where statistics begin or cease to
// be wanted.
func (d *discovery) publish(edit func(Features) Features) {
	before, after := d.features.change(edit)
	switch {
	case before.Stats && !after.Stats:
		d.log.Warn("agent takes no statistics: downgraded; looking again every " + discoveryPause.String())
	case !before.Stats && after.Stats:
		d.log.Info("agent takes statistics again")
	}
}

// noticeState reads /info again where an answer to a payload shows that the agent's
// configuration has changed. Behind a proxy that rewrites /info its state and the answers'
// never agree; a state already acted upon is therefore not acted upon again.
func (d *discovery) noticeState(state string) {
	if state == "" || *d.lastState.Swap(&state) == state {
		return
	}
	if state != d.info.Load().state {
		d.lookAgain()
	}
}

// lookAgain has discovery read /info.
func (d *discovery) lookAgain() {
	select {
	case d.changed <- struct{}{}:
	default: // it is about to
	}
}

// Joined implements an optional interface of flush.
func (d *discovery) Joined() bool { return d.joined.Load() }

// Version is how the agent last called itself; "" before it was asked.
func (d *discovery) Version() string { return span.Text(d.info.Load().version, maxAgentVersion) }

// Features is what the agent wants at present. It is not to be written to.
func (d *discovery) Features() Features {
	now, _ := d.features.load()
	return now
}

// WatchFeatures returns the features and a channel that is closed as soon as they are no
// longer the present ones.
func (d *discovery) WatchFeatures() (Features, <-chan struct{}) { return d.features.load() }

// Wants implements an optional interface of flush.
func (d *discovery) Wants() (statistics bool, payloadBytes int) {
	now := d.Features()
	return now.Stats, now.MaxRequestBytes
}
