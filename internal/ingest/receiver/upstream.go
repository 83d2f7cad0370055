package receiver

import (
	"cmp"
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
	Network, Address string        // arguments of net.Dialer
	MaxConnections   int           // 0 means unlimited
	ResponseTimeout  time.Duration // timeout for forwarding a buffered request; 0 means unlimited
	TLS              *tls.Config   // nil disables TLS
	IsGRPC           bool          // whether the upstream supports only HTTP/2
	// Dial connects to the upstream. If it is nil, Network and Address are dialed.
	Dial func(context.Context) (net.Conn, error)
}

const (
	// MaxIdle is the maximum number of idle connections to an upstream.
	MaxIdle = 64
	// MaxResponseHeader is the maximum length of a response header. It is many times that of any known upstream.
	MaxResponseHeader = 64 << 10
	// PingAfter is the silence after which an HTTP/2 peer is pinged.
	PingAfter = 30 * time.Second
	// WriteTimeout is the timeout for one write to an HTTP/2 peer.
	WriteTimeout = 30 * time.Second

	// idleTimeout is less than the idle timeout of most servers, including the agent, which is a minute. Otherwise the
	// server could close the connection while the next request is being sent.
	idleTimeout = 30 * time.Second
	dialTimeout = 5 * time.Second
)

