// Package logqueue implements an asynchronous log writer, so that a log that is not read does not block the program.
//
// A pipe whose reader is stalled accepts 64 KiB; further writes block. With a blocking log driver, every goroutine
// that logs would block with it, including those that deliver statistics or stop the daemon. A Queue buffers lines
// in memory instead, and writes them in a goroutine of its own.
//
// # Concurrency
//
// Write can be called by any goroutine and does not block. Only one goroutine writes to the log. It is never stopped,
// because a blocked write cannot be interrupted.
//
// # Limits
//
// At most Limit bytes are queued, and as many are being written. Lines that exceed the limit, or that the log rejects,
// are dropped and counted. When the log accepts lines again, a callback gets the number of dropped lines.
package logqueue

import (
	"bytes"
	"io"
	"sync"
	"time"
)

// Limit is the maximum number of queued bytes, enough for more than a thousand lines.
const Limit = 256 << 10

// Queue is an io.Writer that queues lines and does not block.
type Queue struct {
	log io.Writer

	mu       sync.Mutex
	queued   []byte // whole lines
	writing  bool   // lines that were queued are being written
	closed   bool
	lost     uint64
	reported uint64 // part of lost that was passed to onLost
	onLost   func(lines uint64)
	changed  *sync.Cond    // queued or closed has changed
	done     chan struct{} // closed after Close, when all lines are written
}

// New returns a Queue that writes to log.
func New(log io.Writer) *Queue {
	q := &Queue{log: log, onLost: func(uint64) {}, done: make(chan struct{})}
	q.changed = sync.NewCond(&q.mu)
	go q.run()
	return q
}

// OnLost sets a function that is called with the number of dropped lines, when the log accepts lines again.
func (q *Queue) OnLost(f func(lines uint64)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.onLost = f
}

// Lost returns the number of dropped lines.
func (q *Queue) Lost() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lost
}

// Write queues one or more whole lines, or drops and counts them. It never returns an error, because callers cannot
// handle errors of their log.
func (q *Queue) Write(lines []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || len(q.queued)+len(lines) > Limit {
		q.lost += countLines(lines)
		return len(lines), nil
	}
	q.queued = append(q.queued, lines...)
	q.changed.Signal()
	return len(lines), nil
}

// Flush returns when all lines that were queued before are written, or after the timeout.
func (q *Queue) Flush(timeout time.Duration) {
	isWritten := func() bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		return len(q.queued) == 0 && !q.writing
	}
	for until := time.Now().Add(timeout); !isWritten() && time.Now().Before(until); {
		time.Sleep(time.Millisecond)
	}
}

// Close drops all further lines. It returns when the queued lines are written, or after the timeout.
func (q *Queue) Close(timeout time.Duration) {
	q.mu.Lock()
	q.closed = true
	q.changed.Signal()
	q.mu.Unlock()
	select {
	case <-q.done:
	case <-time.After(timeout):
	}
}

// run writes all queued lines at once, whenever there are any, until the queue is closed and empty.
func (q *Queue) run() {
	defer close(q.done)
	var writing []byte
	for {
		q.mu.Lock()
		q.writing = false
		for len(q.queued) == 0 && !q.closed {
			q.changed.Wait()
		}
		if len(q.queued) == 0 {
			q.mu.Unlock()
			return
		}
		writing, q.queued, q.writing = q.queued, writing[:0], true
		q.mu.Unlock()
		written, _ := q.log.Write(writing)
		q.reportLost(countLines(writing[written:]))
	}
}

// reportLost counts lines that the log has rejected. If it has rejected none, reportLost calls onLost with the number
// of lines that were dropped since the last call.
func (q *Queue) reportLost(rejected uint64) {
	q.mu.Lock()
	q.lost += rejected
	unreported, onLost := q.lost-q.reported, q.onLost
	if rejected > 0 || unreported == 0 {
		q.mu.Unlock()
		return
	}
	q.reported = q.lost
	q.mu.Unlock()
	onLost(unreported)
}

// countLines returns the number of lines. The last one may lack its line break.
func countLines(lines []byte) uint64 {
	n := bytes.Count(lines, []byte{'\n'})
	if len(lines) > 0 && lines[len(lines)-1] != '\n' {
		n++
	}
	return uint64(n)
}
