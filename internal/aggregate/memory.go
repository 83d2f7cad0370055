package aggregate

import (
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/memory"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// The bounds of Config.SketchBytes: a chunk for every table of a few drainers,
// and as many pages as their numbers can name with room to spare.
const (
	minSketchBytes = 1 << 20
	maxSketchBytes = 1 << 30
)

// originBytes is about what a registry holds for an origin, beside its keys: its
// longest fields, and its overflow row.
const originBytes = 14*span.MaxOriginField + span.MaxProcessTags + 1<<10

// spare is how much memory for keys a registry keeps from one interval to the next.
func (c *Config) spare() int { return c.LabelBytes / 8 }

// Memory is the most that the aggregates may come to use: what their limits add
// up to.
func (c *Config) Memory() []memory.Part {
	slot := int(unsafe.Sizeof(Slot(0))) + 8 // with its word of the sequence
	registries := 2 * (c.LabelBytes + c.reserve().bytes + c.spare() + c.MaxOrigins*originBytes)
	return []memory.Part{
		{Name: "rings", Bytes: int64(c.Drainers * c.RingSlots * slot), Flag: "ring-slots"},
		{Name: "tables", Bytes: int64(c.TableBytes()), Flag: "max-aggregates"},
		{Name: "sketches", Bytes: int64(c.SketchBytes), Flag: "sketch-bytes"},
		{Name: "labels", Bytes: int64(registries), Flag: "label-bytes"},
	}
}

// TableBytes is the most memory that all tables can take with these limits,
// besides what their sketches take from SketchMemory: every key with spans, errors and
// weights in every bucket of the window, counted by every drainer, in both of the
// cycles that can be open; and where groups are merged, all that they may take. Honest
// traffic takes a sixth of it or less: a key
// is one drainer's and its spans end in one bucket.
func (c *Config) TableBytes() int {
	row := unsafe.Sizeof(Aggregate{}) + 2*unsafe.Sizeof(store{}) + unsafe.Sizeof(Counts{}) + unsafe.Sizeof(uint32(0))
	bytes := c.Drainers * windowBuckets * c.maxKeys() * int(row)
	if c.Merge {
		bytes += c.mergedBytes()
	}
	return 2 * bytes
}

// mergedBytes is the same of the groups that one cycle merges: its rows, their places
// in a table that has just grown, what links their pages, and counters that wrapped.
func (c *Config) mergedBytes() int {
	row := unsafe.Sizeof(mergedRow{}) + 4*placeBytes
	links := c.SketchBytes / mergedShare / chunkBytes * chunkPages * int(unsafe.Sizeof(link{}))
	return mergedBuckets*c.maxKeys()*int(row) + links + maxWraps*wrapBytes
}
