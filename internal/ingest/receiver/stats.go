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

// Stats are the counters that all receivers have.
type Stats struct {
	Bytes         uint64    // parsed bytes of bodies
	Waited        uint64    // requests that waited for an unreachable upstream
	Waiting       int       // requests that wait for it now
	Origins       int       // origins with a publisher
	Connections   int       // open connections
	Refused       uint64    // connections over the limit
	LastHeard     time.Time // when a request or a connection last ended; zero before
	BufferedBytes int64     // memory of bodies
	Serving       int64     // requests in flight
}

// Stats reads the counters.
func (s *Server) Stats() Stats {
	open, lastActive := s.limiter.Count()
	return Stats{
		Bytes: s.ParsedBytes.Load(), Origins: s.publishers.Count(),
		Waited: s.dialing.waited.Load(), Waiting: int(s.dialing.waiting.Load()),
		Connections: open, LastHeard: lastActive, Refused: s.limiter.Rejected(), BufferedBytes: s.Bodies.Held(),
		Serving: s.inFlight.Load(),
	}
}

// Status is the status of a receiver and of its upstream. A receiver that is off has one as well.
type Status struct {
	Stats
	Requests  map[string]uint64 // by result, each also at 0
	Forwarded map[string]uint64 // requests by outcome; nil if they are not counted
	Refusal   *UpstreamError    // of the last forwarded request; nil if it was accepted
	// RefusedSignals are the refused requests with metrics and logs, which have no upstream; nil for a
	// receiver that accepts only traces.
	RefusedSignals map[string]uint64
}

// Status reads the counters. A nil server is off.
func (s *Server) Status(results []string, forwards *ForwardStats) (status Status) {
	if s != nil {
		status.Stats = s.Stats()
	}
	status.Requests, status.Forwarded = s.Results(results, 0), forwards.Counts()
	status.Refusal = forwards.last.Load()
	return status
}

// Results returns the requests by result, for the results that begin at an index of Setup.Results and have
// these names. A nil server has counted none.
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

// CountResult counts a request by its result, an index of Setup.Results.
func (s *Server) CountResult(result int) { s.results[result].Add(1) }

// ForwardOutcome is the outcome of forwarding a request.
type ForwardOutcome uint8

const (
	OutcomeTaken   ForwardOutcome = iota
	OutcomeRefused                // the upstream refuses it for good
	OutcomeLater                  // the upstream asks for a retry
	OutcomeAway                   // the upstream did not respond
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
	last   atomic.Pointer[UpstreamError] // of the last request; nil if it was accepted
}

// UpstreamError is why the upstream did not accept a request.
type UpstreamError struct {
	Answered bool   // the upstream responded
	Said     string // its response, or the error of the request
}

const maxSaid = 1 << 10 // bytes

// Note counts an outcome. OutcomeLeft and OutcomeUnfit say nothing about the upstream.
func (f *ForwardStats) Note(outcome ForwardOutcome, said string) {
	f.counts[outcome].Add(1)
	switch outcome {
	case OutcomeTaken:
		f.last.Store(nil)
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
	last   map[string]time.Time // when a message was last written
	hidden map[string]int       // lines that were left out since, by message
}

// NewRequestLog returns a log that writes to a logger.
func NewRequestLog(logger *slog.Logger) *RequestLog {
	return &RequestLog{logger: logger, last: map[string]time.Time{}, hidden: map[string]int{}}
}

// Write writes a line, with the number of lines with the same message that were left out before it. Messages
// are constants, so that few are remembered.
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

// bug logs a recovered panic.
func (l *RequestLog) bug(panicked any) {
	l.Write(slog.LevelError, "counting traces failed, and they are not counted; please report this",
		"panic", fmt.Sprint(panicked), "stack", string(debug.Stack()))
}
