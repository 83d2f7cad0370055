package registry

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

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

// originBytes is about the memory of an origin beside its keys: its longest fields, its overflow
// row, its budgets, and what the next interval knows of them.
func (c *Config) originBytes() int {
	longest := 14*span.MaxOriginField + span.MaxProcessTags + 1<<10
	if c.Attributes {
		longest += span.MaxAttributes
	}
	return longest + int(unsafe.Sizeof(origin{})+unsafe.Sizeof(previousOrigin{}))
}

// MaxKeys is the most keys an interval can have, the reserve of rowBudget and the overflow rows
// included.
func (c *Config) MaxKeys() int { return c.MaxAggregates + c.reserve().rows + c.MaxOrigins + 1 }

// Bytes is the most that the two registries of Intervals can come to hold.
func (c *Config) Bytes() int {
	origins := (c.MaxOrigins + 1) * c.originBytes()
	filter := 2 * filterBytes(c.LabelBytes)
	return 2*(c.LabelBytes+c.reserve().bytes+origins) + filter
}

func (c *Config) all() usage { return usage{rows: c.MaxAggregates, bytes: c.LabelBytes} }

// reserve is the rows and bytes beyond these, see rowBudget.
func (c *Config) reserve() usage { return c.all().over(4) }

// Masking is which values of resources and endpoints have a mask in their place.
type Masking uint8

const (
	MaskOverBudget Masking = iota // those that would be lost
	MaskAlways                    // all of them
	MaskNever
)

var maskings = [...]string{MaskOverBudget: "over-budget", MaskAlways: "always", MaskNever: "never"}

// String is its name on the command line.
func (m Masking) String() string { return maskings[m] }

// Set makes it the one of that name.
func (m *Masking) Set(name string) error {
	at := slices.Index(maskings[:], name)
	if at < 0 {
		return fmt.Errorf("parse mask-names: %q is none of over-budget, always and never", name)
	}
	*m = Masking(at)
	return nil
}

// Type is what the help of the command line says of its values.
func (*Masking) Type() string { return "over-budget|always|never" }

// maskedLabels are the labels whose values may be masked.
var maskedLabels = [...]span.Label{span.LabelResource, span.LabelHTTPEndpoint}

func isMaskable(l span.Label) bool { return slices.Contains(maskedLabels[:], l) }
