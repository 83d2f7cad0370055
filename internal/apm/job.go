package apm

import (
	"mime"
	"net/http"
	"strconv"

	"github.com/spanstatsd/spanstatsd/internal/traces"
)

// job is a request whose body is held until the agent has it.
type job struct {
	server  *Server
	format  traces.Format
	body    *body
	header  http.Header // what goes on to the agent
	drops   bool        // the traces that sampling threw away
	decided bool        // whether it is counted, or that nobody counts it here
	result  Result
	sum     uint64 // of a body that is counted, 0 until then
	// accepted says that the agent took it.
	accepted bool
}

// serveTraces counts a request and hands it on.
func (s *Server) serveTraces(format traces.Format, w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPut && r.Method != http.MethodPost {
		s.counters.requests[ResultUnread].Add(1)
		s.stream(w, r)
		return
	}
	j := &job{server: s, format: format, drops: s.drops.Load()}
	tooLarge := ResultTooLarge
	if j.result, j.decided = s.leaves(format, r); j.decided {
		tooLarge = j.result // nobody would have counted it
	}
	if j.body = s.hold(w, r, &s.counters.requests[tooLarge], &s.counters.requests[ResultIncomplete]); j.body == nil {
		return
	}
	defer func() { s.counters.requests[j.result].Add(1) }()
	j.forward(w, r)
}

// awaitReceipt ends a request whose body was counted. Where an answer was written, its
// connection finds out whether the tracer has it.
func (s *Server) awaitReceipt(r *http.Request, sum uint64, isAnswered bool) {
	if c := connOf(r.Context()); c != nil && isAnswered {
		c.receipt.await(sum)
		return
	}
	s.counted.close(sum, false)
}

// leaves says which requests are handed on without a look at their bodies.
func (s *Server) leaves(format traces.Format, r *http.Request) (Result, bool) {
	switch media, _, err := mime.ParseMediaType(r.Header.Get(headerContentType)); {
	case isTrue(r.Header.Get(headerComputedStats)):
		return ResultByTracer, true
	case r.Header.Get(headerEncoding) != "", // the agent does not know of any either
		r.Header.Get(headerFetchSite) == crossSite,
		format == traces.FormatV04 && (err != nil || media != mediaMsgpack):
		return ResultUnread, true
	case s.policy.Load() == nil:
		return ResultNotWanted, true
	}
	return ResultAgentAway, false // until there is a connection
}

// isTrue reads a flag in a header as the agent does: whatever does not say false is true.
func isTrue(value string) bool {
	said, err := strconv.ParseBool(value)
	return value != "" && (said || err != nil)
}
