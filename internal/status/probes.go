package status

import (
	"fmt"
	"net/http"
	"time"

	"go.uber.org/atomic"
)

// missedSeals is the number of flush intervals without a seal after which the daemon counts as
// stuck.
const missedSeals = 6

// probes answers liveness and readiness probes.
type probes struct {
	sources  *Sources
	interval time.Duration // flush interval
	ready    atomic.Bool
	wasReady atomic.Bool // has been ready
}

// SetReady sets whether clients can connect.
func (p *probes) SetReady(ready bool) {
	p.ready.Store(ready)
	if ready {
		p.wasReady.Store(true)
	}
}

// Alive returns an error if a restart would help, which is if cycles are no longer sealed. An
// unreachable agent is not a reason.
func (p *probes) Alive() error {
	last := p.sources.Aggregate.Stats().LastSeal
	if stuck := time.Since(last); stuck > missedSeals*p.interval {
		return fmt.Errorf("no cycle was sealed for %s", stuck.Round(time.Second))
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

// readyz answers readiness probes: the daemon is ready from the time when clients can connect until
// shutdown begins, while its sockets exist.
func (p *probes) readyz(w http.ResponseWriter, _ *http.Request) {
	if why := p.notReady(); why != "" {
		http.Error(w, why, http.StatusServiceUnavailable)
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

// missingSocket returns the reason why clients can't find a socket, or "".
func (p *probes) missingSocket() string {
	err := p.sources.Ingest.Unreachable()
	for i := range p.sources.Receivers {
		if d := &p.sources.Receivers[i]; err == nil && d.IsOn {
			err = d.Of.Unreachable()
		}
	}
	if err == nil {
		return ""
	}
	return "the socket is gone and can't be made again: " + err.Error()
}
