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
	"github.com/spanstatsd/spanstatsd/internal/span/slo"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// Config holds the limits and defaults of all publishers. Every field except Ignore, Objectives and Recovery
// must be set.
type Config struct {
	MaxBatch         int // limit on snapshots per batch of a connection
	MaxKeys          int // limit per publisher on key numbers, and on cached keys without a number
	MaxKeyBytes      int // limit on the key table of one publisher
	MaxKeyBytesInAll int // limit on the key tables of all publishers in total
	MaxResource      int // limit on the bytes of a resource label; longer ones are cut
	Connections      int // number of connections that have a reserved share of MaxKeyBytesInAll
	Block            bool
	WaitBudget       time.Duration // maximum time that a connection can wait for a full ring unless Block is set, see waitBudget
	DefaultHost      string        // host of origins that name none
	DefaultEnv       string        // environment of origins that name none
	Measures         int           // number of measures, whose values are counted for spans from request bodies
	Ignore           *ignore.List  // rules for spans that are not counted; nil counts every span
	Objectives       *slo.List     // objectives that count spans, too; nil for none
	Aggregator       *aggregate.Aggregator
	Recovery         *recovery.File // recovery file for the next daemon; nil disables it
}

// DefaultConfig returns the defaults of the command line.
func DefaultConfig() Config {
	return Config{
		MaxBatch: 1024, MaxKeys: 8192, MaxKeyBytes: 8 << 20, MaxKeyBytesInAll: 32 << 20,
		MaxResource: span.MaxResource, Connections: 1024, WaitBudget: 20 * time.Millisecond,
	}
}

// MaxNumberedBytes returns the memory limit of one publisher for keys to which clients have assigned
// numbers: seven eighths of MaxKeyBytes. The rest is for keys without a number, which can always be removed.
func (c *Config) MaxNumberedBytes() int { return c.MaxKeyBytes - c.MaxKeyBytes/8 }

// minKeyBytes is the lowest valid MaxKeyBytes. The part of it that MaxNumberedBytes returns is still more than
// wire.MinMaxKeyBytes, which the protocol guarantees to every client.
const minKeyBytes = wire.MinMaxKeyBytes * 5 / 4

// Check validates c. The error names every invalid field.
func (c *Config) Check() (err error) {
	if c.MaxKeyBytesInAll < c.MaxKeyBytes {
		err = fmt.Errorf("check max-key-bytes-total: %s is less than the %s of one connection; "+
			"raise it, or lower --max-key-bytes",
			memory.SizeText(c.MaxKeyBytesInAll), memory.SizeText(c.MaxKeyBytes))
	}
	return errors.Join(err,
		check.Number("max-batch", c.MaxBatch, wire.MinMaxBatch, 1<<20),
		check.Number("max-keys", c.MaxKeys, wire.MinMaxKeys, 1<<20),
		check.Size("max-key-bytes", c.MaxKeyBytes, minKeyBytes, memory.MostBytes),
		check.AtMost("max-key-bytes-total", c.MaxKeyBytesInAll, memory.MostBytes),
		// span.MaxResource is also the agent's limit
		check.Size("max-resource-bytes", c.MaxResource, span.MaxLabel, span.MaxResource),
	)
}

// Publishers is the state that all publishers share: the limits, the memory for keys and the
// totals.
type Publishers struct {
	config    Config
	totals    totals
	keyMemory keyMemory
	open      atomic.Int64 // number of open publishers
	unwanted  atomic.Bool
	stopped   chan struct{} // closed by Stop
}

// New returns Publishers that publish to config.Aggregator, which must be running.
func New(config Config) (*Publishers, error) {
	if err := config.Check(); err != nil {
		return nil, err
	}
	s := &Publishers{
		config: config, stopped: make(chan struct{}),
		keyMemory: newKeyMemory(config.MaxKeyBytesInAll, config.Connections),
	}
	s.totals.objectives.counts = make(slo.Counts, config.Objectives.Len())
	return s, nil
}

// MaxBatch returns the limit on snapshots per batch of a connection.
func (s *Publishers) MaxBatch() int { return s.config.MaxBatch }

// MaxKeys returns how many numbers a publisher can define. Every number is below MaxKeys.
func (s *Publishers) MaxKeys() int { return s.config.MaxKeys }

// MaxKeyBytes returns the memory limit for the numbered keys of one publisher, see wire.KeyCost.
func (s *Publishers) MaxKeyBytes() int { return s.config.MaxNumberedBytes() }

// SetStatsWanted sets whether the agent accepts statistics. If it does not, all spans are dropped, for
// the reason DropNotWanted.
func (s *Publishers) SetStatsWanted(wanted bool) { s.unwanted.Store(!wanted) }

// Stop makes publishers drop all further spans, for the reason DropShutdown, and ends their waiting for
// free ring slots. It must be called only once.
func (s *Publishers) Stop() { close(s.stopped) }

func (s *Publishers) isStopped() bool {
	select {
	case <-s.stopped:
		return true
	default:
		return false
	}
}

// Stats returns the outcomes of the spans of all publishers.
func (s *Publishers) Stats() Stats {
	stats := s.totals.stats()
	stats.Objectives = s.totals.objectives.stats(s.config.Objectives)
	return stats
}

// isAlone reports whether only one publisher is open, so that the rings are not shared.
func (s *Publishers) isAlone() bool { return s.open.Load() == 1 }

// SpanBytes is the scratch memory that a publisher keeps per span of its largest batch: the slot,
// the hash of the key and the drainer's number.
const SpanBytes = int(unsafe.Sizeof(aggregate.Slot{}) + unsafe.Sizeof(uint32(0)) + unsafe.Sizeof(uint16(0)))

// guardAndRouteBytes is roughly the memory of a publisher's guard and route in the aggregator.
const guardAndRouteBytes = 1 << 10

// PublisherBytes returns the maximum memory of one publisher, except for the bytes that are charged for its keys.
// drainers is the number of goroutines that aggregate spans: a publisher has some data for each of them.
func (c *Config) PublisherBytes(drainers int) int {
	const (
		bytesPerDrainer    = int(unsafe.Sizeof(ringShare{}) + unsafe.Sizeof(drainerBatch{}))
		bytesPerKey        = int(unsafe.Sizeof(knownKey{}) + 2*unsafe.Sizeof(keySlot{})) // half of the slots stay empty
		emptyKeyTableBytes = leastKeys * bytesPerKey
		fixedBytes         = int(unsafe.Sizeof(Publisher{})) + emptyKeyTableBytes + guardAndRouteBytes
	)
	batchBytes := c.MaxBatch * SpanBytes
	objectiveBytes := c.Objectives.Len() * int(unsafe.Sizeof(slo.Count{}))
	bytes := fixedBytes + drainers*bytesPerDrainer + batchBytes + objectiveBytes
	return bytes + bytes/8 // the allocator's size classes can add an eighth
}
