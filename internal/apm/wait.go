package apm

import (
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// patience forwards requests, and lets those whose bodies are held here wait for an
// agent that is away, such as one that restarts. Only where there was no connection:
// nothing of such a request was sent, and nothing of it was counted.
type patience struct {
	transport http.RoundTripper
	most      time.Duration   // that one request waits; 0: none does
	stopping  <-chan struct{} // nobody waits any more

	waiting atomic.Int64
	waited  atomic.Uint64 // requests
}

// maxWaiting bounds the requests that wait at a time, next to the bytes of their
// bodies. One more gets its answer at once.
const maxWaiting = 256

// The pauses between two tries to reach the agent.
const (
	firstPause = 20 * time.Millisecond
	lastPause  = 500 * time.Millisecond
)

// RoundTrip forwards a request.
func (p *patience) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := p.transport.RoundTrip(r)
	if p.most == 0 || r.GetBody == nil || !isAway(err) {
		return resp, err
	}
	defer p.waiting.Add(-1)
	if p.waiting.Add(1) > maxWaiting {
		return nil, err
	}
	p.waited.Add(1)
	over := time.NewTimer(p.most)
	defer over.Stop()
	for pause := firstPause; isAway(err); pause = min(2*pause, lastPause) {
		select {
		case <-over.C:
			return nil, err
		case <-p.stopping:
			return nil, err
		case <-r.Context().Done():
			return nil, err
		case <-time.After(pause):
		}
		again := *r // with the same header, which is marked when there is a connection
		if again.Body, err = r.GetBody(); err == nil {
			resp, err = p.transport.RoundTrip(&again)
		}
	}
	return resp, err
}

// isAway says whether there was no connection to the agent.
func isAway(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}
