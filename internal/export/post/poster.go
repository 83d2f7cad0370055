package post

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
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
//	onRequest ──── body not requested in time, or not answered ───────> probeFirst
//	onRequest ──── answered 417, by a server without Expect ──────────> unasked
//	unasked ────── not answered ──────────────────────────────────────> probeFirst
//	probeFirst ─── the body of the probe was requested, and answered ─> onRequest
//	probeFirst ─── the probe was answered ────────────────────────────> unasked
//
// So a destination that becomes silent costs only the payloads in flight: others wait until a probe
// is answered. All requests share the mode.
type expectMode int32

const (
	onRequest expectMode = iota
	unasked
	probeFirst
)

// Poster sends bodies to one destination. See the package comment.
type Poster struct {
	cfg       Config
	mode      atomic.Int32    // an expectMode
	hasAsked  atomic.Bool     // the destination has requested a body at least once
	probing   chan struct{}   // holds a token while a probe is in flight
	whenAsked *http.Transport // never sends a body that was not requested
	unasked   *http.Transport // sends a body that was not requested after Config.ContinueTimeout
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
		cfg:       c,
		probing:   make(chan struct{}, 1),
		whenAsked: c.transport(forever),
		unasked:   c.transport(c.ContinueTimeout),
	}
}

// transport returns a transport that dials for each request. If idle connections were reused, the
// destination could close one at that moment, and a request written to a closed connection is
// indistinguishable from one that was counted. A connection per request is cheap here, because
// there are only a few requests every few seconds.
func (c *Config) transport(continueTimeout time.Duration) *http.Transport {
	var dialer net.Dialer
	isSocket, socket := c.Endpoint.Network == "unix", c.Endpoint.Address
	t := &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			if isSocket {
				network, address = "unix", socket
			}
			conn, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &watchedConn{Conn: conn}, nil
		},
		TLSClientConfig:        c.TLS.Clone(), // a transport changes its own
		ForceAttemptHTTP2:      true,
		DisableCompression:     true,
		DisableKeepAlives:      true,
		ExpectContinueTimeout:  continueTimeout,
		MaxResponseHeaderBytes: 64 << 10,
	}
	if c.UsesProxies && !isSocket {
		t.Proxy = http.ProxyFromEnvironment
	}
	return t
}

var (
	// errNotAsked is the reason why a body was withdrawn.
	errNotAsked = errors.New("the server did not request the body")
	// errNoAnswer is the reason for an unknown outcome.
	errNoAnswer = errors.New("no response to a request that was sent completely")
)

// Post makes one attempt to deliver a body. If the destination does not accept the body in the
// current mode, which means that it has certainly not arrived, Post tries once more in the new mode.
func (p *Poster) Post(ctx context.Context, header http.Header, bytes []byte) Answer {
	for isRetry := false; ; isRetry = true {
		mode, err := p.waitForMode(ctx)
		if err != nil {
			return failed(export.OutcomeNotYet, err)
		}
		a := p.send(ctx, header, bytes, mode)
		wasWithdrawn := errors.Is(a.Err, errNotAsked)
		wasExpectRejected := a.Code == http.StatusExpectationFailed && mode != unasked
		hasNewMode := wasWithdrawn || wasExpectRejected
		if !hasNewMode || isRetry {
			return a
		}
	}
}

// waitForMode returns the mode in which to send a body, after a probe if one is needed. Concurrent
// requests share the result of one probe.
func (p *Poster) waitForMode(ctx context.Context) (expectMode, error) {
	if mode := expectMode(p.mode.Load()); mode != probeFirst {
		return mode, nil
	}
	select {
	case p.probing <- struct{}{}:
		defer func() { <-p.probing }()
	case <-ctx.Done():
		return probeFirst, p.noResponse("probe", errNotAsked)
	}
	var err error
	if isStillNeeded := expectMode(p.mode.Load()) == probeFirst; isStillNeeded {
		err = p.Probe(ctx)
	}
	return expectMode(p.mode.Load()), err
}

// changeMode changes the mode from the one that the caller's request used. If another request has
// changed the mode since, it does nothing.
func (p *Poster) changeMode(from, to expectMode) { p.mode.CompareAndSwap(int32(from), int32(to)) }

