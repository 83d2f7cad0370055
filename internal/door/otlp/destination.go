package otlp

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/check"
)

// Destination is where requests go on to: another that takes OTLP. Its zero value is none.
type Destination struct {
	Network, Address string // in the form that a dialler takes
	isGRPC, isTLS    bool
	base             string         // the path before /v1/traces
	authorities      *x509.CertPool // that its certificate is checked by; nil: the system's
}

// The schemes of a destination, and the port where none is given.
var schemes = map[string]struct {
	isGRPC, isTLS bool
	port          string
}{
	"http": {false, false, "4318"}, "https": {false, true, "443"}, "grpc": {true, false, "4317"},
	"grpcs": {true, true, "443"},
}

// ParseDestination reads a URL. What it says of one that can't be used does not quote it,
// since it may hold a password.
func ParseDestination(text string) (d Destination, err error) {
	u, err := url.Parse(text)
	if err != nil {
		return d, errors.New("parse otlp-forward: it is no URL; give http://host:4318, grpc://host:4317, " +
			"https://, grpcs:// or unix:///path")
	}
	switch scheme, known := schemes[u.Scheme]; {
	case u.User != nil, u.RawQuery != "", u.Fragment != "":
		return d, errors.New("parse otlp-forward: a user, a query or a fragment has no meaning there; " +
			"SDKs' own headers go on, OTEL_EXPORTER_OTLP_HEADERS of the application")
	case u.Scheme == "unix" && u.Path != "" && u.Host == "":
		return Destination{Network: "unix", Address: u.Path}, nil
	case !known || u.Hostname() == "" || scheme.isGRPC && strings.Trim(u.Path, "/") != "":
		return d, fmt.Errorf("parse otlp-forward: the scheme %.10q, or what follows it, is none; give "+
			"http://host:4318, grpc://host:4317, https://, grpcs:// or unix:///path", u.Scheme)
	default:
		address := net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), scheme.port))
		return Destination{
			"tcp", address, scheme.isGRPC, scheme.isTLS,
			strings.TrimSuffix(u.EscapedPath(), "/"), nil,
		}, nil
	}
}

// TrustIn has the destination's certificate checked by the authorities of a file.
func (d *Destination) TrustIn(file string) (err error) {
	if !d.isTLS {
		return errors.New("check otlp-forward-ca: there is no destination that speaks TLS; give https:// " +
			"or grpcs:// in --otlp-forward, or leave --otlp-forward-ca out")
	}
	d.authorities, err = check.Authorities("otlp-forward-ca", file)
	return err //nolint:wrapcheck // it says what to do
}

// IsSet says whether there is one.
func (d *Destination) IsSet() bool { return d.Address != "" }

// scheme is that of a URL there.
func (d *Destination) scheme() string {
	if d.isTLS {
		return "https://"
	}
	return "http://"
}

// target is a signal's path there.
func (d *Destination) target(s signal) string {
	if d.isGRPC {
		return grpcPaths[s]
	}
	return d.base + httpPaths[s]
}
