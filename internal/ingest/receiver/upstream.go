package receiver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Upstream is the server that a receiver forwards requests to: an agent or a collector. The zero value stands
// for no upstream.
type Upstream struct {
	Network, Address string        // as a dialer takes them
	MaxConnections   int           // 0: no limit
	ResponseTimeout  time.Duration // for a whole buffered request; 0: no limit
	TLS              *tls.Config   // nil: no TLS
	IsGRPC           bool          // it supports HTTP/2 only
	// Dial connects to it; nil: to Network and Address.
	Dial func(context.Context) (net.Conn, error)
}

const (
	// MaxIdle is the number of connections to an upstream that are kept for the next request.
	MaxIdle = 64
	// MaxResponseHeader is many times the header of any known upstream's response.
	MaxResponseHeader = 64 << 10
	// PingAfter is the silence after which an HTTP/2 peer is pinged. WriteTimeout is the timeout for
	// writing a piece of data to an HTTP/2 peer.
	PingAfter    = 30 * time.Second
	WriteTimeout = 30 * time.Second

	// idleTimeout is shorter than the minute after which most servers, including the agent, close an idle
	// connection: they could do so while the next request is on its way.
	idleTimeout = 30 * time.Second
	dialTimeout = 5 * time.Second
)

// Host returns the host in the URL of the upstream.
func (u *Upstream) Host() string {
	if u.Network == "unix" {
		return "localhost" // a socket has no name
	}
	return u.Address
}

// Base returns the URL of the upstream without a path.
func (u *Upstream) Base() string {
	if u.TLS != nil {
		return "https://" + u.Host()
	}
	return "http://" + u.Host()
}

func (u *Upstream) dial(ctx context.Context) (net.Conn, error) {
	if u.Dial != nil {
		return u.Dial(ctx)
	}
	return (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, u.Network, u.Address)
}

// NewTransport returns a transport to the upstream. If retrier is not nil, it keeps dialing an
// unreachable upstream for a while.
func (u *Upstream) NewTransport(retrier *DialRetrier) *http.Transport {
	dial := u.dial
	if retrier != nil {
		dial = func(ctx context.Context) (net.Conn, error) { return retrier.Dial(ctx, u.dial) }
	}
	protocols := &http.Protocols{}
	protocols.SetHTTP1(!u.IsGRPC)
	protocols.SetHTTP2(u.TLS != nil)
	protocols.SetUnencryptedHTTP2(u.IsGRPC && u.TLS == nil)
	return &http.Transport{
		Protocols:              protocols,
		DialContext:            func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
		TLSClientConfig:        u.TLS,
		TLSHandshakeTimeout:    u.ResponseTimeout,
		DisableCompression:     true, // the sender gets only what it asks for
		MaxConnsPerHost:        u.MaxConnections,
		MaxIdleConnsPerHost:    MaxIdle,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: MaxResponseHeader,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: PingAfter, WriteByteTimeout: WriteTimeout},
	}
}

// OutboundRequest is a request to be forwarded.
type OutboundRequest struct {
	Method, Target string
	Header         http.Header // without Host and Content-Length
	Prefix         []byte      // precedes the message in gRPC; nil otherwise
	Message        []byte
}

// outboundBody is the body of a forwarded request. http.Transport may still read it when the response has
// arrived, so a lock guards it. Reads fail after Close, when its memory may be reused.
type outboundBody struct {
	mu              sync.Mutex
	prefix, message []byte
	isClosed        bool
}

// Close makes all further reads fail.
func (b *outboundBody) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.isClosed = true
}

// newReader returns a reader from the beginning, for http.Request.GetBody.
func (b *outboundBody) newReader() (io.ReadCloser, error) {
	return &outboundReader{body: b, rest: net.Buffers{b.prefix, b.message}}, nil
}

type outboundReader struct {
	body *outboundBody
	rest net.Buffers
}

// Read fills p across the prefix and the message, since net/http sends an HTTP/2 frame per read. With
// the last byte it returns io.EOF.
func (r *outboundReader) Read(p []byte) (int, error) {
	r.body.mu.Lock()
	defer r.body.mu.Unlock()
	if r.body.isClosed {
		return 0, io.ErrClosedPipe
	}
	return r.rest.Read(p) //nolint:wrapcheck // io.EOF
}

// Close does nothing: the body belongs to the request.
func (*outboundReader) Close() error { return nil }

