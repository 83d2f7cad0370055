package aggregate

import "unsafe"

// The bounds of Config.SketchBytes: a chunk for every table of a few drainers,
// and as many pages as their numbers can name with room to spare.
const (
	minSketchBytes = 1 << 20
	maxSketchBytes = 1 << 30
)

// TableBytes is the most memory that all tables can take with these limits,
// besides what their sketches take from SketchMemory: every key with spans and
// errors in every bucket of the window, counted by every drainer, in both of the
// cycles that can be open. Honest traffic takes a sixth of it or less: a key
// is one drainer's and its spans end in one bucket.
func (c *Config) TableBytes() int {
	rows := (c.MaxAggregates + c.MaxOrigins) * windowBuckets
	row := unsafe.Sizeof(Aggregate{}) + unsafe.Sizeof(store{}) + unsafe.Sizeof(int32(0))
	return 2 * c.Drainers * rows * int(row)
}
