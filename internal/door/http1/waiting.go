package http1

import (
	"context"
	"net"
	"sync/atomic"
	"time"
)

// Waiting has requests wait for a destination that can't be connected to, for instance because it
// restarts: nothing of them was sent. Safe for concurrent use.
type Waiting struct {
	MaxWait  time.Duration   // of one request; 0: none waits
	Stopping <-chan struct{} // closed when no request may wait any more

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

// Dial connects, and tries again until the destination is there or the request's time is over.
func (w *Waiting) Dial(ctx context.Context, dial func(context.Context) (net.Conn, error)) (net.Conn, error) {
	conn, err := dial(ctx)
	if err == nil || w.MaxWait <= 0 {
		return conn, err
	}
	defer w.waiting.Add(-1)
	if w.waiting.Add(1) > maxWaiting {
		return nil, err
	}
	w.waited.Add(1)
	timeout := time.NewTimer(w.MaxWait)
	defer timeout.Stop()
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		select {
		case <-timeout.C:
			return nil, err
		case <-w.Stopping:
			return nil, err
		case <-ctx.Done():
			return nil, err
		case <-time.After(pause):
		}
		if conn, err = dial(ctx); err == nil {
			return conn, nil
		}
	}
}

// Now is how many requests wait, and Waited how many have.
func (w *Waiting) Now() int { return int(w.waiting.Load()) }

// Waited is how many requests were allowed to wait.
func (w *Waiting) Waited() uint64 { return w.waited.Load() }
