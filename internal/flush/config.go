package flush

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/check"
	"github.com/spanstatsd/spanstatsd/internal/memory"
)

// Config is what a Flusher needs to know. A zero field takes its default.
type Config struct {
	Agent   AgentURL
	Version string // of the daemon, for the User-Agent header
	Log     *slog.Logger

	MaxPayloadBytes int           // one payload's body
	RetryBytes      int           // bodies of all payloads that wait
	RetryAge        time.Duration // how long a payload may wait
	Timeout         time.Duration // of one request

	DebugDir string // where payloads that the agent refuses are kept; none if empty
}

const (
	DefaultMaxPayloadBytes = 1 << 20
	DefaultRetryBytes      = 16 << 20
	DefaultRetryAge        = 2 * time.Minute
	DefaultTimeout         = 10 * time.Second

	// minPayloadBytes leaves room for an origin and the largest group that
	// normalised keys and two full sketches can make, some 60 KB.
	minPayloadBytes = 128 << 10
	// agentPayloadBytes is what the agent refuses to read beyond.
	agentPayloadBytes = 25 << 20
	// maxWaiting bounds the payloads that wait, however small they are.
	maxWaiting = 4096
)

// withDefaults fills in what is not set and refuses what cannot work.
func (c Config) withDefaults() (Config, error) {
	c.MaxPayloadBytes = cmp.Or(c.MaxPayloadBytes, DefaultMaxPayloadBytes)
	c.RetryBytes = cmp.Or(c.RetryBytes, DefaultRetryBytes)
	c.RetryAge = cmp.Or(c.RetryAge, DefaultRetryAge)
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	var err error
	if c.Agent.Network == "" {
		err = errors.New("configure flush: no agent URL; take one from ParseAgentURL")
	}
	if c.RetryBytes < c.MaxPayloadBytes {
		err = errors.Join(err, fmt.Errorf("check retry-bytes: %s does not hold one payload; give at least %s",
			memory.SizeText(c.RetryBytes), memory.SizeText(c.MaxPayloadBytes)))
	}
	if c.RetryAge < 0 || c.Timeout < 0 {
		err = errors.Join(err, fmt.Errorf("check retry-age and timeout: %s and %s must be positive", c.RetryAge, c.Timeout))
	}
	return c, errors.Join(err,
		check.AtMost("retry-bytes", c.RetryBytes, memory.MostBytes),
		check.Size("payload", c.MaxPayloadBytes, minPayloadBytes, agentPayloadBytes),
	)
}

// Check says everything that is unusable.
func (c Config) Check() error {
	_, err := c.withDefaults()
	return err
}

// AgentURL is where the agent listens, in the form that a dialler takes.
type AgentURL struct {
	Network string // "tcp" or "unix"
	Address string // host:port, or the path of a socket
}

const (
	defaultAgentPort = "8126"
	// maxSocketPath is what fits into the kernel's address of a Unix socket.
	maxSocketPath = 107
	acceptedURLs  = "give http://host:port or unix:///path/of/socket"
)

// ParseAgentURL reads an agent's URL: http://host:port, where the port is 8126
// unless given, or unix:///path. These are the forms of DD_TRACE_AGENT_URL.
func ParseAgentURL(text string) (AgentURL, error) {
	refuse := func(why string) (AgentURL, error) {
		return AgentURL{}, fmt.Errorf("parse agent URL %q: %s; %s", text, why, acceptedURLs)
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
		return AgentURL{Network: "tcp", Address: net.JoinHostPort(u.Hostname(), port)}, nil
	case "unix":
		switch {
		case u.Host != "" || !strings.HasPrefix(u.Path, "/") || u.Path == "/":
			return refuse("the path of a socket must be absolute")
		case len(u.Path) > maxSocketPath:
			return refuse(fmt.Sprintf("a socket's path has at most %d bytes", maxSocketPath))
		}
		return AgentURL{Network: "unix", Address: u.Path}, nil
	}
	return refuse("unknown scheme")
}

// String is the URL that ParseAgentURL reads.
func (u AgentURL) String() string {
	if u.Network == "unix" {
		return "unix://" + u.Address
	}
	return "http://" + u.Address
}

// host is what the Host header says. A socket has no name, so it gets one.
func (u AgentURL) host() string {
	if u.Network == "unix" {
		return "localhost"
	}
	return u.Address
}
