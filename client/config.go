package client

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"time"
)

const (
	// SocketEnv names the environment variable that says where the daemon
	// listens, for a Config that does not.
	SocketEnv = "SPANSTATSD_SOCKET"

	// KeepNothing is a Config.MaxKept.
	KeepNothing = -1

	defaultBufferBytes = 4 << 20
	defaultMaxKept     = 4 << 20

	// minBuffers is one to fill while another one is being sent.
	minBuffers = 2
	// maxBufferBytes keeps the number of a buffer within the free list's links.
	maxBufferBytes = 4 << 30
	// maxSocketPath is what a Unix socket's address has room for.
	maxSocketPath = 107
)

// Config says how a Client is to run. The zero value of every field but Origin
// is a good choice.
type Config struct {
	// Socket is the path of the daemon's socket. Empty: what the environment variable
	// SPANSTATSD_SOCKET says. If that says nothing either, each attempt to connect tries
	// /var/run/spanstatsd/spans.sock, and then where a daemon listens that this user has
	// started by hand: spanstatsd/spans.sock below XDG_RUNTIME_DIR, and
	// spanstatsd-UID/spans.sock below the directory of temporary files.
	Socket string
	// Origin is who publishes. It is sent once a connection.
	Origin Origin
	// Name tells the daemon which tracer this is, for its log.
	Name string
	// BufferBytes holds all that is published and not sent yet: 4 MiB if 0, at
	// least 128 KiB.
	BufferBytes int
	// MaxKept holds what was sent and has had no outcome yet, for the next daemon if this one dies:
	// 4 MiB if 0, enough for 10 s at 10,000 spans a second; at least 128 KiB. What has no room in it
	// any more is lost if the daemon dies. KeepNothing: all of it is, and Close need not wait for an
	// outcome, as suits a program that runs often and for moments.
	MaxKept int
	// MaxAge is the longest that a snapshot waits for others before it is sent, 5 s if
	// 0. Less of it is lost where this process is killed, or ends without Close; each
	// send wakes it and the daemon. Shortly before the daemon's interval ends
	// everything is sent, however old it is.
	MaxAge time.Duration
	// MaxBackoff is the longest pause between two attempts to connect: 5 s if 0.
	MaxBackoff time.Duration
	// MaxAway is how long spans are buffered for a daemon that is away: 1 min if
	// 0, time enough to restart or replace it. From then on they are refused, at
	// almost no cost, until it is back: the agent has no bucket for what is older.
	MaxAway time.Duration
	// Logger hears when the daemon comes and goes. Nil: nobody does.
	Logger *slog.Logger
}

// complete fills in the defaults and says what cannot work.
func (c Config) complete() (Config, error) {
	c.Socket = cmp.Or(c.Socket, os.Getenv(SocketEnv))
	c.Name = cmp.Or(c.Name, "spanstatsd-go")
	c.BufferBytes = cmp.Or(c.BufferBytes, defaultBufferBytes)
	c.MaxKept = cmp.Or(c.MaxKept, defaultMaxKept)
	c.MaxAge = cmp.Or(c.MaxAge, 5*time.Second)
	c.MaxBackoff = cmp.Or(c.MaxBackoff, 5*time.Second)
	c.MaxAway = cmp.Or(c.MaxAway, time.Minute)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Origin.Normalize()
	return c, c.check()
}

func (c *Config) check() error {
	switch {
	case len(c.Socket) > maxSocketPath:
		return fmt.Errorf("the socket's path has %d bytes, an address has room for %d: choose a shorter one",
			len(c.Socket), maxSocketPath)
	case !isBuffers(c.BufferBytes):
		return fmt.Errorf("BufferBytes is %d: choose %d to %d, or 0 for %d",
			c.BufferBytes, minBuffers*bufferBytes, int64(maxBufferBytes), defaultBufferBytes)
	case !isBuffers(c.MaxKept) && c.MaxKept != KeepNothing:
		return fmt.Errorf("MaxKept is %d: choose %d to %d, 0 for %d, or KeepNothing",
			c.MaxKept, minBuffers*bufferBytes, int64(maxBufferBytes), defaultMaxKept)
	case min(c.MaxAge, c.MaxBackoff, c.MaxAway) < 0:
		return fmt.Errorf("MaxAge, MaxBackoff and MaxAway are %s, %s and %s: choose positive ones, or 0 "+
			"for the default", c.MaxAge, c.MaxBackoff, c.MaxAway)
	}
	return nil
}

// isBuffers reports whether so many bytes are as many buffers as there may be.
func isBuffers(bytes int) bool {
	return bytes >= minBuffers*bufferBytes && int64(bytes) <= maxBufferBytes
}
