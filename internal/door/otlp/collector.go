package otlp

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/check"
	"github.com/spanstatsd/spanstatsd/internal/door"
	"github.com/spanstatsd/spanstatsd/internal/door/http1"
)

// Collector is where requests go on to: another that takes OTLP. Its zero value is none.
type Collector struct {
	Network, Address string // in the form that a dialler takes
	isGRPC, isTLS    bool
	base             string         // the path before /v1/traces
	authorities      *x509.CertPool // that its certificate is checked by; nil: the system's
}

// The schemes of a collector's URL, and the port where none is given.
var schemes = map[string]struct {
	isGRPC, isTLS bool
	port          string
}{
	"http": {false, false, "4318"}, "https": {false, true, "443"}, "grpc": {true, false, "4317"},
	"grpcs": {true, true, "443"},
}

// ParseCollector reads a URL. What it says of one that can't be used does not quote it,
// since it may hold a password.
func ParseCollector(text string) (c Collector, err error) {
	u, err := url.Parse(text)
	if err != nil {
		return c, errors.New("parse otlp-forward: it is no URL; give http://host:4318, grpc://host:4317, " +
			"https://, grpcs:// or unix:///path")
	}
	switch scheme, known := schemes[u.Scheme]; {
	case u.User != nil, u.RawQuery != "", u.Fragment != "":
		return c, errors.New("parse otlp-forward: a user, a query or a fragment has no meaning there; " +
			"SDKs' own headers go on, OTEL_EXPORTER_OTLP_HEADERS of the application")
	case u.Scheme == "unix" && u.Path != "" && u.Host == "":
		return Collector{Network: "unix", Address: u.Path}, nil
	case !known || u.Hostname() == "" || scheme.isGRPC && strings.Trim(u.Path, "/") != "":
		return c, fmt.Errorf("parse otlp-forward: the scheme %.10q, or what follows it, is none; give "+
			"http://host:4318, grpc://host:4317, https://, grpcs:// or unix:///path", u.Scheme)
	default:
		return Collector{
			"tcp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), scheme.port)), scheme.isGRPC, scheme.isTLS,
			strings.TrimSuffix(u.EscapedPath(), "/"), nil,
		}, nil
	}
}

// TrustIn has the collector's certificate checked by the authorities of a file.
func (c *Collector) TrustIn(file string) (err error) {
	if !c.isTLS {
		return errors.New("check otlp-forward-ca: there is no destination that speaks TLS; give https:// " +
			"or grpcs:// in --otlp-forward, or leave --otlp-forward-ca out")
	}
	c.authorities, err = check.Authorities("otlp-forward-ca", file)
	return err //nolint:wrapcheck // it says what to do
}

// IsSet says whether there is one.
func (c *Collector) IsSet() bool { return c.Address != "" }

// String is its URL, "" where there is none.
func (c *Collector) String() string {
	switch c.Network {
	case "":
		return ""
	case "unix":
		return "unix://" + c.Address
	}
	for scheme, is := range schemes {
		if is.isGRPC == c.isGRPC && is.isTLS == c.isTLS {
			return scheme + "://" + c.Address + c.base
		}
	}
	return ""
}

// target is a signal's path there.
func (c *Collector) target(s signal) string {
	if c.isGRPC {
		return signals[s].grpc
	}
	return c.base + signals[s].http
}

// silence is after which one who speaks HTTP/2 is asked whether it is there, and writeTimeout how long
// it may take to read a piece of what is written.
const (
	silence      = 30 * time.Second
	writeTimeout = 30 * time.Second
)

// maxForwards bounds the connections to a collector; more requests wait for one of them to be free.
const maxForwards = http1.MaxKept

// behind is the collector as the door hands requests to it.
func (c *Collector) behind(patience time.Duration) door.Behind {
	b := door.Behind{Network: c.Network, Address: c.Address, Most: maxForwards, Patience: patience}
	if b.Base = "http://" + b.Host(); c.isTLS {
		b.Base = "https://" + b.Host()
	}
	if c.isGRPC || c.isTLS {
		b.Transport = func(dial door.Dial) http.RoundTripper { return c.transport(dial, patience) }
	}
	return b
}

// transport carries requests by gRPC or TLS.
func (c *Collector) transport(dial door.Dial, patience time.Duration) http.RoundTripper {
	speaks := &http.Protocols{}
	speaks.SetHTTP1(!c.isGRPC)
	speaks.SetHTTP2(c.isTLS)
	speaks.SetUnencryptedHTTP2(c.isGRPC && !c.isTLS)
	return &http.Transport{
		Protocols:              speaks,
		DialContext:            dial,
		TLSClientConfig:        &tls.Config{RootCAs: c.authorities, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    patience,
		DisableCompression:     true, // what an SDK does not ask for it must not get
		MaxConnsPerHost:        maxForwards,
		MaxIdleConnsPerHost:    maxForwards,
		IdleConnTimeout:        http1.KeptFor,
		MaxResponseHeaderBytes: http1.MaxAnswerHeader,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: silence, WriteByteTimeout: writeTimeout},
	}
}

// advised says to an operator what to do about a collector that did not answer, where the error
// shows it.
func advised(err error) error {
	var unknown x509.UnknownAuthorityError
	var misnamed x509.HostnameError
	var invalid x509.CertificateInvalidError
	var noTLS tls.RecordHeaderError
	var op *net.OpError
	what := ""
	switch {
	case errors.As(err, &unknown):
		what = "give the certificate of its authority with --otlp-forward-ca"
	case errors.As(err, &misnamed):
		what = "name it in --otlp-forward as its certificate does"
	case errors.As(err, &invalid):
		what = "have its certificate renewed, or look at the clock"
	case errors.As(err, &noTLS), errors.Is(err, http.ErrSchemeMismatch):
		what = "it speaks no TLS there: give http:// or grpc:// in --otlp-forward, or its port for TLS"
	case errors.As(err, &op) && op.Op == "remote error": // crypto/tls's name for an alert that came
		what = "look at its log: it ended TLS. A certificate of its clients, if it asks, is not shown"
	case errors.As(err, &op) && op.Op == "dial":
		what = "look whether it runs, and listens where --otlp-forward says"
	default:
		return err
	}
	return fmt.Errorf("%w; %s", err, what)
}
