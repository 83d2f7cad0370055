package admit

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/check"
	"github.com/spanstatsd/spanstatsd/internal/memory"
	"github.com/spanstatsd/spanstatsd/internal/recovery"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/ignore"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// Config is what publishers may use. Every field but Ignore and Running must be set.
type Config struct {
	MaxBatch         int // snapshots of a connection's batch
	MaxKeys          int // numbers that a publisher may define, and keys that it may use without
	MaxKeyBytes      int // of the raw keys that one publisher has in its table
	MaxKeyBytesInAll int // the same over all publishers
	MaxResource      int // bytes of a resource that are kept, the agent's number at most
	Connections      int // publishers that have an equal share of MaxKeyBytesInAll each
	Block            bool
	WaitBudget       time.Duration // without Block: how long a connection waits for room, see waitBudget
	DefaultHost      string        // of an origin that does not say
	DefaultEnv       string        // of an origin that does not say
	Ignore           *ignore.List  // spans that are not counted; nil: every span is
	Aggregator       *aggregate.Aggregator
	Running          *recovery.File // that the next daemon reads; nil: none
}

// DefaultConfig is the defaults of the command line.
func DefaultConfig() Config {
	return Config{
		MaxBatch: 1024, MaxKeys: 8192, MaxKeyBytes: 8 << 20, MaxKeyBytesInAll: 32 << 20,
		MaxResource: span.MaxResource, Connections: 1024, WaitBudget: 20 * time.Millisecond,
	}
}

// MaxNumberedBytes is what the keys with numbers of one publisher may cost, see wire.KeyCost.
// The rest of its memory is for keys without, so that there is always something to sweep.
func (c *Config) MaxNumberedBytes() int { return c.MaxKeyBytes - c.MaxKeyBytes/8 }

// minKeyBytes is the least of which what is announced is as much as every tracer may use.
const minKeyBytes = wire.MinMaxKeyBytes * 5 / 4

// Check says everything that is unusable.
func (c *Config) Check() (err error) {
	if c.MaxKeyBytesInAll < c.MaxKeyBytes {
		err = fmt.Errorf("check max-key-bytes-in-all: %s is less than the %s of one connection; "+
			"raise it, or lower --max-key-bytes",
			memory.SizeText(c.MaxKeyBytesInAll), memory.SizeText(c.MaxKeyBytes))
	}
	return errors.Join(err,
		check.Number("max-batch", c.MaxBatch, wire.MinMaxBatch, 1<<20),
		check.Number("max-keys", c.MaxKeys, wire.MinMaxKeys, 1<<20),
		check.Size("max-key-bytes", c.MaxKeyBytes, minKeyBytes, memory.MostBytes),
		check.AtMost("max-key-bytes-in-all", c.MaxKeyBytesInAll, memory.MostBytes),
		// the agent keeps no more
		check.Size("max-resource-bytes", c.MaxResource, span.MaxLabel, span.MaxResource),
	)
}

// Publishers is what all publishers share: the rings, the memory for keys and the books.
type Publishers struct {
	config    Config
	books     books
	keyMemory keyMemory
	open      atomic.Int64 // publishers
	unwanted  atomic.Bool
	stopped   chan struct{} // closed by Stop
}

// New makes publishers possible before a running aggregator.
func New(config Config) (*Publishers, error) {
	if err := config.Check(); err != nil {
		return nil, err
	}
	return &Publishers{
		config: config, stopped: make(chan struct{}),
		keyMemory: newKeyMemory(config.MaxKeyBytesInAll, config.Connections),
	}, nil
}

// MaxBatch is the most snapshots of a connection's batch.
func (s *Publishers) MaxBatch() int { return s.config.MaxBatch }

// MaxKeys is how many numbers a publisher may define, all below it.
func (s *Publishers) MaxKeys() int { return s.config.MaxKeys }

// MaxKeyBytes is what the keys with numbers of one publisher may cost, see wire.KeyCost.
func (s *Publishers) MaxKeyBytes() int { return s.config.MaxNumberedBytes() }

// SetWanted says whether the agent takes statistics. While it does not, batches are
// dropped for that reason.
func (s *Publishers) SetWanted(wanted bool) { s.unwanted.Store(!wanted) }

// Stop has every batch dropped from here on, because the daemon stops, and ends every
// wait for room. It is called once.
func (s *Publishers) Stop() { close(s.stopped) }

func (s *Publishers) isStopped() bool {
	select {
	case <-s.stopped:
		return true
	default:
		return false
	}
}

// Stats is what became of the spans of all publishers.
func (s *Publishers) Stats() Stats { return s.books.stats() }

// isAlone says whether there is nobody to share the rings with.
func (s *Publishers) isAlone() bool { return s.open.Load() == 1 }

// SpanBytes is what a publisher takes for each span of the largest batch so far: its slot,
// its key's hash and its drainer.
const SpanBytes = int(unsafe.Sizeof(aggregate.Slot{}) + unsafe.Sizeof(uint32(0)) + unsafe.Sizeof(uint16(0)))

// pathBytes is about what a publisher's places in the cycles and in the routing take.
const pathBytes = 1 << 10

// PublisherBytes is what a publisher takes beside its keys before so many drainers.
func (c *Config) PublisherBytes(drainers int) int {
	const (
		drainer = int(unsafe.Sizeof(ringShare{}) + unsafe.Sizeof(run{}))
		noKeys  = int(leastKeys * (unsafe.Sizeof(knownKey{}) + 2*unsafe.Sizeof(keySlot{})))
		fixed   = int(unsafe.Sizeof(Publisher{})) + noKeys + pathBytes
	)
	bytes := fixed + drainers*drainer + c.MaxBatch*SpanBytes
	return bytes + bytes/8 // which the allocator's size classes may take more
}
