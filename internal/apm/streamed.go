package apm

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// streamed is a tracer's body on its way to the agent. How long it may take is the
// agent's affair, as long as something of it comes within silence, until that has
// answered or given up: then it has readTimeout for what is left of it. Without that,
// an answer would wait for a rest that may never come, because our server reads a body
// to its end before it answers.
type streamed struct {
	io.ReadCloser
	control *http.ResponseController

	mu      sync.Mutex // the agent's answer may come while the body is read
	ended   bool
	hurried bool
}

// silence is how long nothing of a body may come: many times what the agent allows for
// all of it, or for all but the largest.
const silence = time.Minute

// streamedKey is where a request's context holds its streamed body.
type streamedKey struct{}

// stream hands a request on without a look at its body.
func (s *Server) stream(w http.ResponseWriter, r *http.Request) {
	// What has no body is watched for its tracer's leaving from the start.
	body := &streamed{ReadCloser: r.Body, control: http.NewResponseController(w), ended: r.Body == http.NoBody}
	r = r.WithContext(context.WithValue(r.Context(), streamedKey{}, body))
	r.Body = body
	s.proxy.ServeHTTP(w, r)
}

// Read notes the end. From there on the connection is watched for its tracer's
// leaving, for as long as the answer takes.
func (b *streamed) Read(p []byte) (int, error) {
	b.mu.Lock()
	if b.ended {
		// Whoever sends it asks once more, behind its last byte. Our server may have
		// closed it by then, since the answer has begun, and its word for that would cost
		// the connection to the agent.
		b.mu.Unlock()
		return 0, io.EOF
	}
	if !b.hurried {
		_ = b.control.SetReadDeadline(time.Now().Add(silence)) // one that can't be set is none
	}
	b.mu.Unlock()
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.ended = true
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// hurry gives what is left of the body its time.
func (b *streamed) hurry() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.ended && !b.hurried {
		b.hurried = true
		_ = b.control.SetReadDeadline(time.Now().Add(readTimeout))
	}
}

// hurried tells the body of a request that its answer is here.
func hurried(r *http.Request) {
	if body, ok := r.Context().Value(streamedKey{}).(*streamed); ok {
		body.hurry()
	}
}
