package prometheus

import (
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// stalled is how long a scrape can go without writing anything while others wait. A buffer of 32 KiB
// per stalled is far below the rate of any network that Prometheus scrapes over.
const stalled = 500 * time.Millisecond

// turns lets maxScrapes scrapes run at a time, each with buffers of its own. Others wait, and those of
// the client with the fewest scrapes go first. While scrapes wait, a running one that stalls is
// aborted. So clients that hang, however many connections they open, delay another client by a moment
// only. It is safe for concurrent use.
type turns struct {
	mu      sync.Mutex
	free    []*scrape // buffers that are not in use
	running []*turn
	waiting []*turn // oldest first
}

// turn is a scrape that waits or runs.
type turn struct {
	http.ResponseWriter
	all      *turns
	client   string        // address without port
	begun    chan struct{} // closed when the turn runs
	buffers  *scrape       // set when the turn runs
	progress time.Time     // of the last write, or the begin of the turn; guarded by all.mu
}

// begin waits for a turn. It returns nil if ctx ends before. The caller must call end.
func (s *turns) begin(w http.ResponseWriter, r *http.Request) *turn {
	client, _, _ := net.SplitHostPort(r.RemoteAddr)
	t := &turn{ResponseWriter: w, all: s, client: client, begun: make(chan struct{})}
	s.mu.Lock()
	s.waiting = append(s.waiting, t)
	s.runNext()
	s.mu.Unlock()
	for {
		select {
		case <-t.begun:
			return t
		case <-r.Context().Done():
			t.end()
			return nil
		case <-time.After(stalled / 2):
			s.abortStalled()
		}
	}
}

// runNext runs waiting turns while buffers are free. The caller holds the lock.
func (s *turns) runNext() {
	for len(s.free) > 0 && len(s.waiting) > 0 {
		scrapes := map[string]int{}
		for _, t := range slices.Concat(s.running, s.waiting) {
			scrapes[t.client]++
		}
		next := slices.MinFunc(s.waiting, func(a, b *turn) int { return scrapes[a.client] - scrapes[b.client] })
		s.waiting = slices.DeleteFunc(s.waiting, func(t *turn) bool { return t == next })
		s.running = append(s.running, next)
		last := len(s.free) - 1
		next.buffers, s.free = s.free[last], s.free[:last]
		next.progress = time.Now()
		close(next.begun)
	}
}

// abortStalled makes further writes of stalled turns fail.
func (s *turns) abortStalled() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.running {
		if time.Since(t.progress) > stalled {
			_ = http.NewResponseController(t.ResponseWriter).SetWriteDeadline(time.Now())
		}
	}
}

// Write implements http.ResponseWriter.
func (t *turn) Write(b []byte) (int, error) {
	n, err := t.ResponseWriter.Write(b)
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	t.progress = time.Now()
	return n, err //nolint:wrapcheck // not shown to anyone
}

// Unwrap lets http.ResponseController find the methods of the connection.
func (t *turn) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// end ends a turn that runs, or one that still waits.
func (t *turn) end() {
	s := t.all
	s.mu.Lock()
	defer s.mu.Unlock()
	isThis := func(other *turn) bool { return other == t }
	s.waiting, s.running = slices.DeleteFunc(s.waiting, isThis), slices.DeleteFunc(s.running, isThis)
	if t.buffers != nil {
		s.free = append(s.free, t.buffers)
	}
	s.runNext()
}
