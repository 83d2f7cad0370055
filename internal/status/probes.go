package status

import (
	"fmt"
	"net/http"
	"time"

	"go.uber.org/atomic"
)

// missedSeals is how many flush intervals may pass without a seal before the
// daemon calls itself stuck.
const missedSeals = 6

// probes say whether a restart would help, and whether tracers may be sent here.
type probes struct {
	sources  *Sources
	interval time.Duration // of flushes
	ready    atomic.Bool
	opened   atomic.Bool // was ready once
}

// SetReady says whether tracers may be sent here.
func (p *probes) SetReady(ready bool) {
	p.ready.Store(ready)
	if ready {
		p.opened.Store(true)
	}
}

// Alive is an error when a restart would help: when cycles are not sealed any more. An agent
// that is away is no such reason.
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

// readyz is true between the moment that tracers may connect and the moment
// that the daemon begins to stop, as long as they find the socket.
func (p *probes) readyz(w http.ResponseWriter, _ *http.Request) {
	if why := p.notReady(); why != "" {
		http.Error(w, why, http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// notReady is why tracers may not be sent here, "" where they may.
func (p *probes) notReady() string {
	switch {
	case p.ready.Load():
		return p.lack()
	case p.opened.Load():
		return "stopping: tracers are not accepted any more"
	}
	return "starting: tracers are not accepted yet"
}

// lack is why tracers can't find a socket of ours, "" where they can.
func (p *probes) lack() string {
	err := p.sources.Ingest.Unreachable()
	for i := range p.sources.Doors {
		if d := &p.sources.Doors[i]; err == nil && d.IsOn {
			err = d.Of.Unreachable()
		}
	}
	if err == nil {
		return ""
	}
	return "the socket is gone and can't be made again: " + err.Error()
}
