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

// newProxy returns a reverse proxy that streams requests to the agent. It flushes responses after each write, and
// has no timeout for responses. A failed request is handled by abortStream.
func (s *Server) newProxy() *httputil.ReverseProxy {
	agentURL := &url.URL{Scheme: "http", Host: s.config.Agent.Host()}
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(agentURL)
			r.Out.URL.RawQuery = r.In.URL.RawQuery // with the parameters that ReverseProxy has removed as invalid
			if conn := conns.FromContext(r.In.Context()); conn != nil {
				setContainer(conn.Container, r.Out.Header)
			}
		},
		Transport: s.transport,
		ModifyResponse: func(r *http.Response) error {
			s.agentState.update(r.Header)
			return nil
		},
		FlushInterval: -1,                         // flush after each write
		ErrorLog:      log.New(io.Discard, "", 0), // ErrorHandler logs
		ErrorHandler:  s.abortStream,
	}
}

// abortStream closes the tracer's connection after a streamed request has failed with err. It sends no response,
// because some tracers do not retry after a response. Unless the tracer has canceled the request, abortStream logs
// and counts the error.
func (s *Server) abortStream(_ http.ResponseWriter, r *http.Request, err error) {
	isTracerGone := r.Context().Err() != nil
	if !isTracerGone {
		s.recordFailure(err)
	}
	if conn := conns.FromContext(r.Context()); conn != nil {
		conn.Abort() // otherwise net/http would wait for the rest of the body
	}
	panic(http.ErrAbortHandler)
}

// stream forwards a request to the agent without reading its body into memory.
func (s *Server) stream(w http.ResponseWriter, r *http.Request) {
	clearConnectionOptions(r.Header)
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
	isAtEnd bool // whether io.EOF was returned
}

// stallTimeout is much longer than the agent's timeout for a whole trace request.
const stallTimeout = time.Minute

// Read reads from the request body, and returns an error if no data arrives within stallTimeout. It uses the read
// deadline of the connection, which it clears at the end of the body.
func (b *stallingBody) Read(p []byte) (int, error) {
	if b.isAtEnd { // http.Transport can read once more, even after the response has begun
		return 0, io.EOF
	}
	_ = b.control.SetReadDeadline(time.Now().Add(stallTimeout)) // tests have connections without deadlines
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		b.isAtEnd = true
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err //nolint:wrapcheck // the transport asks what it is
}

// streamRest streams a request to the agent after the first part of its body was read. alreadyRead is that part;
// the rest is read from the connection. streamRest releases the memory of alreadyRead before it returns.
func (s *Server) streamRest(w http.ResponseWriter, r *http.Request, alreadyRead *bodies.Body) {
	firstPart := alreadyRead.NewReader()
	defer firstPart.Close()
	r.Body = struct {
		io.Reader
		io.Closer
	}{
		Reader: io.MultiReader(firstPart, r.Body),
		Closer: r.Body,
	}
	s.stream(w, r)
}

// clearConnectionOptions removes the Connection field, except for the option Upgrade. Otherwise, ReverseProxy would
// remove the fields that the Connection field lists, for example Datadog-Client-Computed-Stats.
func clearConnectionOptions(h http.Header) {
	for _, value := range h["Connection"] {
		for option := range strings.SplitSeq(value, ",") {
			if strings.EqualFold(strings.TrimSpace(option), "Upgrade") {
				h.Set("Connection", "Upgrade")
				return
			}
		}
	}
	h.Del("Connection")
}
