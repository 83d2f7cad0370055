package receiver

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Stats are the counters of any receiver.
type Stats struct {
	Bytes         uint64    // of bodies that were parsed
	Waited        uint64    // dials of an unreachable upstream that were retried
	Waiting       int       // of them, at the moment
	Origins       int       // that publishers are kept for
	Connections   int       // open
	Refused       uint64    // connections over the limit
	LastHeard     time.Time // when a request or a connection last ended; zero before
	BufferedBytes int64     // of bodies in memory
	Serving       int64     // requests in flight
}

// Stats reads the counters.
func (s *Server) Stats() Stats {
	open, heard := s.limiter.Count()
	return Stats{
		Bytes: s.Walked.Load(), Origins: s.publishers.Count(),
		Waited: s.dialing.waited.Load(), Waiting: int(s.dialing.waiting.Load()),
		Connections: open, LastHeard: heard, Refused: s.limiter.Rejected(), BufferedBytes: s.Bodies.Held(),
		Serving: s.serving.Load(),
	}
}

// Shown is the status of a receiver and its forwarding, also of one that is off.
type Shown struct {
	Stats
	Requests  map[string]uint64 // by result, each also at 0
	Forwarded map[string]uint64 // by outcome; nil if they are not counted
	Refusal   *UpstreamError    // of the last request to the upstream; nil if it was accepted
	// RefusedSignals are the refused requests with metrics and logs, which have no destination; nil for a
	// receiver that accepts only traces.
	RefusedSignals map[string]uint64
}

// Shown reads the counters. A nil server is off.
func (s *Server) Shown(results []string, forwards *ForwardStats) (shown Shown) {
	if s != nil {
		shown.Stats = s.Stats()
	}
	shown.Requests, shown.Forwarded = s.Results(results, 0), forwards.Counts()
	shown.Refusal = forwards.last.Load()
	return shown
}

// Results returns the counts of the results with those names, which begin at an index of Setup.Results.
// A nil server has counted nothing.
func (s *Server) Results(names []string, first int) map[string]uint64 {
	all := make(map[string]uint64, len(names))
	for i, name := range names {
		all[name] = 0
		if s != nil {
			all[name] = s.results[first+i].Load()
		}
	}
	return all
}

// Note counts a request by its result.
func (s *Server) Note(result int) { s.results[result].Add(1) }

// ForwardOutcome is the outcome of forwarding a request.
type ForwardOutcome uint8

const (
	OutcomeTaken   ForwardOutcome = iota
	OutcomeRefused                // for good
	OutcomeLater                  // the upstream asks for a retry
	OutcomeAway                   // no response
	OutcomeLeft                   // the sender left before the response
	OutcomeUnfit                  // the upstream can't read this encoding

	outcomes = int(OutcomeUnfit) + 1
)

var outcomeNames = [outcomes]string{"taken", "refused", "later", "away", "left", "unfit"}

// String returns the name in metrics.
func (o ForwardOutcome) String() string { return outcomeNames[o] }

// ForwardStats count forwarded requests by outcome. It is safe for concurrent use.
type ForwardStats struct {
	counts [outcomes]atomic.Uint64
	last   atomic.Pointer[UpstreamError] // nil if the last request was accepted, or there was none
}

// UpstreamError is why the upstream did not accept the last request.
type UpstreamError struct {
	Answered bool
	Said     string // its response, or why there was none
}

const maxSaid = 1 << 10 // bytes

// Note counts an outcome. OutcomeLeft and OutcomeUnfit show nothing about the upstream.
func (f *ForwardStats) Note(outcome ForwardOutcome, said string) {
	f.counts[outcome].Add(1)
	switch outcome {
	case OutcomeTaken:
		if f.last.Load() != nil {
			f.last.Store(nil)
		}
	case OutcomeRefused, OutcomeLater, OutcomeAway:
		f.last.Store(&UpstreamError{outcome != OutcomeAway, span.Text(said, maxSaid)})
	}
}

// Counts returns the requests by outcome, each also at 0.
func (f *ForwardStats) Counts() map[string]uint64 {
	all := make(map[string]uint64, outcomes)
	for i, name := range outcomeNames {
		all[name] = f.counts[i].Load()
	}
	return all
}

// logEvery is the minimum time between two log lines with the same message: each request could cause one.
const logEvery = 10 * time.Second

// RequestLog writes log lines that requests cause, at a limited rate.
type RequestLog struct {
	logger *slog.Logger

	mu     sync.Mutex
	last   map[string]time.Time // by message
	hidden map[string]int
}

func NewRequestLog(logger *slog.Logger) *RequestLog {
	return &RequestLog{logger: logger, last: map[string]time.Time{}, hidden: map[string]int{}}
}

// Write writes a line with the number of lines that were left out before it.
func (l *RequestLog) Write(level slog.Level, message string, fields ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.last[message]) < logEvery {
		l.hidden[message]++
		return
	}
	l.logger.Log(context.Background(), level, message, append(fields, "more", l.hidden[message])...)
	l.last[message], l.hidden[message] = time.Now(), 0
}

func (l *RequestLog) bug(panicked any) {
	l.Write(slog.LevelError, "counting traces failed; they go on uncounted. Please report this",
		"panic", fmt.Sprint(panicked), "stack", string(debug.Stack()))
}
