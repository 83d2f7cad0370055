package apm

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"os"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/traces"
)

// readTimeout is how long a tracer may take to send a body: the agent's own.
const readTimeout = 5 * time.Second

// job is one request whose body is held, on its way through.
type job struct {
	server  *Server
	format  traces.Format
	body    *body
	done    func()      // lets go of the body, once
	header  http.Header // what goes on to the agent
	settled bool        // it was counted, or never will be
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
	held, err := s.hold(w, r)
	switch {
	case errors.Is(err, errNoRoom):
		s.counters.requests[ResultTooLarge].Add(1)
		s.streamRest(w, r, held)
		return
	case err != nil:
		s.counters.requests[ResultIncomplete].Add(1)
		held.release()
		refuse(w, err) // and with the deadline as it is: nothing more is waited for
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
	if j.server.config.DropUnsampled && !j.settled {
		r.ContentLength = -1 // how much is dropped is known when the header is written
	}
	j.server.proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), jobKey{}, j)))
	answered = true
}

// lend is the body for one try to send it.
func (j *job) lend() (io.ReadCloser, error) {
	if len(j.body.send) == 0 {
		return http.NoBody, nil
	}
	return j.body.lend(), nil
}

// hold reads a request's body, whose caller releases it.
func (s *Server) hold(w http.ResponseWriter, r *http.Request) (*body, error) {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(readTimeout)) // one that can't be set is none
	held, err := s.bodies.read(r.Body, r.ContentLength)
	if err == nil || errors.Is(err, errNoRoom) {
		_ = control.SetReadDeadline(time.Time{})
	}
	return held, err
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

// isTrue reads a header as the agent reads one: what is no "false" is true.
func isTrue(value string) bool {
	said, err := strconv.ParseBool(value)
	return value != "" && (said || err != nil)
}

// refuse answers as the agent does where it can't read a body.
func refuse(w http.ResponseWriter, err error) {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		http.Error(w, "timeout", http.StatusRequestTimeout)
		return
	}
	http.Error(w, err.Error(), http.StatusBadRequest)
}

// trace counts the body when there is a connection to the agent, and not before:
// a request that nobody takes would be counted, and once more when its tracer
// tries again. It runs before the header is written, so that it can be marked.
func (j *job) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
		if j.settled {
			return // the transport tries again on another connection
		}
		j.settled = true
		if j.result = j.count(); j.sum != 0 {
			j.header.Set(headerComputedStats, "true")
		}
	}}
}

// count counts the body. Whatever happens, the request goes on.
func (j *job) count() (result Result) {
	s := j.server
	defer func() {
		if p := recover(); p != nil {
			result = ResultBug
			s.log.bug(p, debug.Stack())
		}
	}()
	policy := s.policy.Load()
	if policy == nil {
		return ResultNotWanted
	}
	c := <-s.counting
	defer func() { s.counting <- c.Next() }()
	s.counters.bytes.Add(uint64(len(j.body.buf)))
	if err := c.Count(j.format, j.body.buf, j.header.Get(headerLang), isTrue(j.header.Get(headerComputedTop)), policy); err != nil {
		s.log.unread(j.format, err)
		return ResultUnread
	}
	sum := s.refusals.sum(j.body.buf)
	counted := func() { j.sum = sum } // from there on it is marked, whatever goes wrong
	before := s.refusals.take(sum)
	if before {
		counted()
	} else if reason, ok := s.publishers.publish(counted, c, c.Origin(originOf(j.header)), time.Now()); !ok {
		if reason == admit.DropNotWanted {
			return ResultNotWanted
		}
		return ResultNoRoom
	}
	if s.config.DropUnsampled && s.dropsP0s.Load() {
		j.dropUnsampled(c, before)
	}
	if before {
		return ResultCountedBefore
	}
	return ResultCounted
}

// refused notes that the agent did not take the body. Its tracer may try again.
func (j *job) refused() {
	if j.sum != 0 {
		j.server.refusals.add(j.sum)
		j.sum = 0
	}
}

// dropUnsampled cuts the body and tells the agent how much was cut, on top of what
// the tracer says that it did not send itself. What the agent refused was told to
// nobody, so the next try tells it again; but it is one trace in our own counters.
func (j *job) dropUnsampled(c *traces.Counter, before bool) {
	left, traces, spans := c.Cut(j.body.buf)
	if traces == 0 {
		return
	}
	s := j.server
	if !before {
		s.counters.unsampledTraces.Add(uint64(traces))
		s.counters.unsampledSpans.Add(uint64(spans))
	}
	s.counters.savedBytes.Add(uint64(len(j.body.buf) - len(left)))
	j.body.send = left
	add(j.header, headerDroppedTraces, traces)
	add(j.header, headerDroppedSpans, spans)
	if j.header.Get(headerTraceCount) != "" {
		add(j.header, headerTraceCount, -traces)
	}
}

// add adds to a number in a header.
func add(h http.Header, name string, n int) {
	before, err := strconv.Atoi(h.Get(name))
	if err != nil {
		before = 0
	}
	h.Set(name, strconv.Itoa(max(0, before+n)))
}

// streamRest hands on a request of whose body only a part could be held.
func (s *Server) streamRest(w http.ResponseWriter, r *http.Request, held *body) {
	head := held.lend()
	held.release()
	defer head.Close()
	r.Body = &rest{head: head, tail: r.Body}
	s.stream(w, r)
}

// rest is a body whose head was read already.
type rest struct {
	head, tail io.ReadCloser
	past       bool
}

func (r *rest) Read(p []byte) (int, error) {
	if !r.past {
		n, err := r.head.Read(p)
		if !errors.Is(err, io.EOF) {
			return n, err
		}
		r.past = true
		r.head.Close() // which makes room for others
		if n > 0 {
			return n, nil
		}
	}
	return r.tail.Read(p)
}

func (r *rest) Close() error { return errors.Join(r.head.Close(), r.tail.Close()) }
