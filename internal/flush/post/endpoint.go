package post

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// Endpoint is where a destination listens. The zero one is nowhere.
type Endpoint struct {
	Network string // "tcp" or "unix"
	Address string // host:port, where the port may be left out; or the path of a socket

	isTLS bool
	path  string // escaped
	query string // keys may stand in it, so it is never shown
}

// Form is what the endpoints of a kind of destination look like.
type Form struct {
	What  string // such as "agent URL"
	Give  string // examples, for whoever gave something else
	User  string // what to do instead of writing a password into it
	Port  string // that is meant where none is given; of a web it is the scheme's
	IsWeb bool   // TLS, a path and a query have a meaning
}

// maxSocketPath is what fits into the kernel's address of a Unix socket.
const maxSocketPath = 107

// Parse reads http://host:port, https://host/path?query or unix:///path/of/socket. Its error
// does not quote the text: a password or a key may stand anywhere in what can't be used.
func (f Form) Parse(text string) (Endpoint, error) {
	e, why := Endpoint{}, "not a URL"
	if u, err := url.Parse(text); err == nil {
		e, why = f.read(u)
	}
	if why != "" {
		return Endpoint{}, fmt.Errorf("parse %s (not shown, since it may hold a key): %s; %s",
			f.What, why, f.Give)
	}
	return e, nil
}

// read returns the endpoint, or why there is none.
func (f Form) read(u *url.URL) (e Endpoint, why string) {
	port, isHTTP := cmp.Or(u.Port(), f.Port, "80"), u.Scheme == "http" || f.IsWeb && u.Scheme == "https"
	n, noPort := strconv.ParseUint(port, 10, 16)
	switch {
	case u.User != nil:
		return e, "a user and a password have no meaning here" + f.User
	case u.Fragment != "":
		return e, "a fragment has no meaning here"
	case u.RawQuery != "" && !(f.IsWeb && isHTTP):
		return e, "a query has no meaning here"
	case u.Scheme == "unix" && (u.Host != "" || !strings.HasPrefix(u.Path, "/") || u.Path == "/"):
		return e, "the path of a socket must be absolute"
	case u.Scheme == "unix" && len(u.Path) > maxSocketPath:
		return e, fmt.Sprintf("a socket's path has at most %d bytes", maxSocketPath)
	case u.Scheme == "unix":
		return Endpoint{Network: "unix", Address: u.Path}, ""
	case !isHTTP:
		return e, "unknown scheme"
	case u.Hostname() == "":
		return e, "no host"
	case noPort != nil || n == 0:
		return e, "port " + port + " is not between 1 and 65535"
	case f.IsWeb:
		return Endpoint{"tcp", u.Host, u.Scheme == "https", u.EscapedPath(), u.RawQuery}, ""
	case strings.TrimSuffix(u.Path, "/") != "":
		return e, "a path has no meaning here"
	}
	return Endpoint{Network: "tcp", Address: net.JoinHostPort(u.Hostname(), port)}, ""
}

// IsZero says whether there is none.
func (e Endpoint) IsZero() bool { return e == Endpoint{} }

// Path is where requests go, escaped.
func (e Endpoint) Path() string { return e.path }

// Below is the endpoint of a path below its own.
func (e Endpoint) Below(path string) Endpoint {
	if path != "" {
		e.path = strings.TrimSuffix(e.path, "/") + path
	}
	return e
}

// String is the endpoint for a person, without its query; of the zero one, off.
func (e Endpoint) String() string {
	switch e.Network {
	case "":
		return "off"
	case "unix":
		return "unix://" + e.Address
	}
	return e.origin() + e.path
}

// GoString is the same for those who print a configuration whole.
func (e Endpoint) GoString() string { return e.String() }

// target is the URL of a request.
func (e Endpoint) target() string {
	if e.query != "" {
		return e.origin() + e.path + "?" + e.query
	}
	return e.origin() + e.path
}

// origin is what comes before the path. A socket has no name, so it gets one.
func (e Endpoint) origin() string {
	switch {
	case e.Network == "unix":
		return "http://localhost"
	case e.isTLS:
		return "https://" + e.Address
	}
	return "http://" + e.Address
}
