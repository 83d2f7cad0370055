package post

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/check/endpoint"
	"github.com/spanstatsd/spanstatsd/internal/export"
)

// Config configures a Poster.
type Config struct {
	Name        string // name of the destination, in errors
	Endpoint    endpoint.URL
	Path        string // path of posted bodies, relative to Endpoint
	ContentType string
	EmptyBody   []byte // body without any statistics, for probes
	Answers     Answers
	Hint        string      // appended to errors without a response, for operators
	Header      http.Header // added to each request
	Version     string      // of the daemon, for the User-Agent header

	TLS             *tls.Config
	UsesProxies     bool          // use the proxies configured in the environment
	ContinueTimeout time.Duration // time for a destination that has never requested a body; default: 1 s
}

// expectMode determines how bodies are sent.
//
// A body that was sent completely and never answered may have been counted, so its spans are lost
// as ambiguous. A destination that hangs still accepts connections and bytes, because its kernel
// does. So a body is sent only when the destination requests it (Expect: 100-continue): a body that
// was not requested has certainly not arrived, and can be retried. Otherwise an agent that hangs
// for half a minute would lose every payload tried in that time.
//
// Some proxies in front of a destination never request bodies, although every server should.
// Silence does not distinguish them from a destination that hangs, but a probe does, which is a
// body without statistics: it is sent after a second even if it was not requested, and a server
// that answers it accepts bodies.
//
//	whenRequested ─ body not requested in time, or not answered ────────> probeFirst
//	whenRequested ─ answered 417, by a server without Expect ───────────> immediate
//	immediate ───── not answered ───────────────────────────────────────> probeFirst
//	probeFirst ──── the body of the probe was requested, and answered ──> whenRequested
//	probeFirst ──── the probe was answered ─────────────────────────────> immediate
//
// So a destination that becomes silent costs only the payloads in flight: others wait until a probe
// is answered. All requests share the mode.
type expectMode int32

const (
	whenRequested expectMode = iota
	immediate
	probeFirst
)

// Poster sends bodies to one destination. See the package comment.
type Poster struct {
	cfg              Config
	mode             atomic.Int32    // an expectMode
	hasRequestedBody atomic.Bool     // the destination has requested a body at least once
	probing          chan struct{}   // holds a token while a probe is in flight
	strictTransport  *http.Transport // never sends a body that was not requested, if the request has Expect
	lenientTransport *http.Transport // sends a body after Config.ContinueTimeout even if it was not requested
}

const (
	defaultContinueTimeout = time.Second
	forever                = 24 * time.Hour // longer than the timeout of any request
)

// New returns a Poster. It opens no connection.
func New(c Config) *Poster {
	if c.ContinueTimeout == 0 {
		c.ContinueTimeout = defaultContinueTimeout
	}
	return &Poster{
		cfg:              c,
		probing:          make(chan struct{}, 1),
		strictTransport:  c.transport(forever),
		lenientTransport: c.transport(c.ContinueTimeout),
	}
}

// transport returns a transport that waits for the status 100 Continue, but at most for continueTimeout, before it
// sends a body with the header "Expect: 100-continue". It opens a new connection for each request. A connection that
// is used again could be closed by the destination at the same moment, and it would be unknown whether the request
// has arrived.
func (c *Config) transport(continueTimeout time.Duration) *http.Transport {
	t := &http.Transport{
		DialContext:            c.dial,
		TLSClientConfig:        c.TLS.Clone(), // a transport changes its own
		ForceAttemptHTTP2:      true,
		DisableCompression:     true,
		DisableKeepAlives:      true,
		ExpectContinueTimeout:  continueTimeout,
		MaxResponseHeaderBytes: 64 << 10,
	}
	if c.UsesProxies && c.Endpoint.Network != "unix" {
		t.Proxy = http.ProxyFromEnvironment
	}
	return t
}

// dial opens a connection to the given address, or to the Unix socket of the destination, if it has one.
func (c *Config) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if c.Endpoint.Network == "unix" {
		network, address = "unix", c.Endpoint.Address
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &watchedConn{Conn: conn}, nil
}

var (
	// errNotRequested is the reason why a body was withdrawn.
	errNotRequested = errors.New("the server did not request the body")
	// errNoResponse is the reason for an unknown outcome.
	errNoResponse = errors.New("no response to a request that was sent completely")
)

