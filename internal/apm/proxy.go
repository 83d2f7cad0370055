package apm

import (
	"context"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/url"
	"time"
)

// jobKey is where a request's context holds its job.
type jobKey struct{}

// newProxy makes what hands requests on: as they came, unbuffered in both
// directions, with no time-out but the agent's own.
func (s *Server) newProxy() *httputil.ReverseProxy {
	host := s.config.Agent.Address
	if s.config.Agent.Network == "unix" {
		host = "localhost" // a socket has no name
	}
	target := &url.URL{Scheme: "http", Host: host}
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.URL.RawQuery = r.In.URL.RawQuery
			s.identify(r.In, r.Out.Header)
			if j, ok := r.In.Context().Value(jobKey{}).(*job); ok {
				j.header = r.Out.Header
				// A reader of its own: the proxy would not close it, and so hold the body.
				r.Out.Body, _ = j.newBody()
				r.Out.GetBody = j.newBody
				r.Out = r.Out.WithContext(httptrace.WithClientTrace(r.Out.Context(), j.trace()))
			}
		},
		Transport: s.retry,
		ModifyResponse: func(answer *http.Response) error {
			s.noteAgentState(answer.Header)
			limitRest(answer.Request)
			if j, ok := answer.Request.Context().Value(jobKey{}).(*job); ok {
				j.done()
				j.accepted = answer.StatusCode/100 == 2
			}
			return nil
		},
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0), // ErrorHandler logs
		ErrorHandler:  s.unanswered,
	}
}

// unanswered ends a tracer's connection where the agent did not answer: that is what it
// would see without us. Some tracers try again after that and never after an answer, be it
// a 502. One that stopped within its body is told so, as the agent would do it.
func (s *Server) unanswered(w http.ResponseWriter, r *http.Request, err error) {
	limitRest(r)
	if hasStopped(r) {
		http.Error(w, "timeout", http.StatusRequestTimeout)
		return
	}
	s.counters.failed.Add(1)
	s.log.write(slog.LevelWarn, "the agent did not answer a tracer's request, whose connection is closed", "error", err)
	panic(http.ErrAbortHandler)
}

// identify says which container a request came from where its tracer does not:
// behind us the agent can't ask the kernel.
func (s *Server) identify(r *http.Request, h http.Header) {
	c := connOf(r.Context())
	if c != nil && c.container != "" && h.Get(headerContainer) == "" && h.Get(headerEntity) == "" {
		h.Set(headerContainer, c.container)
	}
}

// maxAnswerHeader is many times what any agent writes.
const maxAnswerHeader = 64 << 10

// newTransport reaches the agent. It lets go of idle connections before the agent
// does, which after a minute closes them under a request.
func newTransport(agent Agent) *http.Transport {
	dialer := &net.Dialer{Timeout: 5 * time.Second}
	return &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, agent.Network, agent.Address)
		},
		DisableCompression:     true, // what a tracer does not ask for it must not get
		MaxIdleConns:           idleToAgent,
		MaxIdleConnsPerHost:    idleToAgent,
		IdleConnTimeout:        30 * time.Second,
		MaxResponseHeaderBytes: maxAnswerHeader,
	}
}

// idleToAgent is how many connections to the agent are kept for the next request.
const idleToAgent = 64

// AgentConnections is the most that are open to the agent: one a request, of which a
// tracer's connection has one at a time, and those kept.
func AgentConnections(tracers int) int { return tracers + idleToAgent }
