// Package endpoint parses the URLs of exporters' destinations and of receivers' upstreams.
//
// A Form describes the URLs of one kind of destination: their schemes, and whether a path or a query is
// valid. An error gives the mistake and examples of valid URLs, but never the URL itself: a password or a key
// can be anywhere in an invalid one. String leaves out the query, which may hold a key.
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

// URL is the URL of a destination. The zero value stands for no destination.
type URL struct {
	Network string // "tcp" or "unix"
	Address string // host:port, host if the form adds no port, or the path of a socket

	scheme string // "" for http and unix
	path   string // escaped
	query  string // never shown
}

// Form describes the URLs of a kind of destination. Unix sockets are always among them.
type Form struct {
	What    string // name of the URL in errors, such as "agent URL"
	Hint    string // what to do after an error, with examples of valid URLs
	User    string // alternative to a password in the URL, for errors
	Schemes map[string]Scheme
	IsWeb   bool // a path and a query are valid
	IsBase  bool // a path is valid except for gRPC; the paths of requests are appended to it
}

// Scheme is a scheme of a Form.
type Scheme struct {
	Port          string // default port; with "", none is added to a host without a port
	IsTLS, IsGRPC bool
}

// maxSocketPath is the maximum length of a Unix socket's path on Linux.
const maxSocketPath = 107

// Parse parses a URL such as http://host:port, https://host/path?query or unix:///path/of/socket. The error
// describes the mistake, but does not contain the URL, because that can contain a password.
func (f Form) Parse(text string) (URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		return URL{}, f.invalid("not a URL")
	}
	if mistake := f.findMistake(u); mistake != "" {
		return URL{}, f.invalid(mistake)
	}
	return f.convert(u), nil
}

// invalid returns the error for an invalid URL.
func (f Form) invalid(mistake string) error {
	return fmt.Errorf("parse %s: %s; %s", f.What, mistake, f.Hint)
}

// findMistake returns the reason why u is not a valid URL of this form, or "" if it is valid.
func (f Form) findMistake(u *url.URL) string {
	scheme, isKnown := f.Schemes[u.Scheme]
	switch {
	case u.User != nil:
		return "a user and a password are not supported" + f.User
	case u.Fragment != "":
		return "a fragment is not supported"
	case u.RawQuery != "" && !(f.IsWeb && isKnown):
		return "a query is not supported"
	case u.Scheme == "unix":
		return findSocketMistake(u)
	case !isKnown:
		return "unknown scheme"
	case u.Hostname() == "":
		return "no host"
	}
	port := portOf(u, scheme)
	if number, err := strconv.ParseUint(port, 10, 16); err != nil || number == 0 {
		return "port " + port + " is not between 1 and 65535"
	}
	allowsPath := f.IsWeb || f.IsBase && !scheme.IsGRPC
	hasPath := strings.TrimSuffix(u.Path, "/") != ""
	if hasPath && !allowsPath {
		return "a path is not supported"
	}
	return ""
}

// findSocketMistake returns the reason why u is not a valid URL of a Unix socket, or "" if it is valid.
func findSocketMistake(u *url.URL) string {
	isAbsolute := u.Host == "" && strings.HasPrefix(u.Path, "/") && u.Path != "/"
	switch {
	case !isAbsolute:
		return "the path of a socket must be absolute"
	case len(u.Path) > maxSocketPath:
		return fmt.Sprintf("a socket's path has at most %d bytes", maxSocketPath)
	}
	return ""
}

// portOf returns the port of a URL, or the default port of its scheme.
func portOf(u *url.URL, scheme Scheme) string { return cmp.Or(u.Port(), scheme.Port, "80") }

// convert converts a valid URL of this form.
func (f Form) convert(u *url.URL) URL {
	if u.Scheme == "unix" {
		return URL{Network: "unix", Address: u.Path}
	}
	converted := URL{Network: "tcp", Address: u.Host}
	scheme := f.Schemes[u.Scheme]
	if scheme.Port != "" {
		converted.Address = net.JoinHostPort(u.Hostname(), portOf(u, scheme))
	}
	if u.Scheme != "http" {
		converted.scheme = u.Scheme
	}
	switch {
	case f.IsWeb:
		converted.path = u.EscapedPath()
		converted.query = u.RawQuery
	case f.IsBase:
		converted.path = strings.TrimSuffix(u.EscapedPath(), "/")
	}
	return converted
}

// Scheme returns the scheme of a URL of this form.
func (f Form) Scheme(u URL) Scheme { return f.Schemes[cmp.Or(u.scheme, "http")] }

// IsZero reports whether u is the zero value.
func (u URL) IsZero() bool { return u == URL{} }

// Path returns the escaped path.
func (u URL) Path() string { return u.path }

// Below returns a copy of u with path appended to its path.
func (u URL) Below(path string) URL {
	if path != "" {
		u.path = strings.TrimSuffix(u.path, "/") + path
	}
	return u
}

// String returns the URL without its query, or "off" for the zero value.
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

// Target returns the URL of HTTP requests, including the query. The host is localhost if u is the URL of a Unix socket.
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
