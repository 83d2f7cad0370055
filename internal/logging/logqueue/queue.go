// Package logqueue keeps a log that nobody reads from stopping the program.
//
// A pipe whose reader is stalled takes 64 KiB, and then a write to it lasts for ever: a
// blocking log driver would so hold up whatever logs, deliveries and the stop included.
// A Queue takes whole lines into memory instead, and one goroutine writes them on.
//
// # Threading
//
// Write may be called by anybody and waits for nobody. The one goroutine alone writes to
// the log's end. It lives as long as the process: a write that never returns can't be
// ended.
//
// # Bounds
//
// Limit bytes wait at most, and as many are being written. A line that finds no room, or
// that the log's end refuses, is lost and counted; when lines are taken again, the first
// says how many were not.
package logqueue

import (
	"bytes"
	"io"
	"sync"
	"time"
)

// Limit is how many bytes wait at most: some thousand lines.
const Limit = 256 << 10

// Queue is an io.Writer that never waits.
type Queue struct {
	to io.Writer

	mu      sync.Mutex
	waiting []byte // whole lines
	closed  bool
	lost    uint64
	told    uint64 // of lost, what onLost heard of
	onLost  func(lines uint64)
	more    *sync.Cond    // waiting or closed changed
	written chan struct{} // closed when everything is written after Close
}

// New writes to the end of a log from now on.
func New(to io.Writer) *Queue {
	q := &Queue{to: to, onLost: func(uint64) {}, written: make(chan struct{})}
	q.more = sync.NewCond(&q.mu)
	go q.run()
	return q
}

// OnLost has lines told that were lost, as soon as lines are taken again.
func (q *Queue) OnLost(tell func(lines uint64)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.onLost = tell
}

// Lost is how many lines were lost.
func (q *Queue) Lost() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lost
}

// Write takes one or more whole lines, or counts them as lost. It never fails: whoever
// logs can do nothing about it.
func (q *Queue) Write(lines []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || len(q.waiting)+len(lines) > Limit {
		q.lost += count(lines)
		return len(lines), nil
	}
	q.waiting = append(q.waiting, lines...)
	q.more.Signal()
	return len(lines), nil
}

// Close takes no more lines, and returns when everything is written, or after a time.
func (q *Queue) Close(wait time.Duration) {
	q.mu.Lock()
	q.closed = true
	q.more.Signal()
	q.mu.Unlock()
	select {
	case <-q.written:
	case <-time.After(wait):
	}
}

// run writes the waiting lines, all of them at a time.
func (q *Queue) run() {
	defer close(q.written)
	var writing []byte
	for {
		q.mu.Lock()
		for len(q.waiting) == 0 && !q.closed {
			q.more.Wait()
		}
		if len(q.waiting) == 0 {
			q.mu.Unlock()
			return
		}
		writing, q.waiting = q.waiting, writing[:0]
		q.mu.Unlock()
		written, _ := q.to.Write(writing)
		q.note(count(writing[written:]))
	}
}

// note counts the lines that the log's end refused, and tells of all that were lost once
// it takes lines again.
func (q *Queue) note(refused uint64) {
	q.mu.Lock()
	q.lost += refused
	untold, tell := q.lost-q.told, q.onLost
	if refused > 0 || untold == 0 {
		q.mu.Unlock()
		return
	}
	q.told = q.lost
	q.mu.Unlock()
	tell(untold)
}

// count is how many lines there are; the last may have no end.
func count(lines []byte) uint64 {
	n := bytes.Count(lines, []byte{'\n'})
	if len(lines) > 0 && lines[len(lines)-1] != '\n' {
		n++
	}
	return uint64(n)
}
