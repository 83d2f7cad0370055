package apm

import (
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// retryTransport forwards requests, and retries those whose bodies are held here while
// the agent can't be connected to, for instance because it restarts. Only connecting is
// retried: nothing of such a request was sent, and nothing of it was counted.
type retryTransport struct {
	transport http.RoundTripper
	maxWait   time.Duration   // of one request; 0: none is retried
	stopping  <-chan struct{} // closed when no request may wait any more

	waiting atomic.Int64
	waited  atomic.Uint64 // requests
}

// maxWaiting bounds the requests that wait at a time, besides the bytes of their bodies.
// One more is answered at once.
const maxWaiting = 256

// The pauses between two attempts to connect.
const (
	firstPause = 20 * time.Millisecond
	lastPause  = 500 * time.Millisecond
)

// RoundTrip forwards a request.
func (t *retryTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.transport.RoundTrip(r)
	if t.maxWait == 0 || r.GetBody == nil || !isDialError(err) {
		return resp, err
	}
	defer t.waiting.Add(-1)
	if t.waiting.Add(1) > maxWaiting {
		return nil, err
	}
	t.waited.Add(1)
	timeout := time.NewTimer(t.maxWait)
	defer timeout.Stop()
	for pause := firstPause; isDialError(err); pause = min(2*pause, lastPause) {
		select {
		case <-timeout.C:
			return nil, err
		case <-t.stopping:
			return nil, err
		case <-r.Context().Done():
			return nil, err
		case <-time.After(pause):
		}
		retry := *r // with the same header, which is marked when there is a connection
		if retry.Body, err = r.GetBody(); err == nil {
			resp, err = t.transport.RoundTrip(&retry)
		}
	}
	return resp, err
}

// isDialError reports whether there was no connection to the agent.
func isDialError(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}
