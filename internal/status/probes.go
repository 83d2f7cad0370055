package status

import (
	"fmt"
	"net/http"
	"time"

	"go.uber.org/atomic"
)

// missedIntervals is the number of flush intervals without a seal after which the daemon counts as
// stuck.
const missedIntervals = 6

// probes answers liveness and readiness probes.
type probes struct {
	sources  *Sources
	interval time.Duration // flush interval
	ready    atomic.Bool
	wasReady atomic.Bool // whether ready was ever true
}

// SetReady sets whether clients can connect, as reported by /readyz.
func (p *probes) SetReady(ready bool) {
	p.ready.Store(ready)
	if ready {
		p.wasReady.Store(true)
	}
}

// Alive returns an error if no export interval has ended for a long time, so that only a restart can
// help. An unreachable destination is no such error, because a restart would lose the queued spans.
func (p *probes) Alive() error {
	lastEnd := p.sources.Aggregate.Stats().LastSeal
	sinceEnd := time.Since(lastEnd)
	maxTime := missedIntervals * p.interval
	if sinceEnd > maxTime {
		return fmt.Errorf("aggregation is stuck: no interval has ended for %s; restart the daemon", sinceEnd.Round(time.Second))
	}
	return nil
}

func (p *probes) livez(w http.ResponseWriter, _ *http.Request) {
	if err := p.Alive(); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// readyz answers readiness probes. The daemon is ready while clients can connect: from the end of the
// startup to the beginning of the shutdown, unless a file of its Unix sockets was removed.
func (p *probes) readyz(w http.ResponseWriter, _ *http.Request) {
	if reason := p.notReady(); reason != "" {
		http.Error(w, reason, http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// notReady returns the reason why the daemon is not ready, or "".
func (p *probes) notReady() string {
	switch {
	case p.ready.Load():
		return p.missingSocket()
	case p.wasReady.Load():
		return "stopping: tracers are not accepted any more"
	}
	return "starting: tracers are not accepted yet"
}

// missingSocket returns the reason why the file of a Unix socket does not exist, or "" if all exist.
func (p *probes) missingSocket() string {
	err := p.sources.Ingest.Unreachable()
	for _, receiver := range p.sources.Receivers {
		if err == nil && receiver.IsEnabled {
			err = receiver.Server.Unreachable()
		}
	}
	if err == nil {
		return ""
	}
	return "the socket was removed and can't be created again: " + err.Error()
}