// Host returns the host in the URL of the upstream. It is localhost for a Unix socket.
func (u *Upstream) Host() string {
	if u.Network == "unix" {
		return "localhost"
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

// NewTransport returns a transport that sends all requests to the upstream, whatever host their URL contains. For
// gRPC it uses HTTP/2, and otherwise HTTP/1 or, over TLS, HTTP/2. If retrier is not nil, it retries failed dials.
func (u *Upstream) NewTransport(retrier *DialRetrier) *http.Transport {
	dial := u.dial
	if retrier != nil {
		dial = func(ctx context.Context) (net.Conn, error) { return retrier.Dial(ctx, u.dial) }
	}
	isEncrypted := u.TLS != nil
	protocols := &http.Protocols{}
	protocols.SetHTTP1(!u.IsGRPC)
	protocols.SetHTTP2(isEncrypted)
	protocols.SetUnencryptedHTTP2(u.IsGRPC && !isEncrypted)
	return &http.Transport{
		Protocols:              protocols,
		DialContext:            func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
		TLSClientConfig:        u.TLS,
		TLSHandshakeTimeout:    u.ResponseTimeout,
		DisableCompression:     true, // the sender's Accept-Encoding is forwarded instead
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
	Prefix         []byte      // gRPC prefix of the message; nil with other protocols
	Message        []byte
}

// outboundBody is the body of a forwarded request. A lock guards it, because http.Transport can still read it when the
// response has arrived. Reads fail after Close, since the memory of the body can then be reused.
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

// newReader returns a reader of the whole body, for http.Request.GetBody.
func (b *outboundBody) newReader() (io.ReadCloser, error) {
	return &outboundReader{body: b, unread: net.Buffers{b.prefix, b.message}}, nil
}

// outboundReader reads an outboundBody once.
type outboundReader struct {
	body   *outboundBody
	unread net.Buffers
}

// Read reads the body of a forwarded request: the prefix that gRPC requires, if there is one, and the message. One call
// can return bytes of both, because net/http sends one HTTP/2 frame per call. Read fails after the body is closed.
func (r *outboundReader) Read(p []byte) (int, error) {
	r.body.mu.Lock()
	defer r.body.mu.Unlock()
	if r.body.isClosed {
		return 0, io.ErrClosedPipe
	}
	return r.unread.Read(p) //nolint:wrapcheck // io.EOF
}

// Close does nothing: Server.forward closes the outboundBody.
func (*outboundReader) Close() error { return nil }

// roundTrip sends a request to the upstream. The caller must close the body of the response, and then the outbound body.
func (s *Server) roundTrip(
	ctx context.Context, outbound *OutboundRequest, body *outboundBody,
) (*http.Response, error) {
	request, err := s.setup.Upstream.newRequest(ctx, outbound, body)
	if err != nil {
		return nil, fmt.Errorf("forward request: %w", err)
	}
	response, err := s.transport.RoundTrip(request)
	if err != nil {
		return nil, fmt.Errorf("forward request: %w", cmp.Or(ctx.Err(), err))
	}
	isFinal := response.StatusCode >= http.StatusOK
	if !isFinal { // 101 Switching Protocols: the body would not end
		response.Body.Close()
		return nil, fmt.Errorf("forward request: status %d is not a final response", response.StatusCode)
	}
	return response, nil
}

// newRequest returns the net/http request for outbound, which sends the given body.
func (u *Upstream) newRequest(
	ctx context.Context, outbound *OutboundRequest, body *outboundBody,
) (*http.Request, error) {
	reader, _ := body.newReader() // never fails
	request, err := http.NewRequestWithContext(ctx, outbound.Method, u.Base()+outbound.Target, reader)
	if err != nil {
		return nil, err //nolint:wrapcheck // roundTrip does
	}
	request.Header = outbound.Header
	request.GetBody = body.newReader
	request.ContentLength = int64(len(outbound.Prefix) + len(outbound.Message))
	if request.ContentLength == 0 {
		request.Body = http.NoBody // net/http treats a length of 0 with another body as unknown
		request.GetBody = nil
	}
	if _, hasUserAgent := request.Header["User-Agent"]; !hasUserAgent {
		request.Header["User-Agent"] = nil // otherwise net/http adds its own
	}
	return request, nil
}

// hopByHop are the header fields that are not forwarded: they concern one connection, or net/http sets them. In a
// request, net/http also sets Content-Length.
var hopByHop = []string{
	"Connection", "Keep-Alive", "Upgrade", "Expect",
	"Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization",
	"Te", "Trailer", "Transfer-Encoding",
	"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto",
	"Host",
}

// RemoveHopByHop removes the header fields of a request that must not be forwarded.
func RemoveHopByHop(h http.Header) {
	delete(h, "Content-Length")
	for _, name := range hopByHop {
		delete(h, name)
	}
}

// RemoveConnectionOptions removes the header fields whose names are listed in the Connection field. For example,
// "Connection: close, X-Token" removes X-Token.
func RemoveConnectionOptions(h http.Header) {
	for _, value := range h["Connection"] {
		for name := range strings.SplitSeq(value, ",") {
			h.Del(strings.TrimSpace(name))
		}
	}
}

// CopyResponse returns a Response that writes the upstream's status, header and body unchanged. It leaves out the
// header fields that concern only the connection to the upstream.
func CopyResponse(upstream *http.Response) Response {
	return func(w http.ResponseWriter) error {
		for name, values := range upstream.Header {
			if !slices.Contains(hopByHop, name) {
				w.Header()[name] = values
			}
		}
		w.WriteHeader(upstream.StatusCode)
		_, err := io.Copy(w, upstream.Body)
		return err //nolint:wrapcheck // respond ignores its text
	}
}

// ErrLongResponse is the error of a response body over the limit.
var ErrLongResponse = errors.New("read response: the body is too long")

// ReadResponse reads the body of a response. At the end of the body, net/http sets the trailers of the response. If the
// body is longer than maxBytes, ReadResponse returns ErrLongResponse, and reads on for the trailers, up to a limit.
func ReadResponse(response *http.Response, maxBytes int) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(response.Body, int64(maxBytes)+1))
	if err != nil {
		cause := cmp.Or(response.Request.Context().Err(), err) // a cancellation is the cause of err
		return nil, fmt.Errorf("read response: %w", cause)
	}
	if len(body) > maxBytes {
		maxDiscarded := 16 * int64(maxBytes) // the trailers are not worth reading more
		_, _ = io.CopyN(io.Discard, response.Body, maxDiscarded)
		return nil, ErrLongResponse
	}
	return body, nil
}

// DialRetrier retries failed dials to an upstream, for instance while the upstream restarts. Dials are safe to retry,
// since no byte of a request was sent. A DialRetrier is safe for concurrent use.
type DialRetrier struct {
	MaxWait  time.Duration   // 0 disables retries
	Stopping <-chan struct{} // closed to end all retries

	waiting atomic.Int64  // dials being retried
	waited  atomic.Uint64 // dials that were retried, in total
}

// maxWaiting is the maximum number of dials that are retried at the same time. The memory for the bodies of their
// requests is limited as well.
const maxWaiting = 256

// The delay between two dials grows from minRetryDelay to maxRetryDelay.
const (
	minRetryDelay = 20 * time.Millisecond
	maxRetryDelay = 500 * time.Millisecond
)

// Dial calls dial, and repeats that after an error, until it succeeds or MaxWait has passed. It stops earlier when
// ctx is done, when Stopping is closed, or if maxWaiting other calls are waiting. It returns the error of the last
// attempt.
func (d *DialRetrier) Dial(ctx context.Context, dial func(context.Context) (net.Conn, error)) (net.Conn, error) {
	conn, err := dial(ctx)
	canRetry := d.MaxWait > 0
	if err == nil || !canRetry {
		return conn, err
	}
	waitingCalls := d.waiting.Add(1)
	defer d.waiting.Add(-1)
	if waitingCalls > maxWaiting {
		return nil, err
	}
	d.waited.Add(1)
	return d.redial(ctx, dial, err)
}

// redial calls dial with growing delays until it succeeds or must stop. err is the error of the first attempt.
func (d *DialRetrier) redial(
	ctx context.Context, dial func(context.Context) (net.Conn, error), err error,
) (net.Conn, error) {
	timeout := time.NewTimer(d.MaxWait)
	defer timeout.Stop()
	for delay := minRetryDelay; ; delay = min(2*delay, maxRetryDelay) {
		select {
		case <-time.After(delay):
		case <-timeout.C:
			return nil, err
		case <-d.Stopping:
			return nil, err
		case <-ctx.Done():
			return nil, err
		}
		var conn net.Conn
		conn, err = dial(ctx)
		if err == nil {
			return conn, nil
		}
	}
}
