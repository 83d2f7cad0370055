package datadog

import (
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver/bodies"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver/conns"
)

// newProxy returns the proxy for streamed requests: unbuffered in both directions, with no timeout for
// the agent's response.
func (s *Server) newProxy() *httputil.ReverseProxy {
	target := &url.URL{Scheme: "http", Host: s.config.Agent.Host()}
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.URL.RawQuery = r.In.URL.RawQuery
			if c := conns.FromContext(r.In.Context()); c != nil {
				setContainer(c.Container, r.Out.Header)
			}
		},
		Transport: s.transport,
		ModifyResponse: func(r *http.Response) error {
			s.agentState.note(r.Header)
			return nil
		},
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0), // ErrorHandler logs
		ErrorHandler: func(_ http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() == nil { // otherwise the tracer has left, or its body broke off
				s.noteFailed(err)
			}
			if c := conns.FromContext(r.Context()); c != nil {
				c.Abort() // otherwise net/http would wait for the rest of the body
			}
			panic(http.ErrAbortHandler) // see Server.translate
		},
	}
}

// stream forwards a request without a look at its body.
func (s *Server) stream(w http.ResponseWriter, r *http.Request) {
	keepNamedFields(r.Header)
	if r.Body != http.NoBody {
		r.Body = &stallingBody{ReadCloser: r.Body, control: http.NewResponseController(w)}
	}
	s.proxy.ServeHTTP(w, r)
}

// stallingBody is a streamed body that may take any time as long as some of it comes every stallTimeout:
// a tracer that stalls must not hold a connection forever. After its end net/http watches for the
// tracer's leaving without a deadline.
type stallingBody struct {
	io.ReadCloser
	control *http.ResponseController
	isOver  bool
}

// stallTimeout is many times what the agent allows for a whole body, except the largest.
const stallTimeout = time.Minute

func (b *stallingBody) Read(p []byte) (int, error) {
	if b.isOver { // the transport reads once more, maybe when the response has begun
		return 0, io.EOF
	}
	_ = b.control.SetReadDeadline(time.Now().Add(stallTimeout)) // tests have connections without deadlines
	n, err := b.ReadCloser.Read(p)
	if b.isOver = errors.Is(err, io.EOF); b.isOver {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err //nolint:wrapcheck // the transport asks what it is
}

// streamRest forwards a request of which a part of the body was read. That part's memory is released as
// soon as it is forwarded.
func (s *Server) streamRest(w http.ResponseWriter, r *http.Request, head *bodies.Body) {
	from := head.NewReader()
	defer from.Close()
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(from, r.Body), r.Body}
	s.stream(w, r)
}

// keepNamedFields keeps the header fields that a tracer names in Connection. A proxy must remove them,
// among them the mark of a request that its tracer has counted; but tracers take us for the agent.
func keepNamedFields(h http.Header) {
	for _, value := range h["Connection"] {
		for name := range strings.SplitSeq(value, ",") {
			if strings.EqualFold(strings.TrimSpace(name), "Upgrade") {
				h.Set("Connection", "Upgrade")
				return
			}
		}
	}
	h.Del("Connection")
}
