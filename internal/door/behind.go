package door

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Behind is who stands behind a door and is handed what came: an agent or a collector. Its zero
// value is nobody.
type Behind struct {
	Network, Address string        // in the form that a dialler takes
	Host             string        // its name in a request
	Most             int           // connections at a time, 0 for any number
	Patience         time.Duration // how long it may take to answer, 0 for any time
	// Transport makes what carries requests in another way than by HTTP/1.1 without TLS, from what
	// makes connections; nil where none is needed. Its requests have the URL Base and the target.
	Transport func(dial func(ctx context.Context, network, address string) (net.Conn, error)) http.RoundTripper
	Base      string
	// Dial connects to it; nil: by Network and Address.
	Dial func(context.Context) (net.Conn, error)
}

// dialTimeout is how long who is behind may take to accept a connection.
const dialTimeout = 5 * time.Second

func (b *Behind) dial(ctx context.Context) (net.Conn, error) {
	if b.Dial != nil {
		return b.Dial(ctx)
	}
	return (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, b.Network, b.Address)
}

// writeHead writes a request up to its message.
func (b *Behind) writeHead(head *bytes.Buffer, p *Parcel) {
	head.Reset()
	for _, text := range [...]string{
		p.Method, " ", p.Target, " HTTP/1.1\r\nHost: ", b.Host, "\r\nContent-Length: ", strconv.Itoa(len(p.Message)), "\r\n",
	} {
		head.WriteString(text)
	}
	p.Fields.Write(head)
	head.WriteString("\r\n")
}

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
	r.GetBody, r.ContentLength, r.Header = out.newReader, int64(len(p.Prefix)+len(p.Message)), p.Fields.Header()
	answer, err := h.server.transport.RoundTrip(r)
	if err != nil {
		return h.request.Unanswered(because(ctx, err))
	}
	defer answer.Body.Close()
	return h.request.Answer(&Answer{Status: answer.StatusCode, rest: answer, ctx: ctx, Field: func(name string) string {
		if value := answer.Trailer.Get(name); value != "" {
			return value
		}
		return answer.Header.Get(name)
	}})
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
