// Package endpoint parses the URLs of destinations, and says in one error what is wrong with one and what
// to give instead.
//
// A Form describes the URLs that a kind of destination has: its schemes, and whether a path or a query have
// a meaning. Errors never quote the URL, because a password or a key can be anywhere in one that is
// invalid, and String leaves out the query, where keys are valid.
//
// Concurrency: a URL does not change once it is parsed.
//
// Limits: the path of a Unix socket has the kernel's limit of 107 bytes.
package endpoint

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// URL is where a destination listens. The zero value is nowhere.
type URL struct {
	Network string // "tcp" or "unix"
	Address string // host:port, where the port may be left out; or the path of a socket

	scheme string // "" for http and unix
	path   string // escaped
	query  string // never shown
}

// Form describes the URLs of a kind of destination. Unix sockets always are among them.
type Form struct {
	What    string // such as "agent URL", for errors
	Give    string // examples of valid URLs, for errors
	User    string // what to do instead of writing a password into the URL, for errors
	Schemes map[string]Scheme
	IsWeb   bool // a path and a query have a meaning
}

// Scheme is one that a Form has.
type Scheme struct {
	Port          string // added to a host without a port; "": none is added
	IsTLS, IsGRPC bool
}

const maxSocketPath = 107

// Parse parses a URL such as http://host:port, https://host/path?query or unix:///path/of/socket.
func (f Form) Parse(text string) (URL, error) {
	to, why := URL{}, "not a URL"
	if u, err := url.Parse(text); err == nil {
		to, why = f.read(u)
	}
	if why != "" {
		return URL{}, fmt.Errorf("parse %s (not shown, since it may hold a key): %s; %s", f.What, why, f.Give)
	}
	return to, nil
}

// read returns the URL, or why it is invalid.
func (f Form) read(u *url.URL) (to URL, why string) {
	scheme, isKnown := f.Schemes[u.Scheme]
	port := cmp.Or(u.Port(), scheme.Port, "80")
	n, noPort := strconv.ParseUint(port, 10, 16)
	switch {
	case u.User != nil:
		return to, "a user and a password have no meaning here" + f.User
	case u.Fragment != "":
		return to, "a fragment has no meaning here"
	case u.RawQuery != "" && !(f.IsWeb && isKnown):
		return to, "a query has no meaning here"
	case u.Scheme == "unix" && (u.Host != "" || !strings.HasPrefix(u.Path, "/") || u.Path == "/"):
		return to, "the path of a socket must be absolute"
	case u.Scheme == "unix" && len(u.Path) > maxSocketPath:
		return to, fmt.Sprintf("a socket's path has at most %d bytes", maxSocketPath)
	case u.Scheme == "unix":
		return URL{Network: "unix", Address: u.Path}, ""
	case !isKnown:
		return to, "unknown scheme"
	case u.Hostname() == "":
		return to, "no host"
	case noPort != nil || n == 0:
		return to, "port " + port + " is not between 1 and 65535"
	case !f.IsWeb && strings.TrimSuffix(u.Path, "/") != "":
		return to, "a path has no meaning here"
	}
	to = URL{Network: "tcp", Address: u.Host}
	if scheme.Port != "" {
		to.Address = net.JoinHostPort(u.Hostname(), port)
	}
	if u.Scheme != "http" {
		to.scheme = u.Scheme
	}
	if f.IsWeb {
		to.path, to.query = u.EscapedPath(), u.RawQuery
	}
	return to, ""
}

// Scheme is that of the URL, as the form has it.
func (f Form) Scheme(of URL) Scheme { return f.Schemes[cmp.Or(of.scheme, "http")] }

// IsZero reports whether there is no URL.
func (u URL) IsZero() bool { return u == URL{} }

// Path is where requests go, escaped.
func (u URL) Path() string { return u.path }

// Below is the URL of a path below this one.
func (u URL) Below(path string) URL {
	if path != "" {
		u.path = strings.TrimSuffix(u.path, "/") + path
	}
	return u
}

// String is the URL without its query; "off" for the zero value.
func (u URL) String() string {
	switch u.Network {
	case "":
		return "off"
	case "unix":
		return "unix://" + u.Address
	}
	return u.origin() + u.path
}

// GoString implements fmt.GoStringer, so that a printed configuration does not show the query.
func (u URL) GoString() string { return u.String() }

// Target is the URL of HTTP requests, with its query. A socket has no host, so the target has a name for
// it.
func (u URL) Target() string {
	if u.query != "" {
		return u.origin() + u.path + "?" + u.query
	}
	return u.origin() + u.path
}

func (u URL) origin() string {
	if u.Network == "unix" {
		return "http://localhost"
	}
	return cmp.Or(u.scheme, "http") + "://" + u.Address
}
