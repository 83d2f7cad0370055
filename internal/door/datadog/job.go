package datadog

import (
	"errors"
	"mime"
	"net/http"
	"os"
	"strconv"

	"github.com/spanstatsd/spanstatsd/internal/door/bodies"
	"github.com/spanstatsd/spanstatsd/internal/door/http1"
	"github.com/spanstatsd/spanstatsd/internal/exemplars"
	"github.com/spanstatsd/spanstatsd/internal/traces"
)

// job is a request whose body is held until the agent has it.
type job struct {
	server     *Server
	conn       *http1.Conn // that it came on; nil where a test made it without one
	format     traces.Format
	target     string       // method and path
	header     http1.Fields // what goes on to the agent
	body       *bodies.Body
	broken     error           // with which its body broke off
	agent      *http1.Upstream // that it goes on with, nil before
	drops      bool            // the traces that sampling threw away
	decided    bool            // whether it is counted, or that nobody counts it here
	result     Result
	sum        uint64               // of a body that is counted, 0 until then
	candidates exemplars.Candidates // of that body, until the agent has answered
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
	j := s.newJob(format, http1.ConnOf(r.Context()), r.Method+" "+r.URL.RequestURI(), http1.FieldsOf(r.Header))
	tooLarge := ResultTooLarge
	if j.decided {
		tooLarge = j.result // nobody would have counted it
	}
	if j.body = s.hold(w, r, &s.counters.requests[tooLarge], &s.counters.requests[ResultIncomplete]); j.body == nil {
		return
	}
	defer func() { s.counters.requests[j.result].Add(1) }()
	j.forward(w, r)
}

// newJob makes one of a request with traces.
func (s *Server) newJob(format traces.Format, c *http1.Conn, target string, header http1.Fields) *job {
	j := &job{server: s, conn: c, format: format, target: target, header: header, drops: s.drops.Load()}
	j.result, j.decided = s.leaves(format, &j.header)
	return j
}

// resume goes on with a request that was begun without net/http, and whose body is read or
// has broken off.
func (s *Server) resume(j *job, w http.ResponseWriter, r *http.Request) {
	if j.broken != nil {
		j.body.Release()
		s.counters.requests[ResultIncomplete].Add(1)
		w.Header().Set("Connection", "close")
		refuse(w, j.broken)
		return
	}
	defer func() { s.counters.requests[j.result].Add(1) }()
	j.forward(w, r)
}

// refuse answers a request whose body broke off as the agent does it.
func refuse(w http.ResponseWriter, broken error) {
	if errors.Is(broken, os.ErrDeadlineExceeded) {
		http.Error(w, "timeout", http.StatusRequestTimeout)
	} else {
		http.Error(w, broken.Error(), http.StatusBadRequest)
	}
}

// awaitReceipt ends a request whose body was counted. Where an answer was written, its
// connection finds out whether the tracer has it.
func (s *Server) awaitReceipt(c *http1.Conn, sum uint64, isAnswered bool) {
	if c != nil && isAnswered {
		c.Receipt.Await(sum)
		return
	}
	s.counted.Close(sum, false)
}

// leaves says which requests are handed on without a look at their bodies.
func (s *Server) leaves(format traces.Format, h header) (Result, bool) {
	switch {
	case isTrue(h.Get(headerComputedStats)):
		return ResultByTracer, true
	case h.Get(headerEncoding) != "", // the agent does not know of any either
		h.Get(headerFetchSite) == crossSite,
		format == traces.FormatV04 && !isMsgpack(h.Get(headerContentType)):
		return ResultUnread, true
	case s.policy.Load() == nil:
		return ResultNotWanted, true
	}
	return ResultAgentAway, false // until there is a connection
}

// isMsgpack says whether the agent takes a body of that type for msgpack.
func isMsgpack(contentType string) bool {
	if contentType == mediaMsgpack { // as nearly all write it
		return true
	}
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && media == mediaMsgpack
}

// isTrue reads a flag in a header as the agent does: whatever does not say false is true.
func isTrue(value string) bool {
	said, err := strconv.ParseBool(value)
	return value != "" && (said || err != nil)
}
