package aggregate

import (
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/memory"
)

// Memory is the most that the aggregates may come to use: what their limits add
// up to.
func (c *Config) Memory() []memory.Part {
	slot := int(unsafe.Sizeof(Slot{})) + 8 // with its word of the sequence
	return []memory.Part{
		{Name: "rings", Bytes: int64(c.Drainers * c.RingSlots * slot), Flag: "ring-slots"},
		{Name: "tables", Bytes: int64(c.TableBytes()), Flag: "max-aggregates"},
		{Name: "sketches", Bytes: int64(c.SketchBytes), Flag: "sketch-bytes"},
		{Name: "labels", Bytes: int64(c.Config.Bytes()), Flag: "label-bytes"},
	}
}

// TableBytes is the most memory that all tables can take with these limits, besides what
// their sketches take from sketch.Memory: every key with spans and errors in every bucket
// of the window, counted by every drainer, in both of the cycles that have memory. Real
// traffic takes a sixth of it or less: a key is one drainer's, and its spans end in one
// bucket.
func (c *Config) TableBytes() int {
	each := unsafe.Sizeof(row{}) + unsafe.Sizeof(failed{}) + unsafe.Sizeof(uint32(0))
	return 2 * c.Drainers * windowBuckets * c.MaxKeys() * int(each)
}