// send makes one request with a body, and changes the mode according to the result. Unless the mode
// is unasked, it withdraws the body if the destination does not request it in time.
func (p *Poster) send(ctx context.Context, header http.Header, bytes []byte, mode expectMode) Answer {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, body, err := p.newPost(ctx, header, bytes, mode != unasked)
	if err != nil {
		return Answer{Attempt: export.Attempt{Outcome: export.OutcomeRefused, Err: err}}
	}
	if mode != unasked {
		timer := time.AfterFunc(p.requestTimeout(ctx), func() {
			if body.withdraw() {
				cancel()
			}
		})
		defer timer.Stop()
	}
	resp, err := p.whenAsked.RoundTrip(req)
	if body.requested.Load() {
		p.hasAsked.Store(true)
	}
	if err == nil {
		defer resp.Body.Close()
		a := p.cfg.Answers.read(p.cfg.Name, resp, maxRead, time.Now())
		a.Sent = req.Header
		if a.Code == http.StatusExpectationFailed && mode != unasked {
			a.Outcome = export.OutcomeNotYet
			p.changeMode(mode, unasked)
		}
		return a
	}
	if body.hasConnection() {
		p.changeMode(mode, probeFirst)
	}
	switch {
	case body.state.Load() == withdrawn:
		err = errNotAsked
	case body.sentCompletely():
		return failed(export.OutcomeUnknown, fmt.Errorf("%w: %w", errNoAnswer, err))
	}
	return failed(export.OutcomeNotYet, p.noResponse("send payload to", err))
}

// requestTimeout returns the time that the destination has to request a body: half of the time until
// the deadline of ctx. The other half is left for the response; a body requested later would probably
// be counted, but not answered in time. A destination that has never requested any body may not
// support Expect, and gets only Config.ContinueTimeout.
func (p *Poster) requestTimeout(ctx context.Context) time.Duration {
	if end, ok := ctx.Deadline(); ok && p.hasAsked.Load() {
		return time.Until(end) / 2
	}
	return p.cfg.ContinueTimeout
}

// Probe sends a body without statistics, to find out how the destination accepts bodies. It returns
// an error if there is no response.
func (p *Poster) Probe(ctx context.Context) error {
	req, body, err := p.newPost(ctx, nil, p.cfg.EmptyBody, true)
	if err != nil {
		return err
	}
	resp, err := p.unasked.RoundTrip(req)
	if err != nil {
		return p.noResponse("probe", err)
	}
	_ = resp.Body.Close()
	if body.requested.Load() {
		p.hasAsked.Store(true)
		p.mode.Store(int32(onRequest))
	} else {
		p.mode.Store(int32(unasked))
	}
	return nil
}

// Get requests a resource of the destination, and reads at most limit bytes of it.
func (p *Poster) Get(ctx context.Context, path string, limit int64) Answer {
	req, err := p.request(ctx, http.MethodGet, path)
	if err != nil {
		return failed(export.OutcomeRefused, err)
	}
	resp, err := p.unasked.RoundTrip(req)
	if err != nil {
		return failed(export.OutcomeNotYet, err)
	}
	defer resp.Body.Close()
	return p.cfg.Answers.read(p.cfg.Name, resp, limit, time.Now())
}

// newPost creates a request with a body. expectContinue adds the header Expect: 100-continue.
func (p *Poster) newPost(
	ctx context.Context, header http.Header, bytes []byte, expectContinue bool,
) (req *http.Request, sent *body, err error) {
	sent = &body{}
	if req, err = p.request(sent.trace(ctx), http.MethodPost, p.cfg.Path); err != nil {
		return nil, nil, err
	}
	// NewRequest would set GetBody, with which net/http could send the body twice.
	sent.bytes.Reset(bytes)
	req.Body, req.ContentLength = sent, int64(len(bytes))
	for name, values := range header {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", p.cfg.ContentType)
	if expectContinue {
		req.Header.Set("Expect", "100-continue")
	}
	return req, sent, nil
}

// request creates a request with the configured headers and no body.
func (p *Poster) request(ctx context.Context, method, path string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, p.cfg.Endpoint.Below(path).Target(), nil)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("User-Agent", strings.TrimSuffix("spanstatsd/"+p.cfg.Version, "/"))
	for name, values := range p.cfg.Header {
		req.Header[name] = values
	}
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
		req.Header.Del("Host")
	}
	return req, nil
}

// noResponse returns the error for a request without a response.
func (p *Poster) noResponse(action string, err error) error {
	return fmt.Errorf("%s %s: %w%s", action, p.cfg.Endpoint, err, p.cfg.Hint)
}
