package destination

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/check"
	"github.com/spanstatsd/spanstatsd/internal/endpoint"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver"
	"github.com/spanstatsd/spanstatsd/internal/memory"
)

// Protocol describes the URLs of the upstreams of a receiver.
type Protocol struct {
	Flag    string
	Schemes map[string]Scheme
	Give    string // the supported URLs, for error messages
}

// Scheme is the scheme of a URL.
type Scheme = endpoint.Scheme

// URL is the URL of an upstream. The zero value is none.
type URL struct {
	endpoint.URL
	protocol    *Protocol
	scheme      Scheme
	authorities *x509.CertPool // for its certificate; nil: the system's
}

// Parse parses a URL. Its errors do not quote the URL, which may hold a password.
func (p *Protocol) Parse(text string) (URL, error) {
	form := endpoint.Form{
		What: p.Flag, Give: "give " + p.Give, User: ", since the senders' headers are forwarded",
		Schemes: p.Schemes, IsBase: true,
	}
	u, err := form.Parse(text)
	if err != nil {
		return URL{}, err //nolint:wrapcheck // it says what to do
	}
	return URL{URL: u, protocol: p, scheme: form.Scheme(u)}, nil
}

// TrustIn has the upstream's certificate checked by the authorities of a file.
func (p *Protocol) TrustIn(to *URL, file string) (err error) {
	if !to.scheme.IsTLS {
		return fmt.Errorf("check %[1]s-ca: there is no destination that speaks TLS; give one in --%[1]s, "+
			"or leave --%[1]s-ca out", p.Flag)
	}
	to.authorities, err = check.Authorities(p.Flag+"-ca", file)
	return err //nolint:wrapcheck // it says what to do
}

// IsSet reports whether there is one.
func (u *URL) IsSet() bool { return !u.IsZero() }

// IsGRPC reports whether it speaks gRPC.
func (u *URL) IsGRPC() bool { return u.scheme.IsGRPC }

// String returns its text, "" if there is none.
func (u *URL) String() string {
	if !u.IsSet() {
		return ""
	}
	return u.URL.String()
}

// MaxForwards bounds the connections to an upstream. Further requests wait for a free one.
const MaxForwards = receiver.MaxIdle

// Upstream returns the upstream for the receiver's server.
func (u *URL) Upstream(patience time.Duration) receiver.Upstream {
	to := receiver.Upstream{
		Network: u.Network, Address: u.Address, MaxConnections: MaxForwards, ResponseTimeout: patience,
		IsGRPC: u.scheme.IsGRPC,
	}
	if u.scheme.IsTLS {
		to.TLS = &tls.Config{RootCAs: u.authorities, MinVersion: tls.VersionTLS12}
	}
	return to
}

// Advise adds to the error of an upstream that did not answer what the operator can do.
func (u *URL) Advise(err error) error {
	var unknown x509.UnknownAuthorityError
	var misnamed x509.HostnameError
	var invalid x509.CertificateInvalidError
	var noTLS tls.RecordHeaderError
	var op *net.OpError
	what := ""
	switch {
	case errors.As(err, &unknown):
		what = "give the certificate of its authority with --" + u.protocol.Flag + "-ca"
	case errors.As(err, &misnamed):
		what = "name it in --" + u.protocol.Flag + " as its certificate does"
	case errors.As(err, &invalid):
		what = "have its certificate renewed, or look at the clock"
	case errors.As(err, &noTLS), errors.Is(err, http.ErrSchemeMismatch):
		what = "it speaks no TLS there: give a URL without in --" + u.protocol.Flag + ", or its port for TLS"
	case errors.As(err, &op) && op.Op == "remote error": // crypto/tls's name for an alert that came
		what = "look at its log: it ended TLS. A certificate of its clients, if it asks, is not shown"
	case errors.As(err, &op) && op.Op == "dial":
		what = "look whether it runs, and listens where --" + u.protocol.Flag + " says"
	default:
		return err
	}
	return fmt.Errorf("%w; %s", err, what)
}

// MaxAnswer is many times the length of any known response body. connectionBytes is about the memory of a
// connection to an upstream with a response.
const (
	MaxAnswer       = 64 << 10
	connectionBytes = MaxAnswer + receiver.MaxResponseHeader + 64<<10
)

// Forwards returns the maximum number of connections to it.
func (u *URL) Forwards() int {
	if !u.IsSet() {
		return 0
	}
	return MaxForwards
}

// Memory returns the memory limit of those connections.
func (u *URL) Memory(brings string) memory.Part {
	return memory.Part{
		Name: "connections to the destination of " + brings, Bytes: int64(u.Forwards()) * connectionBytes,
	}
}
