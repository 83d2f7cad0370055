package post

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
)

// Config is what a Poster needs to know.
type Config struct {
	Who         string // the destination, in errors
	Endpoint    Endpoint
	Path        string // of what is posted, below the endpoint's own
	ContentType string
	Nothing     []byte // a body of which nothing can be counted
	Answers     Answers
	Hint        string      // what an operator may have mistaken, where nobody answers
	Header      http.Header // of each request
	Version     string      // of the daemon, for the User-Agent header

	TLS          *tls.Config
	HeedsProxies bool          // the environment's proxies are heeded
	Patience     time.Duration // within which a destination that is well asks for a body; 0: a second
}

// Poster brings bodies to one destination. See the package comment.
type Poster struct {
	cfg       Config
	manner    atomicManner
	probing   chan struct{}   // holds a token while a probe is under way
	whenAsked *http.Transport // sends no body that was not asked for
	unasked   *http.Transport // sends it all the same when the patience is over
}

const (
	defaultPatience = time.Second
	forEver         = 24 * time.Hour // longer than any request may take
)

// New makes a poster. It opens no connection.
func New(c Config) *Poster {
	if c.Patience == 0 {
		c.Patience = defaultPatience
	}
	return &Poster{
		cfg:       c,
		probing:   make(chan struct{}, 1),
		whenAsked: c.transport(forEver),
		unasked:   c.transport(c.Patience),
	}
}

// transport dials anew for each request. An idle connection can be closed by the
// destination at the moment when it is used again; the request is then written whole to
// nobody, which cannot be told from one that was counted. A connection for each request is
// cheap here: there are a few in some seconds, and behind a balancer each finds the receiver
// that has the least to do.
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
	if c.HeedsProxies && !isSocket {
		t.Proxy = http.ProxyFromEnvironment
	}
	return t
}

// post is a request with a body.
func (p *Poster) post(
	ctx context.Context, header http.Header, bytes []byte, asking bool,
) (req *http.Request, sends *body, err error) {
	sends = &body{}
	if req, err = p.request(sends.trace(ctx), http.MethodPost, p.cfg.Path); err != nil {
		return nil, nil, err
	}
	// The body is set by hand: net/http would otherwise learn how to rewind it, and could
	// send it a second time by itself.
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
	req, err := http.NewRequestWithContext(ctx, method, p.cfg.Endpoint.Below(path).target(), nil)
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

// failure says which request was not answered.
func (p *Poster) failure(what string, err error) error {
	return fmt.Errorf("%s %s: %w%s", what, p.cfg.Endpoint, err, p.cfg.Hint)
}
