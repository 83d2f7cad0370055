package client

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"time"
)

const (
	// SocketEnv is the environment variable with the path of the daemon's socket, used if Config.Socket is
	// empty.
	SocketEnv = "SPANSTATSD_SOCKET"

	// KeepNothing, as Config.MaxKept, disables keeping sent spans.
	KeepNothing = -1

	defaultBufferBytes = 4 << 20
	defaultMaxKept     = 4 << 20

	// minBuffers is one buffer to fill while another one is being sent.
	minBuffers = 2
	// maxBufferBytes limits buffer indexes to the range of the free list's links.
	maxBufferBytes = 4 << 30
	// maxSocketPath is the maximum length of a Unix socket's path.
	maxSocketPath = 107
)

// Config configures a Client. The zero value is a good choice for every field except Origin.
type Config struct {
	// Socket is the path of the daemon's socket. If it is empty, the environment variable
	// SPANSTATSD_SOCKET is used. If that is not set, each attempt to connect tries
	// /var/run/spanstatsd/spans.sock, and then the sockets of a daemon started manually by this user:
	// spanstatsd/spans.sock in XDG_RUNTIME_DIR, and spanstatsd-UID/spans.sock in the directory for
	// temporary files.
	Socket string
	// Origin describes the publisher. It is sent once per connection.
	Origin Origin
	// Name identifies the tracer in the daemon's log.
	Name string
	// BufferBytes is the memory for spans that are published and not sent. Default: 4 MiB; minimum:
	// 128 KiB.
	BufferBytes int
	// MaxKept is the memory for spans that were sent and are not settled, to send them to the next daemon
	// if this one crashes. Default: 4 MiB, enough for 10 s at 10,000 spans per second; minimum: 128 KiB.
	// Spans that do not fit are lost if the daemon crashes. With KeepNothing all of them are, and Close
	// does not wait for outcomes; this is useful for a short-lived program that runs often.
	MaxKept int
	// MaxAge is the maximum time that a snapshot waits for others before it is sent. Default: 5 s. With a
	// lower value, fewer spans are lost if this process is killed or ends without Close, but each send
	// wakes this process and the daemon. Shortly before the daemon's interval ends, everything is sent.
	MaxAge time.Duration
	// MaxBackoff is the maximum pause between two attempts to connect. Default: 5 s.
	MaxBackoff time.Duration
	// MaxAway is how long spans are buffered for an unreachable daemon. Default: 1 min, enough to restart
	// or replace it. After that they are refused, at almost no cost, until it is back, because the agent
	// has no bucket for older spans.
	MaxAway time.Duration
	// Logger receives connection events. If nil, nothing is logged.
	Logger *slog.Logger
}

// complete sets the defaults and checks the values.
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

// check returns an error for the first invalid value.
func (c *Config) check() error {
	switch {
	case len(c.Socket) > maxSocketPath:
		return fmt.Errorf("the socket's path has %d bytes, an address has room for %d: choose a shorter one",
			len(c.Socket), maxSocketPath)
	case !isValidSize(c.BufferBytes):
		return fmt.Errorf("BufferBytes is %d: choose %d to %d, or 0 for %d",
			c.BufferBytes, minBuffers*bufferBytes, int64(maxBufferBytes), defaultBufferBytes)
	case !isValidSize(c.MaxKept) && c.MaxKept != KeepNothing:
		return fmt.Errorf("MaxKept is %d: choose %d to %d, 0 for %d, or KeepNothing",
			c.MaxKept, minBuffers*bufferBytes, int64(maxBufferBytes), defaultMaxKept)
	case min(c.MaxAge, c.MaxBackoff, c.MaxAway) < 0:
		return fmt.Errorf("MaxAge, MaxBackoff and MaxAway are %s, %s and %s: choose positive ones, or 0 "+
			"for the default", c.MaxAge, c.MaxBackoff, c.MaxAway)
	}
	return nil
}

// isValidSize reports whether a number of bytes is a permitted number of buffers.
func isValidSize(bytes int) bool {
	return bytes >= minBuffers*bufferBytes && int64(bytes) <= maxBufferBytes
}
