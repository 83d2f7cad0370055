package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/check"
	"github.com/spanstatsd/spanstatsd/internal/memory"
	"github.com/spanstatsd/spanstatsd/internal/running"
	"github.com/spanstatsd/spanstatsd/internal/socket"
	"github.com/spanstatsd/spanstatsd/internal/socketpath"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// Config is what ingest may use. Every field must be set.
type Config struct {
	Socket         socket.Config
	AllowUIDs      []uint32 // who may connect; none: whoever may open the socket
	MaxConnections int
	MaxFrame       int
	MaxBufferBytes int           // of the buffers of frames over 64 KiB, of all together
	MaxByteRate    int           // bytes a second a connection; 0: any
	ReadTimeout    time.Duration // for a frame once begun
	Version        string        // of the daemon, for the welcome
	Interval       time.Duration // between two reports, for the welcome
	Admit          *admit.Publishers
	// Report seals now, and returns when all that was published before is delivered.
	Report func(context.Context) error
	// Features returns what the agent wants and a channel that is closed when
	// that changes.
	Features func() (wire.Features, <-chan struct{})
	// Settled returns the number of a cycle before which all have had their outcome, and a
	// channel that is closed when it rises.
	Settled func() (through uint64, changed <-chan struct{})
	Running *running.File // in which connections of daemons that died are found; nil: in none
	Log     *slog.Logger
}

// DefaultConfig is the defaults of the command line.
func DefaultConfig() Config {
	return Config{
		Socket: socket.Config{Path: socketpath.Default, Mode: 0o660}, MaxConnections: 1024,
		MaxFrame: wire.DefaultMaxFrame, MaxBufferBytes: 16 << 20, ReadTimeout: 30 * time.Second,
	}
}

// Check says everything that is unusable.
func (c *Config) Check() (err error) {
	if c.MaxBufferBytes < c.MaxFrame+wire.HeaderLen {
		err = fmt.Errorf("BUG: the buffers of large frames, %s, do not hold one frame and its length, %s",
			memory.SizeText(c.MaxBufferBytes), memory.SizeText(c.MaxFrame+wire.HeaderLen))
	}
	if c.ReadTimeout <= 0 {
		err = errors.Join(err, fmt.Errorf("BUG: the time for a frame, %s, is not positive", c.ReadTimeout))
	}
	return errors.Join(err,
		c.Socket.Check("socket"),
		check.Number("max-connections", c.MaxConnections, 1, 1<<16),
		check.Size("frame", c.MaxFrame, wire.MinMaxFrame, 1<<30),
		check.Size("max-byte-rate", c.MaxByteRate, 0, memory.MostBytes), // 0 stands for any rate
	)
}
