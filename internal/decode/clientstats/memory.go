package clientstats

import (
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/sketch"
)

// limits is how much a body may make a Payload hold, by its length: several times what
// a tracer counts in ten seconds.
type limits struct{ groups, tags, bins int }

// The limits for the longest bodies: 8, 4 and 8 MB.
const (
	maxGroups = 1 << 14
	maxTags   = 1 << 18
	maxBins   = 1 << 19
)

func limitsOf(body int) limits {
	return limits{
		groups: min(maxGroups, 64+body/128),
		tags:   min(maxTags, 1<<10+body/16),
		bins:   min(maxBins, 1<<12+body/8),
	}
}

// Bytes is the most memory that a Payload takes for bodies of that length.
func Bytes(body int) int {
	const grown = 1.5 // a slice grows by a quarter, and out of one that is still there
	l := limitsOf(body)
	groups, bins := l.groups*int(unsafe.Sizeof(aggregate.Group{})), l.bins*int(unsafe.Sizeof(sketch.Bin{}))
	tags := 2 * l.tags * int(unsafe.Sizeof("")) // short lists double
	return int(grown*float64(groups+bins)) + tags
}
