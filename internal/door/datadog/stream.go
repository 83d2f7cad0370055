package datadog

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/door/bodies"
)

// streamedBody is a tracer's body that is forwarded while it comes. It may take any time
// as long as some of it comes every idleTimeout, until the agent has answered: then the
// rest has readTimeout. Without that bound the answer would wait for a rest that may never
// come, because our server reads a body to its end before it answers.
type streamedBody struct {
	io.ReadCloser
	control *http.ResponseController

	mu       sync.Mutex // the agent may answer while the body is read
	ended    bool
	answered bool
	stopped  bool // its tracer has, within it
}

// idleTimeout is how long nothing of a body may come: many times what the agent allows for
// a whole body, or for all but the largest.
const idleTimeout = time.Minute

// streamKey is where a request's context holds its streamed body.
type streamKey struct{}

// stream forwards a request without looking at its body.
func (s *Server) stream(w http.ResponseWriter, r *http.Request) {
	// Of a request without a body the connection is watched from the start.
	keepNamedFields(r.Header)
	body := &streamedBody{
		ReadCloser: r.Body, control: http.NewResponseController(w),
		ended: r.Body == http.NoBody,
	}
	r = r.WithContext(context.WithValue(r.Context(), streamKey{}, body))
	r.Body = body
	s.proxy.ServeHTTP(w, r)
}

// Read reads from the tracer. Behind the end of the body our server watches the connection
// for the tracer's leaving, without a deadline.
func (b *streamedBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	if b.ended {
		// The transport reads once more behind the last byte. Our server may have closed
		// the body by then, because the answer has begun, and its error would cost the
		// connection to the agent.
		b.mu.Unlock()
		return 0, io.EOF
	}
	if !b.answered {
		_ = b.control.SetReadDeadline(time.Now().Add(idleTimeout)) // none where it can't be set
	}
	b.mu.Unlock()
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.stopped = errors.Is(err, os.ErrDeadlineExceeded); errors.Is(err, io.EOF) {
			b.ended = true
			_ = b.control.SetReadDeadline(time.Time{})
		}
	}
	return n, err
}

// hasStopped reports whether a request failed because its tracer sent no more of its body.
func hasStopped(r *http.Request) bool {
	b, ok := r.Context().Value(streamKey{}).(*streamedBody)
	if !ok {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stopped
}

// limitRest gives the rest of a request's body readTimeout, now that its answer is here.
func limitRest(r *http.Request) {
	b, ok := r.Context().Value(streamKey{}).(*streamedBody)
	if !ok {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.ended && !b.answered {
		b.answered = true
		_ = b.control.SetReadDeadline(time.Now().Add(readTimeout))
	}
}

// streamJoined forwards a request of whose body a part was read. That part makes room
// for other bodies as soon as it is forwarded.
func (s *Server) streamJoined(w http.ResponseWriter, r *http.Request, head *bodies.Body) {
	from := head.NewReader()
	defer from.Close()
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(from, r.Body), r.Body}
	s.stream(w, r)
}

// keepNamedFields keeps the header fields that a tracer names in Connection. A proxy has to
// remove them, among them the mark of a request whose tracer counted it; but to a tracer we
// are the agent, not a proxy.
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
