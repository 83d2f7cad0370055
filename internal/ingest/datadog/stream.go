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

// newProxy returns the proxy for streamed requests. It buffers in neither direction, and has no timeout for the agent's
// response.
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
			panic(http.ErrAbortHandler) // closes the connection without a response, see Server.translate
		},
	}
}

// stream forwards a request without reading its body into memory.
func (s *Server) stream(w http.ResponseWriter, r *http.Request) {
	keepNamedFields(r.Header)
	if r.Body != http.NoBody {
		r.Body = &stallingBody{ReadCloser: r.Body, control: http.NewResponseController(w)}
	}
	s.proxy.ServeHTTP(w, r)
}

// stallingBody is a streamed body. It may take any time, but each read must end within stallTimeout: a tracer
// that stalls must not hold a connection forever. After the end of the body there is no deadline, because the
// response may take any time as well.
type stallingBody struct {
	io.ReadCloser
	control *http.ResponseController
	isOver  bool // io.EOF was returned
}

// stallTimeout is much longer than the agent's timeout for a whole trace request.
const stallTimeout = time.Minute

func (b *stallingBody) Read(p []byte) (int, error) {
	if b.isOver { // http.Transport may read once more, maybe after the response has begun
		return 0, io.EOF
	}
	_ = b.control.SetReadDeadline(time.Now().Add(stallTimeout)) // tests have connections without deadlines
	n, err := b.ReadCloser.Read(p)
	if b.isOver = errors.Is(err, io.EOF); b.isOver {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err //nolint:wrapcheck // the transport asks what it is
}

// streamRest forwards a request whose body was read in part: first head, the part that was read, and then the rest from
// the connection. The memory of head is released at the end.
func (s *Server) streamRest(w http.ResponseWriter, r *http.Request, head *bodies.Body) {
	headReader := head.NewReader()
	defer headReader.Close()
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(headReader, r.Body), r.Body}
	s.stream(w, r)
}

// keepNamedFields makes the proxy forward the header fields that Connection names. A proxy must remove them, but tracers
// treat the daemon as the agent. In particular, headerComputedStats must reach the agent.
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
