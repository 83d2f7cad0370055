package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/check"
	"github.com/spanstatsd/spanstatsd/internal/ingest/socket"
	"github.com/spanstatsd/spanstatsd/internal/ingest/socketpath"
	"github.com/spanstatsd/spanstatsd/internal/memory"
	"github.com/spanstatsd/spanstatsd/internal/recovery"
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
	Running *recovery.File // in which connections of daemons that died are found; nil: in none
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

// connBytes is what a connection takes besides its publisher and its buffer.
const connBytes = int(unsafe.Sizeof(conn{}) + unsafe.Sizeof(frames{}))

const (
	// goroutineBytes is about what a connection's goroutine takes: its stack, which grows
	// to this on the longest way down, and the runtime's and the poller's part.
	goroutineBytes = 16 << 10
	// answerBytes is about what the answer to a flush takes while it is owed: a stack that
	// stays as small as it begins, and what it waits with.
	answerBytes = 3 << 10
)

// Memory is the most that ingest may come to use, of publishers that take so much each
// beside their keys: what its limits add up to. The kernel's socket buffers are the
// kernel's, though a control group counts them.
func (c *Config) Memory(publisherBytes int) []memory.Part {
	each := publisherBytes + connBytes + baseBuffer + goroutineBytes + maxOpenFlushes*answerBytes +
		recovery.Bytes(1) - recovery.Bytes(0)
	return []memory.Part{
		{Name: "connections", Bytes: int64(c.MaxConnections) * int64(each), Flag: "max-connections"},
		{Name: "buffers over 64 KiB", Bytes: int64(c.MaxBufferBytes)},
	}
}