// Post sends a body to the destination in one request, and returns the result. The destination can reject the way
// in which the body is sent, for example because it does not support Expect. The body has then certainly not
// arrived, and Post sends it once more, in the way that the destination supports.
func (p *Poster) Post(ctx context.Context, header http.Header, content []byte) Answer {
	answer, isModeUnsupported := p.postOnce(ctx, header, content)
	if isModeUnsupported {
		answer, _ = p.postOnce(ctx, header, content) // in another mode, to which the first call has changed p.mode
	}
	return answer
}

// postOnce sends a body in one request. The current mode determines whether the body is sent immediately, or only
// when the destination requests it after the header Expect: 100-continue. isModeUnsupported is true if the destination
// seems not to support that header. The body has then certainly not arrived, so the caller can retry.
func (p *Poster) postOnce(
	ctx context.Context, header http.Header, content []byte,
) (answer Answer, isModeUnsupported bool) {
	mode, err := p.waitForMode(ctx)
	if err != nil {
		return failedAnswer(export.OutcomeNotYet, err), false
	}
	answer = p.send(ctx, header, content, mode)
	if mode == immediate {
		return answer, false
	}
	wasNotRequested := errors.Is(answer.Err, errNotRequested)
	wasExpectRejected := answer.Code == http.StatusExpectationFailed
	return answer, wasNotRequested || wasExpectRejected
}

// waitForMode returns the mode for sending a body: whenRequested or immediate. If the current mode is probeFirst, it
// probes the destination, or waits until a concurrent call has done so. It returns an error if the probe fails or ctx
// ends.
func (p *Poster) waitForMode(ctx context.Context) (expectMode, error) {
	if mode := p.currentMode(); mode != probeFirst {
		return mode, nil
	}
	select {
	case p.probing <- struct{}{}: // a lock: only one call probes at a time
		defer func() { <-p.probing }()
	case <-ctx.Done(): // the concurrent probe has not been answered
		return probeFirst, p.noResponse("probe", errNotRequested)
	}
	if mode := p.currentMode(); mode != probeFirst { // a call that held the lock before has probed
		return mode, nil
	}
	err := p.Probe(ctx)
	return p.currentMode(), err
}

// currentMode returns the mode that all requests share.
func (p *Poster) currentMode() expectMode { return expectMode(p.mode.Load()) }

// replaceMode replaces the mode used by a request. It does nothing if another request has replaced this mode since.
func (p *Poster) replaceMode(used, replacement expectMode) {
	p.mode.CompareAndSwap(int32(used), int32(replacement))
}

// send makes one request with a body, and changes the mode according to the result. Unless the mode is
// immediate, the request has the header Expect: 100-continue, and is canceled if the destination does not
// request the body in time.
func (p *Poster) send(ctx context.Context, header http.Header, content []byte, mode expectMode) Answer {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	expectsContinue := mode != immediate
	req, body, err := p.newPost(ctx, header, content, expectsContinue)
	if err != nil {
		return Answer{Attempt: export.Attempt{Outcome: export.OutcomeRefused, Err: err}}
	}
	if expectsContinue {
		timer := time.AfterFunc(p.continueTimeout(ctx), func() {
			if body.withdraw() {
				cancel()
			}
		})
		defer timer.Stop()
	}
	resp, err := p.strictTransport.RoundTrip(req)
	if body.isRequested.Load() {
		p.hasRequestedBody.Store(true)
	}
	if err != nil {
		return p.answerWithoutResponse(body, err, mode)
	}
	defer resp.Body.Close()
	answer := p.cfg.Answers.readAnswer(p.cfg.Name, resp, maxRead, time.Now())
	answer.Sent = req.Header
	if expectsContinue && answer.Code == http.StatusExpectationFailed {
		answer.Outcome = export.OutcomeNotYet
		p.replaceMode(mode, immediate)
	}
	return answer
}

