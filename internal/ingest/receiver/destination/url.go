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
	"github.com/spanstatsd/spanstatsd/internal/check/endpoint"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver"
	"github.com/spanstatsd/spanstatsd/internal/memory"
)

// Protocol describes the URLs of a receiver's upstream.
type Protocol struct {
	Flag    string // without dashes
	Schemes map[string]Scheme
	Give    string // examples of valid URLs, for errors
}

// Scheme is the scheme of a URL.
type Scheme = endpoint.Scheme

// URL is the URL of an upstream. The zero value stands for no upstream.
type URL struct {
	endpoint.URL
	protocol    *Protocol
	scheme      Scheme
	authorities *x509.CertPool // verify its certificate; nil: those of the system
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

// TrustIn makes the authorities in a file verify the upstream's certificate.
func (p *Protocol) TrustIn(to *URL, file string) (err error) {
	if !to.scheme.IsTLS {
		return fmt.Errorf("check %[1]s-ca: --%[1]s is not a URL with TLS; give one, or remove --%[1]s-ca", p.Flag)
	}
	to.authorities, err = check.Authorities(p.Flag+"-ca", file)
	return err //nolint:wrapcheck // it says what to do
}

// IsSet reports whether there is an upstream.
func (u *URL) IsSet() bool { return !u.IsZero() }

// IsGRPC reports whether the upstream uses gRPC.
func (u *URL) IsGRPC() bool { return u.scheme.IsGRPC }

// String returns the URL, or "" if there is no upstream.
func (u *URL) String() string {
	if !u.IsSet() {
		return ""
	}
	return u.URL.String()
}

// MaxForwards is the maximum number of connections to an upstream. Further requests wait for a free connection.
const MaxForwards = receiver.MaxIdle

// Upstream returns the upstream for receiver.Setup.
func (u *URL) Upstream(responseTimeout time.Duration) receiver.Upstream {
	upstream := receiver.Upstream{
		Network: u.Network, Address: u.Address, MaxConnections: MaxForwards,
		ResponseTimeout: responseTimeout,
		IsGRPC:          u.scheme.IsGRPC,
	}
	if u.scheme.IsTLS {
		upstream.TLS = &tls.Config{RootCAs: u.authorities, MinVersion: tls.VersionTLS12}
	}
	return upstream
}

// Advise adds advice for the operator to the error of a request without a response.
func (u *URL) Advise(err error) error {
	var unknown x509.UnknownAuthorityError
	var misnamed x509.HostnameError
	var invalid x509.CertificateInvalidError
	var noTLS tls.RecordHeaderError
	var op *net.OpError
	advice := ""
	switch {
	case errors.As(err, &unknown):
		advice = "give the certificate of its CA in --" + u.protocol.Flag + "-ca"
	case errors.As(err, &misnamed):
		advice = "use a host name of its certificate in --" + u.protocol.Flag
	case errors.As(err, &invalid):
		advice = "renew its certificate, or check the clock"
	case errors.As(err, &noTLS), errors.Is(err, http.ErrSchemeMismatch):
		advice = "the server does not use TLS on this port; change the scheme or the port in --" + u.protocol.Flag
	case errors.As(err, &op) && op.Op == "remote error": // an alert of the peer, in crypto/tls
		advice = "the server ended the TLS handshake; see its log. spanstatsd sends no client certificate"
	case errors.As(err, &op) && op.Op == "dial":
		advice = "check that the server is running, and that --" + u.protocol.Flag + " is its address"
	default:
		return err
	}
	return fmt.Errorf("%w; %s", err, advice)
}

const (
	// MaxAnswer is the maximum length of a response body. It is many times that of any known upstream.
	MaxAnswer = 64 << 10
	// connectionBytes is the approximate memory of a connection to an upstream while a response is read.
	connectionBytes = MaxAnswer + receiver.MaxResponseHeader + 64<<10
)

// Forwards returns the maximum number of connections to the upstream.
func (u *URL) Forwards() int {
	if !u.IsSet() {
		return 0
	}
	return MaxForwards
}

// Memory returns the maximum memory of the connections to the upstream. data is the name of the forwarded data.
func (u *URL) Memory(data string) memory.Part {
	return memory.Part{
		Name: "connections to the destination of " + data, Bytes: int64(u.Forwards()) * connectionBytes,
	}
}
