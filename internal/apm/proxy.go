package apm

import (
	"context"
	"log"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/url"
	"time"
)

// jobKey is where a request's context holds its job.
type jobKey struct{}

// guestKey is where a connection's context holds its connection.
type guestKey struct{}

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
				// Its own: the proxy would close none, and so hold it for longer.
				r.Out.Body, _ = j.lend()
				r.Out.GetBody = j.lend
				r.Out = r.Out.WithContext(httptrace.WithClientTrace(r.Out.Context(), j.trace()))
			}
		},
		Transport: s.patience,
		ModifyResponse: func(answer *http.Response) error {
			s.remember(answer.Header)
			hurried(answer.Request)
			if j, ok := answer.Request.Context().Value(jobKey{}).(*job); ok {
				j.done()
				if answer.StatusCode >= http.StatusMultipleChoices {
					j.refused()
				}
			}
			return nil
		},
		FlushInterval: -1,
		ErrorLog:      log.New(nowhere{}, "", 0), // ErrorHandler says what there is to say
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			hurried(r)
			if j, ok := r.Context().Value(jobKey{}).(*job); ok {
				j.refused()
			}
			s.counters.failed.Add(1)
			s.log.away(err)
			w.WriteHeader(http.StatusBadGateway)
		},
	}
}

// nowhere takes lines that somebody else writes better.
type nowhere struct{}

func (nowhere) Write(p []byte) (int, error) { return len(p), nil }

// identify says which container a request came from where its tracer does not:
// behind us the agent can't ask the kernel.
func (s *Server) identify(r *http.Request, h http.Header) {
	g, ok := r.Context().Value(guestKey{}).(*guest)
	if ok && g.container != "" && h.Get(headerContainer) == "" && h.Get(headerEntity) == "" {
		h.Set(headerContainer, g.container)
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
		MaxIdleConns:           64,
		MaxIdleConnsPerHost:    64,
		IdleConnTimeout:        30 * time.Second,
		MaxResponseHeaderBytes: maxAnswerHeader,
	}
}
