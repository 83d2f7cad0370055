package flush

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// agentClient is what the flusher asks of the agent.
type agentClient interface {
	// post offers a payload once.
	post(ctx context.Context, p *payload) attempt
	// info reads what the agent says of itself.
	info(ctx context.Context) (info, error)
}

// httpAgent is the agent behind its HTTP API.
type httpAgent struct {
	url       AgentURL
	userAgent string

	// An agent that has asked for a body once is sent none that it does not ask
	// for. One that never asks, though every server should, is sent it after a
	// second.
	asks        atomic.Bool
	whenAsked   *http.Transport
	afterSecond *http.Transport

	// What answers 417, as an old proxy does, is sent bodies without being asked.
	noExpect atomic.Bool
}

func newHTTPAgent(url AgentURL, version string) *httpAgent {
	return &httpAgent{
		url:       url,
		userAgent: strings.TrimSuffix("spanstatsd/"+headerText(version), "/"),

		whenAsked:   newTransport(url, noExpectTimeout),
		afterSecond: newTransport(url, expectTimeout),
	}
}

// post offers the agent a payload once.
func (h *httpAgent) post(ctx context.Context, p *payload) attempt {
	var body watchedBody
	req, err := h.request(body.trace(ctx), http.MethodPost, "/v0.6/stats")
	if err != nil {
		return attempt{outcome: refused, err: err}
	}
	body.bytes.Reset(p.body)
	req.Body, req.ContentLength = &body, int64(len(p.body))
	req.Header.Set("Content-Type", "application/msgpack")
	if !h.noExpect.Load() {
		req.Header.Set("Expect", "100-continue")
	}
	setOrigin(req.Header, &p.origin)
	transport := h.afterSecond
	if h.asks.Load() {
		transport = h.whenAsked
	}
	resp, err := transport.RoundTrip(req)
	if body.asked.Load() {
		h.asks.Store(true)
	}
	if err != nil {
		if body.sentWhole() {
			return attempt{outcome: unknown, silent: true, err: fmt.Errorf("%w: %w", errNoAnswer, err)}
		}
		return attempt{outcome: notYet, silent: true, err: fmt.Errorf("send payload to %s: %w", h.url, err)}
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusExpectationFailed && h.noExpect.CompareAndSwap(false, true) {
		return h.post(ctx, p)
	}
	a := readAnswer(resp, time.Now())
	if a.refusal != nil {
		a.refusal.Sent = req.Header
	}
	return a
}

func (h *httpAgent) request(ctx context.Context, method, path string) (*http.Request, error) {
	// A body is set by hand: net/http would otherwise learn how to rewind it,
	// and could send it a second time by itself.
	req, err := http.NewRequestWithContext(ctx, method, "http://"+h.url.host()+path, nil)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	req.Close = true
	req.Header.Set("User-Agent", h.userAgent)
	return req, nil
}

// setOrigin says whose statistics these are. The agent takes the container
// only from here, whatever the payload says.
func setOrigin(h http.Header, o *span.Origin) {
	for _, field := range [...]struct{ name, value string }{
		{"Datadog-Meta-Lang", o.Lang},
		{"Datadog-Meta-Lang-Version", o.LangVersion},
		{"Datadog-Meta-Lang-Interpreter", o.LangInterpreter},
		{"Datadog-Meta-Tracer-Version", o.TracerVersion},
		{"Datadog-Container-ID", o.ContainerID},
		{"Datadog-Entity-ID", o.EntityID},
		{"Datadog-External-Env", o.ExternalEnv},
		{"Datadog-Obfuscation-Version", o.ObfuscationVersion},
	} {
		if value := headerText(field.value); value != "" {
			h.Set(field.name, value)
		}
	}
}

// headerText leaves out what may not stand in a header: a tracer's stray
// newline must not make its payload impossible to send.
func headerText(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, s))
}

// watchedBody is the body of one request. It observes the request closely enough to
// say afterwards whether the agent can have received all of it.
//
// net/http reports a request as written when its last bytes are in a buffer of
// its own, and also when it was never asked for the body. So the body is watched
// too, and the connection: a request arrived whole only if all of its body was
// read and none of the connection's writes failed.
type watchedBody struct {
	bytes    bytes.Reader
	buffered atomic.Bool
	asked    atomic.Bool // the agent asked for the body
	read     atomic.Bool // all of the body was read, to be written
	conn     atomic.Pointer[watchedConn]
}

// trace observes the request that is made with the context.
func (b *watchedBody) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			if conn, ok := info.Conn.(*watchedConn); ok {
				b.conn.Store(conn)
			}
		},
		Got100Continue: func() { b.asked.Store(true) },
		WroteRequest:   func(info httptrace.WroteRequestInfo) { b.buffered.Store(info.Err == nil) },
	})
}

// Read gives the body to net/http.
func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.bytes.Read(p)
	if b.bytes.Len() == 0 {
		b.read.Store(true)
	}
	return n, err
}

// Close implements io.ReadCloser.
func (b *watchedBody) Close() error { return nil }

// sentWhole says whether every byte of the request was given to the kernel. It may
// be asked once RoundTrip has returned: net/http lets go of a failed request
// only after its writing goroutine has ended.
func (b *watchedBody) sentWhole() bool {
	conn := b.conn.Load()
	return conn != nil && b.read.Load() && b.buffered.Load() && !conn.failed.Load()
}

// watchedConn records whether a write failed.
type watchedConn struct {
	net.Conn
	failed atomic.Bool
}

func (c *watchedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if err != nil {
		c.failed.Store(true)
	}
	return n, err
}

const (
	expectTimeout   = time.Second    // within which an agent that is well asks for a body
	noExpectTimeout = 24 * time.Hour // longer than any request may take
)

// newTransport dials the agent and nothing else, anew for each request. An idle
// connection can be closed by the agent at the moment when it is used again;
// the request is then written whole to nobody, which cannot be told from one
// that was counted. A connection for each request is cheap here: there is one
// request an origin in ten seconds, and the agent is on the same host.
func newTransport(url AgentURL, expectTimeout time.Duration) *http.Transport {
	var dialer net.Dialer
	return &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, url.Network, url.Address)
			if err != nil {
				return nil, err
			}
			return &watchedConn{Conn: conn}, nil
		},
		DisableCompression:     true,
		DisableKeepAlives:      true,
		ExpectContinueTimeout:  expectTimeout,
		MaxResponseHeaderBytes: 64 << 10,
	}
}
