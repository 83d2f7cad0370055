package client

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"time"
)

const (
	// SocketEnv is the environment variable that contains the path of the daemon's socket, if Config.Socket
	// is empty.
	SocketEnv = "SPANSTATSD_SOCKET"

	// KeepNothing is a value of Config.MaxKept.
	KeepNothing = -1

	defaultBufferBytes = 4 << 20
	defaultMaxKept     = 4 << 20

	// minBuffers is one buffer to fill while another one is being sent.
	minBuffers = 2
	// maxBufferBytes limits the number of buffers, whose indices must fit into the links of a stack.
	maxBufferBytes = 4 << 30
	// maxSocketPath is the maximum length of the path of a Unix socket.
	maxSocketPath = 107
)

// Config configures a Client. Only Origin has no useful default.
type Config struct {
	// Socket is the path of the daemon's socket. If it is empty, the environment variable SPANSTATSD_SOCKET
	// is used. If that is empty as well, each attempt to connect tries /var/run/spanstatsd/spans.sock, then
	// the paths of a daemon that the same user has started: spanstatsd/spans.sock below XDG_RUNTIME_DIR,
	// and spanstatsd-UID/spans.sock below the directory for temporary files.
	Socket string
	// Origin describes this process. It is sent once per connection.
	Origin Origin
	// Name identifies the tracer in the daemon's log.
	Name string
	// BufferBytes is the memory for spans that are published and not yet sent: 4 MiB if 0, at least 128
	// KiB.
	BufferBytes int
	// MaxKept is the memory for spans that are sent and not yet settled, which are sent to the next daemon
	// if this one is killed: 4 MiB if 0, enough for 10 s at 10,000 spans per second; at least 128 KiB.
	// Spans that exceed it are lost if the daemon is killed. With KeepNothing, no spans are kept, and Close
	// does not wait until spans are settled, which suits programs that run often and briefly.
	MaxKept int
	// MaxAge is the maximum time that a snapshot waits for others before it is sent, 5 s if 0. A lower
	// value loses fewer spans when this process is killed, or ends without Close, but wakes up the process
	// and the daemon more often. Shortly before the end of the daemon's interval, all snapshots are sent.
	MaxAge time.Duration
	// MaxBackoff is the maximum pause between two attempts to connect, 5 s if 0.
	MaxBackoff time.Duration
	// MaxAway is the time for which spans are buffered while the daemon is unavailable: 1 min if 0, enough
	// to restart or replace it. After that, spans are refused at almost no cost until a daemon is
	// available, because statistics for older spans are not accepted.
	MaxAway time.Duration
	// Logger receives connection events. If it is nil, nothing is logged.
	Logger *slog.Logger
}

// withDefaults returns the configuration with a default for each field that is not set. It returns an error if the
// configuration is invalid.
func (c Config) withDefaults() (Config, error) {
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
	return c, c.validate()
}

// validate returns an error that names the first invalid field, or nil.
func (c *Config) validate() error {
	switch {
	case len(c.Socket) > maxSocketPath:
		return fmt.Errorf("the path in Socket has %d bytes; choose a path of at most %d",
			len(c.Socket), maxSocketPath)
	case !isPoolSize(c.BufferBytes):
		return fmt.Errorf("BufferBytes is %d; choose %d to %d, or 0 for the default of %d",
			c.BufferBytes, minBuffers*bufferBytes, int64(maxBufferBytes), defaultBufferBytes)
	case !isPoolSize(c.MaxKept) && c.MaxKept != KeepNothing:
		return fmt.Errorf("MaxKept is %d; choose %d to %d, 0 for the default of %d, or KeepNothing",
			c.MaxKept, minBuffers*bufferBytes, int64(maxBufferBytes), defaultMaxKept)
	case min(c.MaxAge, c.MaxBackoff, c.MaxAway) < 0:
		return fmt.Errorf("MaxAge, MaxBackoff and MaxAway are %s, %s and %s; choose positive durations, or 0 "+
			"for the defaults", c.MaxAge, c.MaxBackoff, c.MaxAway)
	}
	return nil
}

// isPoolSize reports whether the number of bytes is valid for Config.BufferBytes and Config.MaxKept.
func isPoolSize(bytes int) bool {
	return bytes >= minBuffers*bufferBytes && int64(bytes) <= maxBufferBytes
}
