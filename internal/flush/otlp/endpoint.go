package otlp

import (
	"cmp"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// Endpoint is where metrics are sent.
type Endpoint struct {
	url    url.URL // scheme, host and path of the requests; of a socket the host is localhost
	socket string  // path of a Unix socket, or empty
}

const (
	// metricsPath is where OTLP has metrics, below a base endpoint.
	metricsPath = "/v1/metrics"
	// maxSocketPath is what fits into the kernel's address of a Unix socket.
	maxSocketPath = 107

	acceptedURLs = "give http://host:4318/v1/metrics, https://host/v1/metrics or unix:///path/of/socket"
)

// ParseEndpoint reads the URL of a metrics endpoint. One without a path is that of
// a receiver, whose metrics are at /v1/metrics.
func ParseEndpoint(text string) (Endpoint, error) {
	e, err := parseEndpoint(text)
	e.url.Path = cmp.Or(e.url.Path, metricsPath)
	return e, err
}

// parseEndpoint reads a URL and leaves its path as it is.
func parseEndpoint(text string) (Endpoint, error) {
	refuse := func(why string) (Endpoint, error) {
		return Endpoint{}, fmt.Errorf("parse OTLP endpoint %s: %s; %s", shownURL(text), why, acceptedURLs)
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return refuse("not a URL")
	case u.User != nil:
		return refuse("a user and a password have no meaning here, set OTEL_EXPORTER_OTLP_HEADERS")
	case u.Fragment != "":
		return refuse("a fragment has no meaning here")
	}
	switch u.Scheme {
	case "http", "https":
		if u.Hostname() == "" {
			return refuse("no host")
		}
		if n, err := strconv.ParseUint(cmp.Or(u.Port(), "1"), 10, 16); err != nil || n == 0 {
			return refuse("port " + u.Port() + " is not between 1 and 65535")
		}
		return Endpoint{url: url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath, RawQuery: u.RawQuery}}, nil
	case "unix":
		switch {
		case u.Host != "" || u.RawQuery != "" || !strings.HasPrefix(u.Path, "/") || u.Path == "/":
			return refuse("the path of a socket must be absolute")
		case len(u.Path) > maxSocketPath:
			return refuse(fmt.Sprintf("a socket's path has at most %d bytes", maxSocketPath))
		}
		return Endpoint{url: url.URL{Scheme: "http", Host: "localhost"}, socket: u.Path}, nil
	}
	return refuse("unknown scheme")
}

// shownURL is what of a URL may be shown: a user may have written a password in it.
func shownURL(text string) string {
	if u, err := url.Parse(text); err == nil {
		u.RawQuery = ""
		return strconv.Quote(u.Redacted())
	}
	return "(not shown)"
}

// below is the endpoint of a signal below a base endpoint, as the specification has it.
func (e Endpoint) below(path string) Endpoint {
	e.url.Path = strings.TrimSuffix(e.url.Path, "/") + path
	e.url.RawPath = ""
	return e
}

// IsZero says whether there is none.
func (e Endpoint) IsZero() bool { return e.url.Host == "" }

// String is the endpoint for a person. A query is left out: keys stand there.
func (e Endpoint) String() string {
	switch {
	case e.IsZero():
		return ""
	case e.socket != "":
		return "unix://" + e.socket
	}
	return e.url.Scheme + "://" + e.url.Host + e.url.EscapedPath()
}

// isGRPC says whether the port is the one on which OTLP is spoken by gRPC.
func (e Endpoint) isGRPC() bool { return e.url.Port() == "4317" }

// dials is what a connection to the endpoint is made to, where net/http would dial an
// address of TCP.
func (e Endpoint) dials(address string) (network, to string) {
	if e.socket != "" {
		return "unix", e.socket
	}
	return "tcp", address
}