// roundTrip sends a request to the upstream. The caller closes the body of the response, and then the
// outbound body.
func (s *Server) roundTrip(ctx context.Context, out *OutboundRequest, body *outboundBody) (*http.Response, error) {
	reader, _ := body.newReader()
	r, err := http.NewRequestWithContext(ctx, out.Method, s.setup.Upstream.Base()+out.Target, reader)
	if err != nil {
		return nil, fmt.Errorf("forward request: %w", err)
	}
	r.GetBody, r.Header = body.newReader, out.Header
	if r.ContentLength = int64(len(out.Prefix) + len(out.Message)); r.ContentLength == 0 {
		r.Body, r.GetBody = http.NoBody, nil // otherwise the length counts as unknown
	}
	if _, has := r.Header["User-Agent"]; !has {
		r.Header["User-Agent"] = nil // otherwise net/http adds its own
	}
	response, err := s.transport.RoundTrip(r)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, fmt.Errorf("forward request: %w", ctx.Err())
	case err != nil:
		return nil, fmt.Errorf("forward request: %w", err)
	case response.StatusCode < http.StatusOK: // a switch of protocols, whose body does not end
		response.Body.Close()
		return nil, fmt.Errorf("forward request: status %d is not a final response", response.StatusCode)
	}
	return response, nil
}

// hopByHop are the header fields that concern one connection, or are set again when a request is
// forwarded.
var hopByHop = []string{
	"Connection", "Keep-Alive", "Upgrade", "Expect",
	"Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization",
	"Te", "Trailer", "Transfer-Encoding",
	"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto",
	"Host", "Content-Length",
}

// RemoveHopByHop removes the header fields that are not forwarded.
func RemoveHopByHop(h http.Header) {
	for _, name := range hopByHop {
		delete(h, name)
	}
}

// RemoveNamed removes the header fields that are named in Connection.
func RemoveNamed(h http.Header) {
	for _, value := range h["Connection"] {
		for name := range strings.SplitSeq(value, ",") {
			h.Del(strings.TrimSpace(name))
		}
	}
}

// CopyResponse returns the upstream's response unchanged.
func CopyResponse(from *http.Response) Response {
	return func(w http.ResponseWriter) error {
		for name, values := range from.Header {
			if name == "Content-Length" || !slices.Contains(hopByHop, name) {
				w.Header()[name] = values
			}
		}
		w.WriteHeader(from.StatusCode)
		_, err := io.Copy(w, from.Body)
		return err //nolint:wrapcheck // respond ignores its text
	}
}

// ErrLongResponse is the error of a response body above the limit. The body was read to its end, so that its
// trailers are known, unless it is much longer.
var ErrLongResponse = errors.New("read response: its body is too long")

// ReadResponse reads the body of a response up to a limit.
func ReadResponse(from *http.Response, most int) ([]byte, error) {
	const discarded = 16 // times the limit
	body, err := io.ReadAll(io.LimitReader(from.Body, int64(most)+1))
	switch ctx := from.Request.Context(); {
	case err != nil && ctx.Err() != nil:
		return nil, fmt.Errorf("read response: %w", ctx.Err())
	case err != nil:
		return nil, fmt.Errorf("read response: %w", err)
	case len(body) > most:
		_, _ = io.CopyN(io.Discard, from.Body, discarded*int64(most))
		return nil, ErrLongResponse
	}
	return body, nil
}

// DialRetrier keeps dialing an unreachable upstream, which may be restarting. Waiting requests are safe to
// retry, since no byte of them was sent. It is safe for concurrent use.
type DialRetrier struct {
	MaxWait  time.Duration   // 0: a failed dial is not retried
	Stopping <-chan struct{} // ends all retries when it is closed

	waiting atomic.Int64
	waited  atomic.Uint64
}

// maxWaiting bounds the requests that wait at the same time, in addition to the memory for their bodies.
const maxWaiting = 256

// Dial dials until it succeeds or MaxWait has passed.
func (d *DialRetrier) Dial(ctx context.Context, dial func(context.Context) (net.Conn, error)) (net.Conn, error) {
	conn, err := dial(ctx)
	if err == nil || d.MaxWait <= 0 {
		return conn, err
	}
	defer d.waiting.Add(-1)
	if d.waiting.Add(1) > maxWaiting {
		return nil, err
	}
	d.waited.Add(1)
	timeout := time.NewTimer(d.MaxWait)
	defer timeout.Stop()
	const firstPause, lastPause = 20 * time.Millisecond, 500 * time.Millisecond
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		select {
		case <-timeout.C:
			return nil, err
		case <-d.Stopping:
			return nil, err
		case <-ctx.Done():
			return nil, err
		case <-time.After(pause):
		}
		if conn, err = dial(ctx); err == nil {
			return conn, nil
		}
	}
}
