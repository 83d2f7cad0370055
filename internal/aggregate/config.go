package aggregate

import (
	"errors"
	"fmt"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/routing"
)

// Config is what the aggregates may use. Every field must be set.
type Config struct {
	Drainers          int                  // goroutines that count, and rings
	Partitions        routing.Partitioning // into how many the key space is cut
	RebalanceInterval time.Duration        // how often the drainers are levelled; 0: never
	RingSlots         int                  // slots a ring, a power of two
	registry.Config                        // of each interval
	SketchBytes       int                  // of the bins of all sketches, see sketch.Memory
	FlushInterval     time.Duration        // the interval: a cycle is no longer than that
	BucketWidth       time.Duration        // of a bucket of end times
	Merge             bool                 // groups that tracers have counted are taken, see Merged
	Deliver           func(*Sealed)        // takes a sealed cycle; must not wait for the network
}

// DefaultConfig is the defaults of the command line.
func DefaultConfig() Config {
	return Config{
		Drainers: 1, Partitions: routing.Partitioning{Adaptive: routing.DefaultDensity}, RebalanceInterval: 10 * time.Second,
		RingSlots: 1 << 16, Config: registry.DefaultConfig(), SketchBytes: 16 << 20,
		FlushInterval: 10 * time.Second, BucketWidth: 10 * time.Second,
	}
}

// Check says what is unusable.
func (c *Config) Check() error {
	switch {
	case c.Drainers < 1 || c.Drainers > 1024:
		return fmt.Errorf("check drainers: %d is not between 1 and 1024", c.Drainers)
	case c.Drainers > c.Partitions.Count(c.Drainers, 0):
		return fmt.Errorf("check drainers: %d are more than the %d partitions; LimitDrainers would have lowered them", c.Drainers, c.Partitions.Count(c.Drainers, 0))
	case c.RebalanceInterval != 0 && (c.RebalanceInterval < routing.MinInterval || c.RebalanceInterval > time.Hour):
		return fmt.Errorf("check rebalance-interval: %s is neither 0 nor between %s and 1h", c.RebalanceInterval, routing.MinInterval)
	case c.SketchBytes < minSketchBytes || c.SketchBytes > maxSketchBytes:
		return fmt.Errorf("check sketch-bytes: %d is not between %d and %d", c.SketchBytes, minSketchBytes, maxSketchBytes)
	case c.BucketWidth <= 0:
		return fmt.Errorf("check bucket width: %s is not positive", c.BucketWidth)
	case c.FlushInterval < time.Second || c.FlushInterval > c.BucketWidth:
		return fmt.Errorf("check flush-interval: %s is not between 1s and a bucket's %s", c.FlushInterval, c.BucketWidth)
	case c.Deliver == nil:
		return errors.New("BUG: no one to deliver sealed cycles to")
	}
	if err := c.Partitions.Check(); err != nil {
		return err
	}
	return c.Config.Check()
}

// LimitDrainers lowers the drainers to the number of partitions, and says so.
func (c *Config) LimitDrainers() (warning string) {
	partitions := c.Partitions.Count(c.Drainers, 0)
	if c.Drainers <= partitions {
		return ""
	}
	warning = fmt.Sprintf("%d drainers are more than the %d partitions of --partitions=%s; there will be %d drainers",
		c.Drainers, partitions, c.Partitions, partitions)
	c.Drainers = partitions
	return warning
}
