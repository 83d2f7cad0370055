package apm

import (
	"context"
	"io"
	"mime"
	"net/http"
	"strconv"
	"sync"

	"github.com/spanstatsd/spanstatsd/internal/traces"
)

// job is a request whose body is held until the agent has it.
type job struct {
	server  *Server
	format  traces.Format
	body    *body
	done    func()      // releases the body, once
	header  http.Header // what goes on to the agent
	drops   bool        // the traces that sampling threw away
	decided bool        // whether it is counted
	result  Result
	sum     uint64 // of a body that is counted, 0 until then
	// accepted says that the agent took it.
	accepted bool
}

// serveTraces counts a request and hands it on.
func (s *Server) serveTraces(format traces.Format, w http.ResponseWriter, r *http.Request) {
	if why, pass := s.passes(format, r); pass {
		s.counters.requests[why].Add(1)
		s.stream(w, r)
		return
	}
	held := s.hold(w, r, &s.counters.requests[ResultTooLarge], &s.counters.requests[ResultIncomplete])
	if held == nil {
		return
	}
	j := &job{server: s, format: format, body: held, result: ResultAgentAway, drops: s.drops.Load()}
	defer func() { s.counters.requests[j.result].Add(1) }()
	j.forward(w, r)
}

// forward hands on a request whose body is held until the agent has answered. A refusal, or
// an answer that breaks off, is as good as none: its tracer may try again.
func (j *job) forward(w http.ResponseWriter, r *http.Request) {
	s := j.server
	j.done = sync.OnceFunc(j.body.release)
	answered := false
	defer func() {
		j.done()
		if j.sum != 0 {
			s.awaitReceipt(r, j.sum, answered && j.accepted)
		}
	}()
	r.Body, r.ContentLength, r.TransferEncoding, r.Trailer = http.NoBody, int64(len(j.body.buf)), nil, nil
	if j.drops {
		r.ContentLength = -1 // how much is dropped is known when the header is written
	}
	s.proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), jobKey{}, j)))
	answered = true
}

// newBody is the body for one attempt to send it.
func (j *job) newBody() (io.ReadCloser, error) {
	if len(j.body.send) == 0 {
		return http.NoBody, nil
	}
	return j.body.newReader(), nil
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

// passes says which requests stream through without a look at their bodies.
func (s *Server) passes(format traces.Format, r *http.Request) (Result, bool) {
	switch media, _, err := mime.ParseMediaType(r.Header.Get(headerContentType)); {
	case isTrue(r.Header.Get(headerComputedStats)):
		return ResultByTracer, true
	case r.Header.Get(headerEncoding) != "": // the agent does not know of any either
		return ResultUnread, true
	case r.Method != http.MethodPut && r.Method != http.MethodPost, r.Header.Get(headerFetchSite) == crossSite,
		format == traces.FormatV04 && (err != nil || media != mediaMsgpack):
		return ResultUnread, true
	case s.policy.Load() == nil:
		return ResultNotWanted, true
	}
	return 0, false
}

// isTrue reads a flag in a header as the agent does: whatever does not say false is true.
func isTrue(value string) bool {
	said, err := strconv.ParseBool(value)
	return value != "" && (said || err != nil)
}
