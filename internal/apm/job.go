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
	decided bool        // whether it is counted
	result  Result
	sum     uint64 // of a body that is counted, 0 until then
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
	j := &job{server: s, format: format, body: held, result: ResultAgentAway}
	defer func() { s.counters.requests[j.result].Add(1) }()
	j.forward(w, r)
}

// forward hands on a request whose body is held until the agent has answered. An answer
// that breaks off is as good as none: its tracer may try again.
func (j *job) forward(w http.ResponseWriter, r *http.Request) {
	j.done = sync.OnceFunc(j.body.release)
	answered := false
	defer func() {
		j.done()
		if !answered {
			j.refused()
		}
	}()
	r.Body, r.ContentLength, r.TransferEncoding, r.Trailer = http.NoBody, int64(len(j.body.buf)), nil, nil
	if j.server.config.DropUnsampled && !j.decided {
		r.ContentLength = -1 // how much is dropped is known when the header is written
	}
	j.server.proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), jobKey{}, j)))
	answered = true
}

// newBody is the body for one attempt to send it.
func (j *job) newBody() (io.ReadCloser, error) {
	if len(j.body.send) == 0 {
		return http.NoBody, nil
	}
	return j.body.newReader(), nil
}

// refused notes that the agent did not accept the body. Its tracer may send it again.
func (j *job) refused() {
	if j.sum != 0 {
		j.server.refusals.add(j.sum)
		j.sum = 0
	}
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
