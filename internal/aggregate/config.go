package aggregate

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/check"
	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/routing"
	"github.com/spanstatsd/spanstatsd/internal/running"
	"github.com/spanstatsd/spanstatsd/internal/sketch"
)

// Config is what the aggregates may use. Every field but Looks and Running must be set.
type Config struct {
	Drainers          int              // goroutines that count, and rings
	RebalanceInterval time.Duration    // how often the drainers are levelled; 0: never
	Looks             <-chan time.Time // see routing.Config
	RingSlots         int              // slots a ring, a power of two
	registry.Config                    // of each interval
	SketchBytes       int              // of the bins of all sketches, see sketch.Memory
	Grid              *sketch.Grid     // the cells that durations are counted in
	FlushInterval     time.Duration    // the interval: a cycle is no longer than that
	BucketWidth       time.Duration    // of a bucket of end times
	Merge             bool             // groups that tracers have counted are taken, see Merged
	Deliver           func(*Sealed)    // takes a sealed cycle; must not wait for the network
	Running           *running.File    // that the next daemon reads; nil: none
}

// The bounds of Config.SketchBytes: a chunk for every table of a few drainers,
// and as many pages as their numbers can name with room to spare.
const (
	minSketchBytes = 1 << 20
	maxSketchBytes = 1 << 30
)

// DefaultConfig is the defaults of the command line.
func DefaultConfig() Config {
	return Config{
		Drainers: 1, RebalanceInterval: 10 * time.Second, RingSlots: 1 << 16,
		Config: registry.DefaultConfig(), SketchBytes: 16 << 20, Grid: sketch.AgentGrid(),
		FlushInterval: 10 * time.Second, BucketWidth: 10 * time.Second,
	}
}

// Check says everything that is unusable.
func (c *Config) Check() (err error) {
	if c.RebalanceInterval != 0 &&
		(c.RebalanceInterval < routing.MinInterval || c.RebalanceInterval > time.Hour) {
		err = errors.Join(err, fmt.Errorf("BUG: the interval of levelling, %s, is neither 0 nor between %s "+
			"and 1h", c.RebalanceInterval, routing.MinInterval))
	}
	if c.Deliver == nil {
		err = errors.Join(err, errors.New("BUG: no one to deliver sealed cycles to"))
	}
	if c.Grid == nil {
		err = errors.Join(err, errors.New("BUG: no grid to count durations in"))
	}
	return errors.Join(err,
		check.Number("drainers", c.Drainers, 1, 1024),
		check.Size("sketch-bytes", c.SketchBytes, minSketchBytes, maxSketchBytes),
		check.Time("bucket width", c.BucketWidth, 1, math.MaxInt64),
		check.Time("flush-interval", c.FlushInterval, time.Second, c.BucketWidth), // no longer than a bucket
		c.Config.Check(),
	)
}
