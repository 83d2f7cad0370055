package destination

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
	"github.com/spanstatsd/spanstatsd/internal/memory"
)

// Protocol is what the destinations of a door speak.
type Protocol struct {
	Flag    string // that names one
	Schemes map[string]Scheme
	Give    string // which URLs there are, for who gave none of them
}

// Scheme is that of a URL, with the port where none is given.
type Scheme struct {
	IsGRPC, IsTLS bool
	Port          string
}

// URL is where requests go on to. Its zero value is nowhere.
type URL struct {
	Network, Address string // in the form that a dialler takes
	Base             string // the path before those of the protocol
	protocol         *Protocol
	name             string // of its scheme
	scheme           Scheme
	authorities      *x509.CertPool // that its certificate is checked by; nil: the system's
}

// Parse reads a URL. What it says of one that can't be used does not quote it, since it may hold a
// password.
func (p *Protocol) Parse(text string) (to URL, err error) {
	u, err := url.Parse(text)
	if err != nil {
		return to, fmt.Errorf("parse %s: it is no URL; give %s", p.Flag, p.Give)
	}
	switch scheme, known := p.Schemes[u.Scheme]; {
	case u.User != nil, u.RawQuery != "", u.Fragment != "":
		return to, fmt.Errorf("parse %s: a user, a query or a fragment has no meaning there; "+
			"the headers of who sends go on", p.Flag)
	case u.Scheme == "unix" && u.Path != "" && u.Host == "":
		return URL{Network: "unix", Address: u.Path, protocol: p}, nil
	case !known || u.Hostname() == "" || scheme.IsGRPC && strings.Trim(u.Path, "/") != "":
		return to, fmt.Errorf("parse %s: the scheme %.10q, or what follows it, is none; give %s",
			p.Flag, u.Scheme, p.Give)
	default:
		return URL{
			"tcp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), scheme.Port)),
			strings.TrimSuffix(u.EscapedPath(), "/"), p, u.Scheme, scheme, nil,
		}, nil
	}
}

// TrustIn has a destination's certificate checked by the authorities of a file.
func (p *Protocol) TrustIn(to *URL, file string) (err error) {
	if !to.scheme.IsTLS {
		return fmt.Errorf("check %[1]s-ca: there is no destination that speaks TLS; give one in --%[1]s, "+
			"or leave --%[1]s-ca out", p.Flag)
	}
	to.authorities, err = check.Authorities(p.Flag+"-ca", file)
	return err //nolint:wrapcheck // it says what to do
}

// IsSet says whether there is one.
func (u *URL) IsSet() bool { return u.Address != "" }

// IsGRPC says whether it speaks gRPC.
func (u *URL) IsGRPC() bool { return u.scheme.IsGRPC }

// String is its text, "" where there is none.
func (u *URL) String() string {
	switch u.Network {
	case "":
		return ""
	case "unix":
		return "unix://" + u.Address
	}
	return u.name + "://" + u.Address + u.Base
}

// Silence is after which one who speaks HTTP/2 is asked whether it is there, and WriteTimeout how long
// it may take to read a piece of what is written.
const (
	Silence      = 30 * time.Second
	WriteTimeout = 30 * time.Second
)

// MaxForwards bounds the connections to a destination; more requests wait for one of them to be free.
const MaxForwards = http1.MaxKept

// Behind is the destination as the door hands requests to it.
func (u *URL) Behind(patience time.Duration) door.Behind {
	b := door.Behind{Network: u.Network, Address: u.Address, Most: MaxForwards, Patience: patience}
	if b.Base = "http://" + b.Host(); u.scheme.IsTLS {
		b.Base = "https://" + b.Host()
	}
	if u.IsGRPC() || u.scheme.IsTLS {
		b.Transport = func(dial door.Dial) http.RoundTripper { return u.transport(dial, patience) }
	}
	return b
}

// transport carries requests by gRPC or TLS.
func (u *URL) transport(dial door.Dial, patience time.Duration) http.RoundTripper {
	speaks := &http.Protocols{}
	speaks.SetHTTP1(!u.IsGRPC())
	speaks.SetHTTP2(u.scheme.IsTLS)
	speaks.SetUnencryptedHTTP2(u.IsGRPC() && !u.scheme.IsTLS)
	return &http.Transport{
		Protocols:              speaks,
		DialContext:            dial,
		TLSClientConfig:        &tls.Config{RootCAs: u.authorities, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    patience,
		DisableCompression:     true, // what a sender does not ask for it must not get
		MaxConnsPerHost:        MaxForwards,
		MaxIdleConnsPerHost:    MaxForwards,
		IdleConnTimeout:        http1.KeptFor,
		MaxResponseHeaderBytes: http1.MaxAnswerHeader,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: Silence, WriteByteTimeout: WriteTimeout},
	}
}

// Advise says to an operator what to do about a destination that did not answer, where the error
// shows it.
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

// MaxAnswer is many times what anybody answers, and connectionBytes about what a connection to a
// destination takes, with its answer.
const (
	MaxAnswer       = 64 << 10
	connectionBytes = MaxAnswer + http1.MaxAnswerHeader + 64<<10
)

// Forwards is how many connections to it there are at most.
func (u *URL) Forwards() int {
	if !u.IsSet() {
		return 0
	}
	return MaxForwards
}

// Memory is what they may come to use, named by what goes on.
func (u *URL) Memory(brings string) memory.Part {
	return memory.Part{
		Name: "connections to the destination of " + brings, Bytes: int64(u.Forwards()) * connectionBytes,
	}
}
