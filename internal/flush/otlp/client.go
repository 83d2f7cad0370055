package otlp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/flush"
	"github.com/spanstatsd/spanstatsd/internal/flush/request"
)

// client is the receiver behind its endpoint.
type client struct {
	endpoint  Endpoint
	headers   Headers
	userAgent string
	timeout   time.Duration // of one request, 0 where the caller's context bounds it
	compress  bool

	manner    atomicManner
	whenAsked *http.Transport // sends no body that was not asked for
	unasked   *http.Transport // sends it all the same when the patience is over
}

const (
	askPatience = time.Second    // within which a receiver that is well asks for a body
	forEver     = 24 * time.Hour // longer than any request may take
)

func newClient(c *Config, secure *tls.Config, patience time.Duration) *client {
	return &client{
		endpoint: c.Endpoint, headers: c.Headers, timeout: c.Timeout, compress: c.Compress,
		userAgent: strings.TrimSuffix("spanstatsd/"+c.Version, "/"),
		whenAsked: newTransport(c.Endpoint, secure, forEver),
		unasked:   newTransport(c.Endpoint, secure, patience),
	}
}

// newTransport dials anew for each request. An idle connection can be closed by the
// receiver at the moment when it is used again; the request is then written whole to
// nobody, which cannot be told from one that was counted. There is one request in some
// seconds, and behind a balancer each finds the receiver that has the least to do.
func newTransport(e Endpoint, secure *tls.Config, patience time.Duration) *http.Transport {
	var dialer net.Dialer
	t := &http.Transport{
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			network, to := e.dials(address)
			conn, err := dialer.DialContext(ctx, network, to)
			if err != nil {
				return nil, err
			}
			return request.Watch(conn), nil
		},
		TLSClientConfig:        secure,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true,
		DisableKeepAlives:      true,
		ExpectContinueTimeout:  patience,
		MaxResponseHeaderBytes: 64 << 10,
	}
	if e.socket == "" {
		t.Proxy = http.ProxyFromEnvironment
	}
	return t
}

// deliver offers the receiver a payload once.
func (c *client) deliver(ctx context.Context, p *flush.Payload) flush.Attempt {
	if c.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.timeout)
		defer cancel()
	}
	if c.manner.load() == inDoubt {
		if err := c.probe(ctx); err != nil {
			return flush.Attempt{Outcome: flush.OutcomeNotYet, Silent: true, Err: err}
		}
	}
	a, status := c.offer(ctx, p)
	if status == http.StatusExpectationFailed && c.manner.load() == asks {
		c.manner.store(asksNever)
		a, _ = c.offer(ctx, p)
	}
	if a.Silent {
		c.manner.store(inDoubt)
	}
	return a
}

// offer makes one request with a payload, and returns the status of its answer too, 0
// without one.
func (c *client) offer(ctx context.Context, p *flush.Payload) (flush.Attempt, int) {
	var body request.Body
	req, err := c.request(body.Trace(ctx), &body, p.Body, c.manner.load() != asksNever)
	if err != nil {
		return flush.Attempt{Outcome: flush.OutcomeRefused, Err: err}, 0
	}
	if c.compress {
		req.Header.Set("Content-Encoding", "gzip")
	}
	resp, err := c.whenAsked.RoundTrip(req)
	if err != nil {
		a := flush.Attempt{Outcome: flush.OutcomeNotYet, Silent: true, Err: c.failed("send payload to", err)}
		if body.SentWhole() {
			a.Outcome, a.Err = flush.OutcomeUnknown, fmt.Errorf("%w: %w", errNoAnswer, err)
		}
		return a, 0
	}
	defer resp.Body.Close()
	return readAnswer(resp, p, c.compress, time.Now()), resp.StatusCode
}

// errNoAnswer is the cause of an ambiguous outcome.
var errNoAnswer = errors.New("no answer to a request that was written whole")

// noMetrics is a request with none: one resource of which nothing is said.
var noMetrics = []byte{fieldResourceMetrics<<3 | 2, 0}

// probe finds out how a receiver in doubt takes a body, and fails where nobody answers.
func (c *client) probe(ctx context.Context) error {
	var body request.Body
	req, err := c.request(body.Trace(ctx), &body, noMetrics, true)
	if err != nil {
		return err
	}
	resp, err := c.unasked.RoundTrip(req)
	if err != nil {
		return c.failed("probe", err)
	}
	_ = resp.Body.Close()
	if body.Asked() {
		c.manner.store(asks)
	} else {
		c.manner.store(asksNever)
	}
	return nil
}

// failed says which request was not answered, and what an operator may have mistaken.
func (c *client) failed(what string, err error) error {
	if c.endpoint.isGRPC() {
		return fmt.Errorf("%s %s: %w (4317 is the port of gRPC; http/protobuf has 4318)", what, c.endpoint, err)
	}
	return fmt.Errorf("%s %s: %w", what, c.endpoint, err)
}

func (c *client) request(ctx context.Context, body *request.Body, bytes []byte, asking bool) (*http.Request, error) {
	// A body is set by hand: net/http would otherwise learn how to rewind it, and could
	// send it a second time by itself.
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "", nil)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	to := c.endpoint.url
	req.URL, req.Host = &to, to.Host
	body.Reset(bytes)
	req.Body, req.ContentLength = body, int64(len(bytes))
	req.Header.Set("User-Agent", c.userAgent)
	c.headers.set(req)
	req.Header.Set("Content-Type", contentType)
	if asking {
		req.Header.Set("Expect", "100-continue")
	}
	return req, nil
}
