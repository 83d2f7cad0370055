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
	Bytes         uint64    // parsed bytes of bodies, decompressed
	Waited        uint64    // requests that have waited for an unreachable upstream
	Waiting       int       // requests currently waiting for an unreachable upstream
	Origins       int       // origins with a publisher
	Connections   int       // open connections
	Refused       uint64    // rejected connections over the limit
	LastHeard     time.Time // time when a request or a connection last ended; zero if there was none
	BufferedBytes int64     // memory of bodies
	Serving       int64     // requests in flight
	DedupEvicted  uint64    // hashes of bodies that were forgotten while a retry could still arrive
}

// Stats returns the current counters.
func (s *Server) Stats() Stats {
	open, lastActive := s.limiter.Count()
	return Stats{
		Bytes: s.ParsedBytes.Load(), Origins: s.publishers.Count(),
		Waited: s.dialing.waited.Load(), Waiting: int(s.dialing.waiting.Load()),
		Connections: open, LastHeard: lastActive, Refused: s.limiter.Rejected(), BufferedBytes: s.Bodies.Used(),
		Serving: s.inFlight.Load(), DedupEvicted: s.publishers.countedBodies.Evicted(),
	}
}

// Status is the status of a receiver and of its upstream. A disabled receiver has a status as well.
type Status struct {
	Stats
	Requests  map[string]uint64 // number of requests by result; all results are present
	Forwarded map[string]uint64 // number of forwarded requests by outcome; nil if the receiver does not count them
	Refusal   *UpstreamError    // error of the last forwarded request; nil if the upstream accepted it
	// DiscardedSignals has the number of requests, by signal, that were discarded because metrics and logs have no
	// upstream. It is nil for a receiver that accepts only traces.
	DiscardedSignals map[string]uint64
}

// Status returns the current counters of the receiver. resultNames are the names of the results that a request can
// have. s is nil if the receiver is disabled; the counters are then 0.
func (s *Server) Status(resultNames []string, forwards *ForwardStats) Status {
	const firstIndex = 0 // index of resultNames[0] in Setup.Results
	status := Status{
		Requests:  s.Results(resultNames, firstIndex), // 0 for each result if s is nil
		Forwarded: forwards.Counts(),
		Refusal:   forwards.lastError.Load(),
	}
	if s != nil {
		status.Stats = s.Stats()
	}
	return status
}

// Results returns the number of requests for each of the given result names. names must be consecutive elements of
// Setup.Results, and firstIndex is the index of the first one there. All numbers are 0 if s is nil.
func (s *Server) Results(names []string, firstIndex int) map[string]uint64 {
	counts := make(map[string]uint64, len(names))
	for i, name := range names {
		counts[name] = 0
		if s != nil {
			counts[name] = s.results[firstIndex+i].Load()
		}
	}
	return counts
}

// CountResult counts a request by its result, an index of Setup.Results.
func (s *Server) CountResult(result int) { s.results[result].Add(1) }

// ForwardOutcome is the outcome of forwarding a request.
type ForwardOutcome uint8

const (
	OutcomeAccepted     ForwardOutcome = iota // the upstream has accepted the request
	OutcomeRefused                            // the upstream has refused the request, and does not ask for a retry
	OutcomeRetryable                          // the upstream has asked for a retry
	OutcomeUnreachable                        // the upstream has not responded
	OutcomeClientGone                         // the sender has disconnected before the response
	OutcomeIncompatible                       // the upstream does not support the encoding, so it did not get the request

	outcomes = int(OutcomeIncompatible) + 1
)

var outcomeNames = [outcomes]string{"accepted", "refused", "retryable", "unreachable", "client_gone", "incompatible"}

// String returns the value of the metric label "result".
func (o ForwardOutcome) String() string { return outcomeNames[o] }

// ForwardStats counts forwarded requests by outcome. It is safe for concurrent use.
type ForwardStats struct {
	counts    [outcomes]atomic.Uint64
	lastError atomic.Pointer[UpstreamError] // error of the last request; nil if the upstream accepted it
}

// UpstreamError is the reason why the upstream did not accept a request.
type UpstreamError struct {
	HasResponded bool   // whether the upstream has responded
	Message      string // message of the upstream's response, or the error of the request
}

// maxMessage is the maximum length of UpstreamError.Message in bytes.
const maxMessage = 1 << 10

// Record counts a forwarded request by its outcome. If the upstream has refused the request or not responded, it
// stores message as the last error. An accepted request clears the last error.
func (f *ForwardStats) Record(outcome ForwardOutcome, message string) {
	f.counts[outcome].Add(1)
	switch outcome {
	case OutcomeAccepted:
		f.lastError.Store(nil)
	case OutcomeRefused, OutcomeRetryable, OutcomeUnreachable:
		f.lastError.Store(&UpstreamError{
			HasResponded: outcome != OutcomeUnreachable,
			Message:      span.Text(message, maxMessage),
		})
	}
}

// Counts returns the number of requests by outcome. All outcomes are present.
func (f *ForwardStats) Counts() map[string]uint64 {
	counts := make(map[string]uint64, outcomes)
	for i, name := range outcomeNames {
		counts[name] = f.counts[i].Load()
	}
	return counts
}

// logEvery is the minimum time between two log lines with the same message.
const logEvery = 10 * time.Second

// RequestLog writes log lines about requests. It limits the rate of lines with the same message, because every request
// can cause one.
type RequestLog struct {
	logger *slog.Logger

	mu         sync.Mutex
	lastTime   map[string]time.Time // time of the last line, by message
	suppressed map[string]int       // number of suppressed lines since then, by message
}

// NewRequestLog returns a RequestLog that writes to logger.
func NewRequestLog(logger *slog.Logger) *RequestLog {
	return &RequestLog{logger: logger, lastTime: map[string]time.Time{}, suppressed: map[string]int{}}
}

// Write logs a message with the given attributes, unless it has logged the same message in the last logEvery. The
// attribute "more" is the number of messages that were suppressed since then. message must be a constant, because l
// stores every distinct message.
func (l *RequestLog) Write(level slog.Level, message string, fields ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.lastTime[message]) < logEvery {
		l.suppressed[message]++
		return
	}
	fields = append(fields, "more", l.suppressed[message])
	l.logger.Log(context.Background(), level, message, fields...)
	l.lastTime[message] = time.Now()
	l.suppressed[message] = 0
}

// logPanic logs a recovered panic with the stack.
func (l *RequestLog) logPanic(recovered any) {
	l.Write(slog.LevelError, "internal error while counting traces; they are not counted; please report this bug",
		"panic", fmt.Sprint(recovered), "stack", string(debug.Stack()))
}