// answerWithoutResponse returns the result of a request that used the given mode and failed with err before a response.
// If the request had a connection, the next request must probe the destination first.
func (p *Poster) answerWithoutResponse(b *body, err error, mode expectMode) Answer {
	if b.hasConnection() {
		p.replaceMode(mode, probeFirst) // does nothing if another request has changed the mode since
	}
	switch {
	case b.wasWithdrawn(): // nothing was sent, because the destination did not request the body in time
		return failedAnswer(export.OutcomeNotYet, p.noResponse("send payload to", errNotRequested))
	case b.mayHaveArrived(): // the whole body was sent
		return failedAnswer(export.OutcomeUnknown, fmt.Errorf("%w: %w", errNoResponse, err))
	default: // the end of the body was not sent
		return failedAnswer(export.OutcomeNotYet, p.noResponse("send payload to", err))
	}
}

// continueTimeout returns how long to wait until the destination requests a body with status 100. If it has
// requested one before, this is half of the time until the deadline of ctx, so that the other half is left for the
// response. Otherwise it is Config.ContinueTimeout, because some servers never request bodies.
func (p *Poster) continueTimeout(ctx context.Context) time.Duration {
	deadline, hasDeadline := ctx.Deadline()
	if hasDeadline && p.hasRequestedBody.Load() {
		return time.Until(deadline) / 2
	}
	return p.cfg.ContinueTimeout
}

// Probe finds out how the destination accepts bodies. It sends a body without statistics, and the header Expect:
// 100-continue. If the destination does not request the body, Probe sends it after Config.ContinueTimeout. It sets the
// mode to whenRequested if the destination requests the body, and to immediate if it responds without doing so. It
// returns an error if there is no response.
func (p *Poster) Probe(ctx context.Context) error {
	const expectsContinue = true
	req, body, err := p.newPost(ctx, http.Header{}, p.cfg.EmptyBody, expectsContinue)
	if err != nil {
		return err
	}
	resp, err := p.lenientTransport.RoundTrip(req)
	if err != nil {
		return p.noResponse("probe", err)
	}
	_ = resp.Body.Close()
	mode := immediate
	if body.isRequested.Load() {
		p.hasRequestedBody.Store(true)
		mode = whenRequested
	}
	p.mode.Store(int32(mode))
	return nil
}

// Get sends a GET request for a path below Config.Endpoint. It reads at most limit bytes of the
// response body.
func (p *Poster) Get(ctx context.Context, path string, limit int64) Answer {
	req, err := p.newRequest(ctx, http.MethodGet, path)
	if err != nil {
		return failedAnswer(export.OutcomeRefused, err)
	}
	resp, err := p.lenientTransport.RoundTrip(req) // either transport: they differ only in when they send a body
	if err != nil {
		return failedAnswer(export.OutcomeNotYet, err)
	}
	defer resp.Body.Close()
	return p.cfg.Answers.readAnswer(p.cfg.Name, resp, limit, time.Now())
}

// newPost returns a POST request with the given headers and content. It also returns the body of the request, which
// records how much of it was sent. If expectsContinue is true, the request has the header Expect: 100-continue.
func (p *Poster) newPost(
	ctx context.Context, header http.Header, content []byte, expectsContinue bool,
) (*http.Request, *body, error) {
	b := newBody(content)
	req, err := p.newRequest(b.withTrace(ctx), http.MethodPost, p.cfg.Path)
	if err != nil {
		return nil, nil, err
	}
	req.Body = b // GetBody stays nil, so that net/http cannot send the body a second time
	req.ContentLength = int64(len(content))
	for name, values := range header {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", p.cfg.ContentType)
	if expectsContinue {
		req.Header.Set("Expect", "100-continue")
	}
	return req, b, nil
}

// newRequest creates a request without a body for a path below Config.Endpoint, with the configured
// headers.
func (p *Poster) newRequest(ctx context.Context, method, path string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, p.cfg.Endpoint.Below(path).Target(), nil)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("User-Agent", p.cfg.userAgent())
	for name, values := range p.cfg.Header {
		req.Header[name] = values
	}
	if host := req.Header.Get("Host"); host != "" { // net/http ignores this header
		req.Host = host
		req.Header.Del("Host")
	}
	return req, nil
}

// userAgent returns the User-Agent header, with the version of the daemon if there is one.
func (c *Config) userAgent() string {
	if c.Version == "" {
		return "spanstatsd"
	}
	return "spanstatsd/" + c.Version
}

// noResponse returns the error for a request without a response.
func (p *Poster) noResponse(action string, err error) error {
	return fmt.Errorf("%s %s: %w%s", action, p.cfg.Endpoint, err, p.cfg.Hint)
}
