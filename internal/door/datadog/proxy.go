package datadog

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"

	"github.com/spanstatsd/spanstatsd/internal/door"
	"github.com/spanstatsd/spanstatsd/internal/door/http1"
)

// newProxy makes what hands on requests that stream: as they come, unbuffered in both
// directions, with no time-out but the agent's own.
func (s *Server) newProxy(host string) *httputil.ReverseProxy {
	target := &url.URL{Scheme: "http", Host: host}
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.URL.RawQuery = r.In.URL.RawQuery
			identifyIn(http1.ConnOf(r.In.Context()), r.Out.Header)
		},
		Transport: s.transport,
		ModifyResponse: func(answer *http.Response) error {
			s.agentState.note(answer.Header.Get)
			limitRest(answer.Request)
			return nil
		},
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0), // ErrorHandler logs
		ErrorHandler:  s.unanswered,
	}
}

// unanswered ends a tracer's connection where the agent did not answer, as Unanswered does. A
// tracer that stopped within its body is told so, as the agent would do it.
func (s *Server) unanswered(w http.ResponseWriter, r *http.Request, err error) {
	limitRest(r)
	if hasStopped(r) {
		http.Error(w, "timeout", http.StatusRequestTimeout)
		return
	}
	s.noteFailed(err)
	panic(http.ErrAbortHandler)
}

// newTransport reaches the agent for what streams. It lets go of idle connections before
// the agent does, which after a minute closes them under a request.
func newTransport(agent *door.Behind) *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return agent.Connect(ctx)
		},
		DisableCompression:     true, // what a tracer does not ask for it must not get
		MaxIdleConns:           http1.MaxKept,
		MaxIdleConnsPerHost:    http1.MaxKept,
		IdleConnTimeout:        http1.KeptFor,
		MaxResponseHeaderBytes: http1.MaxAnswerHeader,
	}
}
