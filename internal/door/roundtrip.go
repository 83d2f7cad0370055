package door

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"

	"github.com/spanstatsd/spanstatsd/internal/door/http1"
)

// because is why an exchange failed: that its time is over or its sender has left, which ends its
// connection, or else its own error.
func because(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("forward: %w", ctx.Err())
	}
	return fmt.Errorf("forward: %w", err)
}

// roundTrip sends a request by the transport. When it returns nobody reads the request's bytes any
// more.
func (h *Held) roundTrip(ctx context.Context) *Reply {
	h.parcel = h.request.Begin()
	p := &h.parcel
	out := &outgoing{pieces: [2][]byte{p.Prefix, p.Message}}
	defer out.readers.Wait()
	body, _ := out.newReader()
	r, err := http.NewRequestWithContext(ctx, p.Method, h.server.setup.Behind.Base+p.Target, body)
	if err != nil {
		body.Close()
		return h.request.Unanswered(fmt.Errorf("make request: %w", err))
	}
	r.GetBody, r.Header = out.newReader, p.Fields.Map()
	if r.ContentLength = int64(len(p.Prefix) + len(p.Message)); r.ContentLength == 0 {
		body.Close()
		r.Body, r.GetBody = http.NoBody, nil // else its length counts as unknown
	}
	answer, err := h.server.transport.RoundTrip(r)
	if err != nil {
		return h.request.Unanswered(because(ctx, err))
	}
	defer answer.Body.Close()
	if err = http1.CheckStatus(answer.StatusCode); err != nil { // else its body would be waited for
		return h.request.Unanswered(because(ctx, err))
	}
	field := func(name string) string {
		if value := answer.Trailer.Get(name); value != "" {
			return value
		}
		return answer.Header.Get(name)
	}
	return h.request.Answer(&Answer{Status: answer.StatusCode, Field: field, rest: answer, ctx: ctx})
}

// outgoing is a request's bytes, which stay until net/http has closed every reader of them, which
// may be after the answer.
type outgoing struct {
	pieces  [2][]byte
	readers sync.WaitGroup // that are not closed
}

// newReader reads them from the beginning. A read takes of both what it has room for, as net/http
// writes a frame of HTTP/2 for each, and it says with the last byte that this is the end.
func (o *outgoing) newReader() (io.ReadCloser, error) {
	o.readers.Add(1)
	return &outgoingReader{&net.Buffers{o.pieces[0], o.pieces[1]}, sync.OnceFunc(o.readers.Done)}, nil
}

type outgoingReader struct {
	io.Reader
	closed func()
}

func (r *outgoingReader) Close() error {
	r.closed()
	return nil
}
