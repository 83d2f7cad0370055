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
	Flag     string // without dashes
	Schemes  map[string]Scheme
	Examples string // examples of valid URLs, for errors
}

// Scheme is the scheme of a URL.
type Scheme = endpoint.Scheme

// URL is the URL of an upstream. The zero value stands for no upstream.
type URL struct {
	endpoint.URL
	protocol    *Protocol
	scheme      Scheme
	authorities *x509.CertPool // CA certificates to trust; nil for those of the system
}

// Parse parses the URL of an upstream. The errors do not quote the URL, because it can contain a password.
func (p *Protocol) Parse(text string) (URL, error) {
	form := endpoint.Form{
		What: p.Flag, Hint: "use " + p.Examples, User: ", since the senders' headers are forwarded",
		Schemes: p.Schemes, IsBase: true,
	}
	u, err := form.Parse(text)
	if err != nil {
		return URL{}, err //nolint:wrapcheck // it says what to do
	}
	return URL{URL: u, protocol: p, scheme: form.Scheme(u)}, nil
}

// SetCAFile makes TLS connections to the URL trust the CA certificates in a PEM file, instead of those of the system.
func (p *Protocol) SetCAFile(u *URL, file string) error {
	if !u.scheme.IsTLS {
		return fmt.Errorf("check %[1]s-ca: --%[1]s is not a URL with TLS; use one, or remove --%[1]s-ca", p.Flag)
	}
	authorities, err := check.Authorities(p.Flag+"-ca", file)
	if err != nil {
		return err //nolint:wrapcheck // it says what to do
	}
	u.authorities = authorities
	return nil
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

// Upstream returns the settings for connections to the URL. responseTimeout is the timeout for one request.
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

// Advise adds advice for the operator to err, an error of a request to which u did not respond. It returns err
// unchanged if there is no advice for this error.
func (u *URL) Advise(err error) error {
	advice := u.adviceFor(err)
	if advice == "" {
		return err
	}
	return fmt.Errorf("%w; %s", err, advice)
}

// adviceFor returns advice for the operator, or "" for an error without a known remedy.
func (u *URL) adviceFor(err error) string {
	isNotTLS := isA[tls.RecordHeaderError](err) || errors.Is(err, http.ErrSchemeMismatch)
	operation := failedOperation(err)
	switch {
	case isA[x509.UnknownAuthorityError](err):
		return "set --" + u.protocol.Flag + "-ca to the certificate of its CA"
	case isA[x509.HostnameError](err):
		return "use a host name of its certificate in --" + u.protocol.Flag
	case isA[x509.CertificateInvalidError](err):
		return "renew its certificate, or check the clock"
	case isNotTLS:
		return "the server does not use TLS on this port; change the scheme or the port in --" + u.protocol.Flag
	case operation == "remote error": // crypto/tls received an alert
		return "the server ended the TLS handshake; see its log. spanstatsd sends no client certificate"
	case operation == "dial":
		return "check that the server is running, and that --" + u.protocol.Flag + " is its address"
	}
	return ""
}

// isA reports whether err wraps an error of type E.
func isA[E error](err error) bool {
	_, isFound := errors.AsType[E](err)
	return isFound
}

// failedOperation returns the name of the network operation that failed, for example "dial". It returns "" if err does
// not wrap a net.OpError.
func failedOperation(err error) string {
	opError, isFound := errors.AsType[*net.OpError](err)
	if !isFound {
		return ""
	}
	return opError.Op
}

const (
	// MaxAnswer is the maximum length of a response body. It is many times that of any known upstream.
	MaxAnswer = 64 << 10
	// connectionBytes is the approximate memory of a connection to an upstream while a response is read.
	connectionBytes = MaxAnswer + receiver.MaxResponseHeader + 64<<10
)

// MaxUpstreamConnections returns the maximum number of connections to the upstream.
func (u *URL) MaxUpstreamConnections() int {
	if !u.IsSet() {
		return 0
	}
	return MaxForwards
}

// Memory returns the maximum memory of the connections to the upstream. data is the name of the forwarded data.
func (u *URL) Memory(data string) memory.Part {
	return memory.Part{
		Name: "connections to the destination of " + data, Bytes: int64(u.MaxUpstreamConnections()) * connectionBytes,
	}
}
