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

	mu        sync.Mutex
	queued    []byte // whole lines
	isWriting bool   // lines that were queued are being written
	closed    bool
	lost      uint64
	reported  uint64 // part of lost that was passed to onLost
	onLost    func(lines uint64)
	changed   *sync.Cond    // queued or closed has changed
	done      chan struct{} // closed after Close, when all lines are written
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

// Write queues one or more lines. If the queue is closed or would exceed Limit, Write drops the lines and counts
// them as lost. It never waits for the log, and never returns an error, because callers cannot handle errors of
// their log.
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

// Flush waits until all queued lines are written, but not longer than the timeout.
func (q *Queue) Flush(timeout time.Duration) {
	deadline := time.Now().Add(timeout)
	for !q.isEmpty() && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
}

// isEmpty reports whether all lines that were queued are written.
func (q *Queue) isEmpty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.queued) == 0 && !q.isWriting
}

// Close makes the queue drop all further lines. It waits until all queued lines are written, but at most for the
// timeout.
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

// run writes queued lines to the log until the queue is closed and empty.
func (q *Queue) run() {
	defer close(q.done)
	var lines []byte
	for {
		buffer := lines[:0]
		lines = q.takeLines(buffer)
		if len(lines) == 0 {
			return
		}
		written, _ := q.log.Write(lines)
		rejected := countLines(lines[written:])
		q.countResult(rejected)
	}
}

// takeLines waits until lines are queued, and returns all of them. Further lines are appended to buffer. takeLines
// returns no lines if the queue is closed and empty. The caller writes the lines before it calls takeLines again.
func (q *Queue) takeLines(buffer []byte) []byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.isWriting = false // the lines of the previous call are written
	for len(q.queued) == 0 && !q.closed {
		q.changed.Wait()
	}
	lines := q.queued
	q.queued = buffer
	q.isWriting = len(lines) > 0
	return lines
}

// countResult adds the lines that the log did not accept to the lost lines. If it accepted all lines, countResult
// calls onLost with the number of lost lines that have not been reported yet, unless there are none.
func (q *Queue) countResult(rejected uint64) {
	q.mu.Lock()
	q.lost += rejected
	unreported := q.lost - q.reported
	isWritable := rejected == 0
	mustReport := isWritable && unreported > 0
	if mustReport {
		q.reported = q.lost
	}
	onLost := q.onLost
	q.mu.Unlock()
	if mustReport {
		onLost(unreported)
	}
}

// countLines returns the number of lines, including a last line without a line break.
func countLines(lines []byte) uint64 {
	n := bytes.Count(lines, []byte{'\n'})
	if len(lines) > 0 && lines[len(lines)-1] != '\n' {
		n++
	}
	return uint64(n)
}
