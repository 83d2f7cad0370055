package agent

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// URL is where the agent listens, in the form that a dialler takes.
type URL struct {
	Network string // "tcp" or "unix"
	Address string // host:port, or the path of a socket
}

const (
	defaultAgentPort = "8126"
	// maxSocketPath is what fits into the kernel's address of a Unix socket.
	maxSocketPath = 107
	acceptedURLs  = "give http://host:port or unix:///path/of/socket"
)

// ParseURL reads an agent's URL: http://host:port, where the port is 8126
// unless given, or unix:///path. These are the forms of DD_TRACE_AGENT_URL.
func ParseURL(text string) (URL, error) {
	refuse := func(why string) (URL, error) {
		return URL{}, fmt.Errorf("parse agent URL %q: %s; %s", text, why, acceptedURLs)
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return refuse("not a URL")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return refuse("user, query and fragment have no meaning here")
	}
	switch u.Scheme {
	case "http":
		if u.Hostname() == "" {
			return refuse("no host")
		}
		if u.Path != "" && u.Path != "/" {
			return refuse("a path has no meaning here")
		}
		port := cmp.Or(u.Port(), defaultAgentPort)
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return refuse("port " + port + " is not between 1 and 65535")
		}
		return URL{Network: "tcp", Address: net.JoinHostPort(u.Hostname(), port)}, nil
	case "unix":
		switch {
		case u.Host != "" || !strings.HasPrefix(u.Path, "/") || u.Path == "/":
			return refuse("the path of a socket must be absolute")
		case len(u.Path) > maxSocketPath:
			return refuse(fmt.Sprintf("a socket's path has at most %d bytes", maxSocketPath))
		}
		return URL{Network: "unix", Address: u.Path}, nil
	}
	return refuse("unknown scheme")
}

// String is the URL that ParseURL reads; of the zero one, which is no agent's, off.
func (u URL) String() string {
	switch u.Network {
	case "":
		return "off"
	case "unix":
		return "unix://" + u.Address
	}
	return "http://" + u.Address
}

// host is what the Host header says. A socket has no name, so it gets one.
func (u URL) host() string {
	if u.Network == "unix" {
		return "localhost"
	}
	return u.Address
}
