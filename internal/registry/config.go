package registry

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/check"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Config limits the contents of an interval. Every number must be set.
type Config struct {
	MaxAggregates    int            // keys, shared by all origins; a reserve is added, see rowBudget
	MaxOrigins       int            // origins, in addition to the common one
	LabelBytes       int            // memory of keys and their labels; a reserve is added, see rowBudget
	Budgets          Budgets        // distinct values per label and origin
	TagBudgets       map[string]int // overrides Budgets for tags with these keys, in both lists
	ConflateRuntimes bool           // treat origins that differ only in runtime ID as one
	Attributes       bool           // origins can have resource attributes
	Masking          Masking        // resources and endpoints that are masked
	Measures         int            // number of measures, whose values are counted under keys of their own
}

// DefaultConfig returns the defaults of the command line.
func DefaultConfig() Config {
	return Config{
		MaxAggregates: 8192, MaxOrigins: 256, LabelBytes: 8 << 20,
		Budgets: DefaultBudgets(), ConflateRuntimes: true,
	}
}

const (
	mostAggregates = 1 << 20
	mostOrigins    = 1 << 16

	// MostKeys is an upper limit of MaxKeys for all valid configurations.
	MostKeys = mostAggregates + mostAggregates/4 + (mostOrigins+1)*(1+span.MaxMeasures)

	// MaxBudget is the largest permitted number of distinct values per label.
	MaxBudget = 1 << 20

	// minLabelBytes is enough for some hundred of the longest keys.
	minLabelBytes = 1 << 20
)

// Check returns an error for each invalid value.
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

// LimitTag sets the maximum number of distinct values for a tag key. If LimitTag is called twice for a
// key, the larger limit applies.
func (c *Config) LimitTag(key string, limit int) {
	if c.TagBudgets == nil {
		c.TagBudgets = map[string]int{}
	}
	c.TagBudgets[key] = max(c.TagBudgets[key], limit)
}

// tagBudget returns the maximum number of distinct values for a tag key. list is the label that contains the tag, for
// example the peer tags.
func (c *Config) tagBudget(list span.Label, key string) int {
	limit, isNamed := c.TagBudgets[key]
	if isNamed {
		return limit
	}
	return c.Budgets[list]
}

// originBytes returns an upper estimate of the memory of one origin, a process that sends spans: the texts of
// the origin's fields, its rows for spans and values without labels, and the data kept for the next interval. It excludes
// the origin's keys.
func (c *Config) originBytes() int {
	const overflowRowBytes = 1 << 10 // row for spans without labels
	const fieldCount = 14            // of span.Origin, without process tags and attributes
	textBytes := fieldCount*span.MaxOriginField + span.MaxProcessTags
	if c.Attributes {
		textBytes += span.MaxAttributes
	}
	return textBytes + overflowRowBytes*(1+c.Measures) + int(unsafe.Sizeof(origin{})+unsafe.Sizeof(previousOrigin{}))
}

// MaxKeys returns the maximum number of keys per interval: MaxAggregates, a quarter more for origins with few
// keys, and keys without labels. For each origin, and for the origin that all others share, these are one for spans and
// one for each measure.
func (c *Config) MaxKeys() int {
	unlabeledKeys := (c.MaxOrigins + 1) * (1 + c.Measures)
	return c.MaxAggregates + c.reserve().rows + unlabeledKeys
}

// Bytes returns the maximum memory for the keys of two intervals, of which one is exported while the other is
// current.
func (c *Config) Bytes() int {
	maxOrigins := c.MaxOrigins + 1 // including the common origin
	registryBytes := c.LabelBytes + c.reserve().bytes + maxOrigins*c.originBytes()
	return 2*registryBytes + overflowBytes + 2*filterBytes(c.LabelBytes)
}

// all returns the rows and bytes that all origins share.
func (c *Config) all() usage { return usage{rows: c.MaxAggregates, bytes: c.LabelBytes} }

// reserve returns the rows and bytes that exist in addition to all(), see rowBudget.
func (c *Config) reserve() usage { return c.all().dividedBy(4) }

// Masking selects the resources and endpoints that are replaced by their mask.
type Masking uint8

const (
	MaskOverBudget Masking = iota // only values that would be lost otherwise
	MaskAlways                    // all of them
	MaskNever
)

var maskings = [...]string{MaskOverBudget: "over-budget", MaskAlways: "always", MaskNever: "never"}

// String returns the name used on the command line.
func (m Masking) String() string { return maskings[m] }

// Set sets m to the mode with the given name. It implements pflag.Value.
func (m *Masking) Set(name string) error {
	mode := slices.Index(maskings[:], name)
	if mode < 0 {
		return fmt.Errorf("parse mask-names: %q is not one of over-budget, always and never", name)
	}
	*m = Masking(mode)
	return nil
}

// Type implements pflag.Value; it returns the values shown in the help text.
func (*Masking) Type() string { return "over-budget|always|never" }

// maskedLabels are the labels whose values can be masked.
var maskedLabels = [...]span.Label{span.LabelResource, span.LabelHTTPEndpoint}

func isMaskable(l span.Label) bool { return slices.Contains(maskedLabels[:], l) }
