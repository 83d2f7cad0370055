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

// Config configures a Server. All fields must be set, except where a zero value is described.
type Config struct {
	Socket         socket.Config
	AllowUIDs      []uint32 // users that may connect; empty allows everyone with access to the socket
	MaxConnections int
	MaxFrame       int           // maximum length of a frame, without its header
	MaxBufferBytes int           // total size of the buffers for frames over 64 KiB
	MaxByteRate    int           // bytes per second per connection; 0 means unlimited
	ReadTimeout    time.Duration // maximum time from the first byte of a frame to its last
	Version        string        // version of the daemon, sent in the welcome
	Interval       time.Duration // interval between reports, sent in the welcome
	Admit          *admit.Publishers
	// Deliver waits until all spans published so far are delivered. Delivery does not wait for the end of the
	// export interval.
	Deliver func(context.Context) error
	// Features returns the features that the agent supports, and a channel that is closed when they
	// change.
	Features func() (wire.Features, <-chan struct{})
	// Settled returns the number of the first export interval (cycle) that is not settled: some of its spans
	// are neither delivered nor finally dropped. changed is closed when this number increases.
	Settled  func() (firstUnsettled uint64, changed <-chan struct{})
	Recovery *recovery.File // reports whether spans that a crashed daemon received were delivered; nil disables this
	Log      *slog.Logger
}

// DefaultConfig returns the defaults of the command line flags.
func DefaultConfig() Config {
	return Config{
		Socket: socket.Config{Path: socketpath.Default, Mode: 0o660}, MaxConnections: 1024,
		MaxFrame: wire.DefaultMaxFrame, MaxBufferBytes: 16 << 20, ReadTimeout: 30 * time.Second,
	}
}

// Check returns the joined errors of all invalid settings, or nil.
func (c *Config) Check() error {
	var bufferErr, timeoutErr error
	frameBytes := c.MaxFrame + wire.HeaderLen
	if c.MaxBufferBytes < frameBytes {
		bufferErr = fmt.Errorf("BUG: the buffers of large frames, %s, do not hold one frame and its length, %s",
			memory.SizeText(c.MaxBufferBytes), memory.SizeText(frameBytes))
	}
	if c.ReadTimeout <= 0 {
		timeoutErr = fmt.Errorf("BUG: the time for a frame, %s, is not positive", c.ReadTimeout)
	}
	return errors.Join(
		bufferErr,
		timeoutErr,
		c.Socket.Check("socket"),
		check.Number("max-connections", c.MaxConnections, 1, 1<<16),
		check.Size("frame", c.MaxFrame, wire.MinMaxFrame, 1<<30),
		check.Size("max-byte-rate", c.MaxByteRate, 0, memory.MostBytes),
	)
}

const (
	// connBytes is the memory of a connection, without its publisher, buffer and goroutines.
	connBytes = int(unsafe.Sizeof(conn{}) + unsafe.Sizeof(frameReader{}))
	// goroutineBytes is the approximate memory of a connection's goroutine: the maximum size of its stack,
	// and the share of the runtime and the network poller.
	goroutineBytes = 16 << 10
	// flushBytes is the approximate memory of a pending flush: a goroutine with a minimal stack.
	flushBytes = 3 << 10
)

// Memory returns the maximum memory of a Server in two parts: all connections, each with a publisher and a buffer of
// baseBuffer bytes, and the larger buffers for frames that do not fit in such a buffer. publisherBytes is the size of
// one admit.Publisher. The socket buffers of the kernel are not included.
func (c *Config) Memory(publisherBytes int) []memory.Part {
	bytesPerConnection := publisherBytes + connBytes + baseBuffer + goroutineBytes +
		maxPendingFlushes*flushBytes + recovery.TrackerBytes
	return []memory.Part{
		{Name: "connections", Bytes: int64(c.MaxConnections) * int64(bytesPerConnection), Flag: "max-connections"},
		{Name: "buffers over 64 KiB", Bytes: int64(c.MaxBufferBytes)},
	}
}
