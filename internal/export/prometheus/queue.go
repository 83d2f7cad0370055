package prometheus

import (
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// stallTimeout is how long a scrape can go without writing anything while others wait. A buffer of 32 KiB
// per stallTimeout is far below the rate of any network that Prometheus scrapes over.
const stallTimeout = 500 * time.Millisecond

// scrapeQueue limits the number of scrapes that run at the same time to its number of encoders. Others wait, and those
// of the client with the fewest scrapes go first. While scrapes wait, a running one that stalls is aborted. So clients
// that hang, however many connections they open, delay another client by a moment only. It is safe for concurrent use.
type scrapeQueue struct {
	mu      sync.Mutex
	free    []*encoder // encoders that no scrape uses
	running []*scrape
	waiting []*scrape // oldest first
}

// scrape is a scrape that waits or runs.
type scrape struct {
	http.ResponseWriter
	queue     *scrapeQueue
	client    string        // address without port
	started   chan struct{} // closed when the scrape runs
	encoder   *encoder      // set when the scrape runs
	lastWrite time.Time     // time of the last write, or of the start; guarded by queue.mu
}

// begin waits until the scrape with the request r can run, and returns it. While it waits, it aborts running scrapes
// whose clients do not read. The caller must call end after the response. begin returns nil if the client
// disconnects; the caller must not call end then.
func (q *scrapeQueue) begin(w http.ResponseWriter, r *http.Request) *scrape {
	client, _, _ := net.SplitHostPort(r.RemoteAddr)
	s := &scrape{ResponseWriter: w, queue: q, client: client, started: make(chan struct{})}
	q.mu.Lock()
	q.waiting = append(q.waiting, s)
	q.startScrapes()
	q.mu.Unlock()
	for {
		select {
		case <-s.started:
			return s
		case <-r.Context().Done():
			s.end()
			return nil
		case <-time.After(stallTimeout / 2):
			q.abortStalled()
		}
	}
}

// startScrapes starts waiting scrapes until all encoders are in use or no scrape waits. The caller holds the lock.
func (q *scrapeQueue) startScrapes() {
	for len(q.free) > 0 && len(q.waiting) > 0 {
		next := q.nextWaiting()
		q.waiting = slices.DeleteFunc(q.waiting, func(s *scrape) bool { return s == next })
		q.running = append(q.running, next)

		lastFree := len(q.free) - 1
		next.encoder = q.free[lastFree]
		q.free = q.free[:lastFree]
		next.lastWrite = time.Now()
		close(next.started)
	}
}

// nextWaiting returns the oldest waiting scrape of the client with the fewest scrapes. The caller holds the lock.
func (q *scrapeQueue) nextWaiting() *scrape {
	scrapesByClient := map[string]int{}
	for _, s := range slices.Concat(q.running, q.waiting) {
		scrapesByClient[s.client]++
	}
	return slices.MinFunc(q.waiting, func(a, b *scrape) int {
		return scrapesByClient[a.client] - scrapesByClient[b.client]
	})
}

// abortStalled aborts running scrapes that have not written anything for stallTimeout: their writes fail.
func (q *scrapeQueue) abortStalled() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, s := range q.running {
		if time.Since(s.lastWrite) > stallTimeout {
			_ = http.NewResponseController(s.ResponseWriter).SetWriteDeadline(time.Now())
		}
	}
}

// Write implements http.ResponseWriter. It also records the time of the write.
func (s *scrape) Write(b []byte) (int, error) {
	n, err := s.ResponseWriter.Write(b)
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	s.lastWrite = time.Now()
	return n, err //nolint:wrapcheck // not shown to anyone
}

// Unwrap lets http.ResponseController find the methods of the connection.
func (s *scrape) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// end removes the scrape from the queue, whether it is running or waiting. It makes the encoder of the scrape
// available again, and starts waiting scrapes for which there is an encoder.
func (s *scrape) end() {
	q := s.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	isThis := func(other *scrape) bool { return other == s }
	q.waiting = slices.DeleteFunc(q.waiting, isThis)
	q.running = slices.DeleteFunc(q.running, isThis)
	if s.encoder != nil {
		q.free = append(q.free, s.encoder)
	}
	q.startScrapes()
}
