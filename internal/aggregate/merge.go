package aggregate

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Group is what somebody else has counted already, of one key in one bucket. Its
// durations stand in the bins of our own mapping.
type Group struct {
	Key    span.Key // its labels may be parts of a buffer
	Bucket int64    // start of the bucket, nanoseconds since the Unix epoch
	Counts
	OK, Errors Bins
}

// Bins is a distribution.
type Bins struct {
	Zeros uint64
	List  []Bin // lowest first, if that is at hand
}

// Bin is the spans of one bin.
type Bin struct {
	Index uint16 // below LastBin
	Spans uint64
}

// LastBin is the highest bin that a duration can have.
const LastBin = allBins - 1

// mergedBack is how many buckets before a cycle's own it takes groups for: a
// tracer sends a bucket when it is 20 s old, and a minute is more than any waits.
// One more is for the bucket after the cycle's own, see windowBuckets.
const (
	mergedBack    = 6
	mergedBuckets = mergedBack + 2
)

// merged is the table of a cycle that groups are added to. It is no drainer's: a
// publisher that is inside the cycle adds to it under mu, some hundred groups a
// tracer and 10 seconds, so the flush finds it complete as it finds the registry.
// A cycle of an aggregator that merges nothing has none.
type merged struct {
	mu    sync.Mutex
	table *Table
	spans *atomic.Uint64 // of all cycles
}

// CanMerge says whether there is a bucket of that start and width here.
func (c *Cycle) CanMerge(start int64, width uint64) bool {
	t := c.merged.table
	if t == nil || width != uint64(t.width) {
		return false
	}
	offset := start - t.oldest
	return offset >= 0 && offset < mergedBuckets*t.width && offset%t.width == 0
}

// Merge admits the group's key and adds what was counted. CanMerge must have said
// that its bucket is here.
func (c *Cycle) Merge(origin OriginID, g *Group) Collapsed {
	a := c.Admit(origin, &g.Key)
	m := &c.merged
	m.mu.Lock()
	defer m.mu.Unlock()
	m.table.merge(a.ID, g)
	m.table.held.Store(m.table.held.Load() + g.Spans)
	m.spans.Add(g.Spans)
	return a.Collapsed
}

// clear gives up what was merged so far, and says how many spans that were.
func (m *merged) clear() (spans uint64) {
	if m.table == nil {
		return 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	spans = m.table.held.Load()
	m.table.Reset()
	return spans
}

// newMergedTable is like NewTable, with a window that reaches further back.
func newMergedTable(config *Config, sketches *SketchMemory) *Table {
	t := NewTable(config.maxKeys(), config.BucketWidth, sketches)
	t.back, t.index = mergedBack, make([]int32, config.maxKeys()*mergedBuckets)
	return t
}

// merge adds a group to its row, its counts last, when nothing can go wrong any more.
func (t *Table) merge(key KeyID, g *Group) {
	bucket := int((g.Bucket - t.oldest) / t.width)
	at := &t.index[bucket*t.keys+int(key)]
	if *at == 0 {
		*at = t.open(bucket, key)
	}
	row := &t.rows[*at-1]
	row.ok.merge(&t.pages, &g.OK)
	if g.Errors.Zeros > 0 || len(g.Errors.List) > 0 {
		t.errors(row).merge(&t.pages, &g.Errors)
	}
	row.Add(&g.Counts)
}

// merge adds a distribution. The highest bins come first, so that where memory is
// short it is the lowest that collapse, and few of them move.
func (s *store) merge(a *arena, b *Bins) {
	s.zeros += b.Zeros
	for _, bin := range slices.Backward(b.List) {
		s.addMany(a, uint(bin.Index), bin.Spans)
	}
}

// addMany counts many spans of one bin.
func (s *store) addMany(a *arena, bin uint, spans uint64) {
	for ; spans > 0 && s.form == listed; spans-- {
		s.place(a, bin)
	}
	if spans == 0 {
		return
	}
	s.place(a, bin) // from here on there is a counter for it, or for the floor
	spans--
	if floor := uint(s.floor); bin < floor {
		bin = floor
		a.memory.coarsened.Add(spans)
	}
	if s.form == pinched {
		s.raisePinched(a, bin, spans)
		return
	}
	a.raise(s.words[bin/pageBins], bin%pageBins, spans)
}
