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
	Who         string // name of the destination, in errors
	Endpoint    endpoint.URL
	Path        string // of posted bodies, below the endpoint's own
	ContentType string
	Nothing     []byte // a body without anything that can be counted, for probes
	Answers     Answers
	Hint        string      // what an operator may have mistaken, for errors without an answer
	Header      http.Header // of each request
	Version     string      // of the daemon, for the User-Agent header

	TLS         *tls.Config
	UsesProxies bool          // the environment's proxies are used
	Patience    time.Duration // for a destination that has never asked for a body; 0: a second
}

// expectMode is how bodies are sent.
//
// A body that was written completely and never answered may have been counted, so it is lost as ambiguous.
// A destination that hangs still accepts connections and bytes, because its kernel does. So a body
// is sent only when the destination asks for it (Expect: 100-continue): one that was not asked for has
// certainly not arrived, and is retried. Without this an agent that hangs for half a minute would cost each
// payload that is tried meanwhile.
//
// Some servers in front of a destination never ask, although every server should. Silence does not tell
// them from one that hangs, but a probe does, a body without anything that can be counted: it is sent
// without being asked for after a second, and a server that answers it accepts bodies.
//
//	onRequest ──── not asked for the body in time, or not answered ───> probeFirst
//	onRequest ──── answered 417, by a server without Expect ──────────> unasked
//	unasked ────── not answered ──────────────────────────────────────> probeFirst
//	probeFirst ─── the probe was asked for its body, and answered ────> onRequest
//	probeFirst ─── the probe was answered ────────────────────────────> unasked
//
// So a destination that becomes silent costs the payloads in flight to it, once: others wait until a probe
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
	hasAsked  atomic.Bool     // for a body, ever
	probing   chan struct{}   // holds a token while a probe is in flight
	whenAsked *http.Transport // sends no body that was not asked for
	unasked   *http.Transport // sends it anyway after the patience is over
}

const (
	defaultPatience = time.Second
	forever         = 24 * time.Hour // longer than any request may take
)

// New returns a poster. It opens no connection.
func New(c Config) *Poster {
	if c.Patience == 0 {
		c.Patience = defaultPatience
	}
	return &Poster{
		cfg:       c,
		probing:   make(chan struct{}, 1),
		whenAsked: c.transport(forever),
		unasked:   c.transport(c.Patience),
	}
}

// transport dials for each request. The destination can close an idle connection at the moment when it is
// used again, and then a request that was written completely to a closed connection looks like one that was
// counted. A connection per request is cheap here: there are a few in some seconds.
func (c *Config) transport(patience time.Duration) *http.Transport {
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
		ExpectContinueTimeout:  patience,
		MaxResponseHeaderBytes: 64 << 10,
	}
	if c.UsesProxies && !isSocket {
		t.Proxy = http.ProxyFromEnvironment
	}
	return t
}

var (
	// errNotAsked is why a body was withdrawn.
	errNotAsked = errors.New("it does not ask for the body")
	// errNoAnswer is the cause of an unknown outcome.
	errNoAnswer = errors.New("no answer to a request that was written whole")
)

// Post offers the destination a body once. If it turns out that bodies must be sent in another mode, and
// this one has certainly not arrived, it is offered again.
func (p *Poster) Post(ctx context.Context, header http.Header, bytes []byte) Answer {
	for isRetry := false; ; isRetry = true {
		mode, err := p.ready(ctx)
		if err != nil {
			return failed(export.OutcomeNotYet, err)
		}
		a := p.offer(ctx, header, bytes, mode)
		isMisjudged := errors.Is(a.Err, errNotAsked) ||
			a.Code == http.StatusExpectationFailed && mode != unasked
		if !isMisjudged || isRetry {
			return a
		}
	}
}

// ready returns the mode for a body, after a probe if there must be one. Requests that wait for another's
// probe use its result.
func (p *Poster) ready(ctx context.Context) (expectMode, error) {
	if mode := expectMode(p.mode.Load()); mode != probeFirst {
		return mode, nil
	}
	select {
	case p.probing <- struct{}{}:
		defer func() { <-p.probing }()
	case <-ctx.Done():
		return probeFirst, p.failure("probe", errNotAsked)
	}
	var err error
	if expectMode(p.mode.Load()) == probeFirst {
		err = p.Probe(ctx)
	}
	return expectMode(p.mode.Load()), err
}

