package registry

import (
	"errors"

	"github.com/spanstatsd/spanstatsd/internal/check"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Config is what an interval may hold. Every number must be set.
type Config struct {
	MaxAggregates    int            // keys that all origins share; see reserve
	MaxOrigins       int            // origins, beside the common one of all others
	LabelBytes       int            // of what keys are named by; see reserve
	Budgets          Budgets        // distinct values a label and origin
	TagBudgets       map[string]int // the same of tags by their tag key, in whichever list; nil: none
	ConflateRuntimes bool           // origins that differ only in runtime id are one
	Attributes       bool           // origins may have attributes of a resource
	Masking          Masking        // of resources and endpoints
}

// DefaultConfig is the defaults of the command line.
func DefaultConfig() Config {
	return Config{
		MaxAggregates: 8192, MaxOrigins: 256, LabelBytes: 8 << 20,
		Budgets: DefaultBudgets(), ConflateRuntimes: true,
	}
}

const (
	mostAggregates = 1 << 20
	mostOrigins    = 1 << 16

	// MostKeys is more than any configuration allows.
	MostKeys = mostAggregates + mostAggregates/4 + mostOrigins + 1

	// MaxBudget is the most distinct values that a label may have.
	MaxBudget = 1 << 20

	// minLabelBytes leaves room for some hundred of the longest keys.
	minLabelBytes = 1 << 20
)

// Check says everything that is unusable.
func (c *Config) Check() error {
	err := errors.Join(
		check.Number("max-aggregates", c.MaxAggregates, 1, mostAggregates),
		check.Size("label-bytes", c.LabelBytes, minLabelBytes, 1<<30),
		check.Number("max-origins", c.MaxOrigins, 1, mostOrigins),
	)
	for l, limit := range c.Budgets {
		field := "cardinality-limit of " + span.Label(l).String()
		err = errors.Join(err, check.Number(field, limit, 1, MaxBudget))
	}
	for name, limit := range c.TagBudgets {
		err = errors.Join(err, check.Number("cardinality-limit of the tag "+name, limit, 1, MaxBudget))
	}
	return err
}

// LimitTag sets the budget of the tags with one tag key. Of two the larger one holds.
func (c *Config) LimitTag(key string, limit int) {
	if c.TagBudgets == nil {
		c.TagBudgets = map[string]int{}
	}
	c.TagBudgets[key] = max(c.TagBudgets[key], limit)
}

// tagBudget is the budget of the tags with a tag key of a list.
func (c *Config) tagBudget(list span.Label, key string) int {
	if limit, named := c.TagBudgets[key]; named {
		return limit
	}
	return c.Budgets[list]
}

// originBytes is about what a registry holds for an origin, beside its keys: its
// longest fields, and its overflow row.
func (c *Config) originBytes() int {
	longest := 14*span.MaxOriginField + span.MaxProcessTags + 1<<10
	if c.Attributes {
		longest += span.MaxAttributes
	}
	return longest
}

// MaxKeys is the most keys an interval can have, the overflow rows included.
func (c *Config) MaxKeys() int { return c.MaxAggregates + c.reserve().rows + c.MaxOrigins + 1 }

// Bytes is the most that the two registries of Intervals can come to hold.
func (c *Config) Bytes() int {
	origins := (c.MaxOrigins + 1) * c.originBytes()
	return 2 * (c.LabelBytes + c.reserve().bytes + filterBytes(c.LabelBytes) + origins)
}

// shared is what all origins may take.
func (c *Config) shared() allowance { return allowance{rows: c.MaxAggregates, bytes: c.LabelBytes} }

// reserve is what there is beyond that.
func (c *Config) reserve() allowance { return c.shared().over(4) }
