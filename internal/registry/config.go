package registry

import (
	"fmt"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Config is what an interval may hold. Every field but the last must be set.
type Config struct {
	MaxAggregates    int     // keys that all origins share; see reserve
	MaxOrigins       int     // origins
	LabelBytes       int     // of what keys are named by; see reserve
	Budgets          Budgets // distinct values a label and origin
	ConflateRuntimes bool    // origins that differ only in runtime id are one
}

// DefaultConfig is the defaults of the command line.
func DefaultConfig() Config {
	return Config{
		MaxAggregates: 2048, MaxOrigins: 256, LabelBytes: 8 << 20, Budgets: DefaultBudgets(), ConflateRuntimes: true,
	}
}

const (
	mostAggregates = 1 << 20
	mostOrigins    = 1 << 16

	// MostKeys is more than any configuration allows.
	MostKeys = mostAggregates + mostAggregates/4 + mostOrigins

	// minLabelBytes leaves room for some hundred of the longest keys.
	minLabelBytes = 1 << 20
)

// Check says what is unusable.
func (c *Config) Check() error {
	switch {
	case c.MaxAggregates < 1 || c.MaxAggregates > mostAggregates:
		return fmt.Errorf("check max-aggregates: %d is not between 1 and %d", c.MaxAggregates, mostAggregates)
	case c.LabelBytes < minLabelBytes || c.LabelBytes > 1<<30:
		return fmt.Errorf("check label-bytes: %d is not between %d and %d", c.LabelBytes, minLabelBytes, 1<<30)
	case c.MaxOrigins < 1 || c.MaxOrigins > mostOrigins:
		return fmt.Errorf("check max-origins: %d is not between 1 and %d", c.MaxOrigins, mostOrigins)
	}
	for l, limit := range c.Budgets {
		if limit < 1 || limit > 1<<20 {
			return fmt.Errorf("check cardinality-limit of %s: %d is not between 1 and %d", span.Label(l), limit, 1<<20)
		}
	}
	return nil
}

// originBytes is about what a registry holds for an origin, beside its keys: its
// longest fields, and its overflow row.
const originBytes = 14*span.MaxOriginField + span.MaxProcessTags + 1<<10

// MaxKeys is the most keys an interval can have, the overflow rows included.
func (c *Config) MaxKeys() int { return c.MaxAggregates + c.reserve().rows + c.MaxOrigins }

// Bytes is the most that the two registries of Intervals can come to hold.
func (c *Config) Bytes() int {
	return 2 * (c.LabelBytes + c.reserve().bytes + c.MaxOrigins*originBytes)
}