// leave changes the mode that a request was made in, unless another request has changed it since.
func (p *Poster) leave(mode, to expectMode) { p.mode.CompareAndSwap(int32(mode), int32(to)) }

// offer makes one request with a body. The body is withdrawn unless it is asked for in time.
func (p *Poster) offer(ctx context.Context, header http.Header, bytes []byte, mode expectMode) Answer {
	ctx, giveUp := context.WithCancel(ctx)
	defer giveUp()
	req, sends, err := p.post(ctx, header, bytes, mode != unasked)
	if err != nil {
		return Answer{Attempt: export.Attempt{Outcome: export.OutcomeRefused, Err: err}}
	}
	if mode != unasked {
		impatience := time.AfterFunc(p.patience(ctx), func() {
			if sends.withdraw() {
				giveUp()
			}
		})
		defer impatience.Stop()
	}
	resp, err := p.whenAsked.RoundTrip(req)
	if sends.asked.Load() {
		p.hasAsked.Store(true)
	}
	if err == nil {
		defer resp.Body.Close()
		a := p.cfg.Answers.read(p.cfg.Who, resp, maxRead, time.Now())
		a.Sent = req.Header
		if a.Code == http.StatusExpectationFailed && mode != unasked {
			a.Outcome = export.OutcomeNotYet
			p.leave(mode, unasked)
		}
		return a
	}
	if sends.hasConnection() {
		p.leave(mode, probeFirst)
	}
	switch {
	case sends.state.Load() == withdrawn:
		err = errNotAsked
	case sends.sentWhole():
		return failed(export.OutcomeUnknown, fmt.Errorf("%w: %w", errNoAnswer, err))
	}
	return failed(export.OutcomeNotYet, p.failure("send payload to", err))
}

// patience is how long the destination has to ask for a body: half of the time that the request has, so
// that the answer has the other half. A body that is asked for later is likely to be counted and not
// answered in time. A destination that has never asked has less time, because it may never ask.
func (p *Poster) patience(ctx context.Context) time.Duration {
	if end, ok := ctx.Deadline(); ok && p.hasAsked.Load() {
		return time.Until(end) / 2
	}
	return p.cfg.Patience
}

// Probe finds out how the destination accepts a body, and fails if there is no answer.
func (p *Poster) Probe(ctx context.Context) error {
	req, sends, err := p.post(ctx, nil, p.cfg.Nothing, true)
	if err != nil {
		return err
	}
	resp, err := p.unasked.RoundTrip(req)
	if err != nil {
		return p.failure("probe", err)
	}
	_ = resp.Body.Close()
	if sends.asked.Load() {
		p.hasAsked.Store(true)
		p.mode.Store(int32(onRequest))
	} else {
		p.mode.Store(int32(unasked))
	}
	return nil
}

// Get asks the destination for something, and reads at most so many bytes of it.
func (p *Poster) Get(ctx context.Context, path string, most int64) Answer {
	req, err := p.request(ctx, http.MethodGet, path)
	if err != nil {
		return failed(export.OutcomeRefused, err)
	}
	resp, err := p.unasked.RoundTrip(req)
	if err != nil {
		return failed(export.OutcomeNotYet, err)
	}
	defer resp.Body.Close()
	return p.cfg.Answers.read(p.cfg.Who, resp, most, time.Now())
}

// post makes a request with a body.
func (p *Poster) post(
	ctx context.Context, header http.Header, bytes []byte, asking bool,
) (req *http.Request, sends *body, err error) {
	sends = &body{}
	if req, err = p.request(sends.trace(ctx), http.MethodPost, p.cfg.Path); err != nil {
		return nil, nil, err
	}
	// The body is set by hand: otherwise net/http would know how to rewind it, and could send it twice.
	sends.bytes.Reset(bytes)
	req.Body, req.ContentLength = sends, int64(len(bytes))
	for name, values := range header {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", p.cfg.ContentType)
	if asking {
		req.Header.Set("Expect", "100-continue")
	}
	return req, sends, nil
}

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

// failure is the error of a request that was not answered.
func (p *Poster) failure(what string, err error) error {
	return fmt.Errorf("%s %s: %w%s", what, p.cfg.Endpoint, err, p.cfg.Hint)
}
