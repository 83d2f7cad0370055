package aggregate

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/sketch"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Group is what somebody else has counted already, of one key in one bucket.
type Group struct {
	Key     span.Key       // its labels may be parts of a buffer
	Bucket  int64          // as its tracer began it, nanoseconds since the Unix epoch
	Mapping sketch.Mapping // of its bins
	Counts
	OK, Errors sketch.Bins
}

// Merged is the groups of one cycle that tracers have counted: rows found by key,
// bucket and mapping. It is no drainer's: a publisher that is inside the cycle adds
// to it under mu, some hundred groups a tracer and 10 seconds, and the flush finds
// it complete, as it finds the registry.
type Merged struct {
	mu         sync.Mutex
	width      int64 // of a bucket
	oldest     int64 // start of the oldest bucket of ours that is taken
	maxRows    int
	numbers    map[mergedKey]int // of rows
	rows       []mergedRow
	mappings   []sketch.Mapping // by MappingID
	memory     *sketch.Memory   // is charged for the bins of all rows
	bins       int
	charged    int // chunks of memory
	maxCharged int

	held  atomic.Uint64  // spans in the rows, for the books
	spans *atomic.Uint64 // of all cycles
}

type mergedKey struct {
	key     registry.KeyID
	mapping sketch.MappingID
	bucket  int64
}

type mergedRow struct {
	mergedKey
	Counts
	ok, errors distribution
}

// distribution is the spans of a merged row by bin. Unlike a drainer's store it never
// collapses: it may be of any mapping.
type distribution struct {
	zeros uint64
	bins  map[uint16]uint64
}

// mergedBuckets is how many rows a key has room for, all keys together: it has one
// for each bucket and mapping that it is sent in.
const mergedBuckets = 8

// mergedShare is the part of all sketch memory that the groups of one cycle can take,
// so that two leave half of it to what the drainers count.
const mergedShare = 4

// mergedBinBytes is what a bin costs in a map that has just grown.
const mergedBinBytes = 48

func newMerged(config *Config, memory *sketch.Memory, spans *atomic.Uint64) *Merged {
	return &Merged{
		width: int64(config.BucketWidth), maxRows: config.MaxKeys() * mergedBuckets, numbers: map[mergedKey]int{},
		mappings: []sketch.Mapping{sketch.OwnMapping}, memory: memory,
		maxCharged: config.SketchBytes / mergedShare / sketch.ChunkBytes, spans: spans,
	}
}

// Why groups are not merged.
var (
	ErrOtherTime    = errors.New("merge groups: their time is none that can be kept exactly")
	ErrMappings     = errors.New("merge groups: the cycle holds sketches of too many mappings already")
	ErrNoMergedRoom = errors.New("merge groups: the cycle has no room for them")
)

// Merging is a publisher's turn to add groups to the cycle that it is inside.
type Merging struct {
	cycle *Cycle
	*Merged
}

// Merging waits for its turn, which lasts until End.
func (c *Cycle) Merging() Merging {
	c.merged.mu.Lock()
	return Merging{c, c.merged}
}

// End ends the turn.
func (m Merging) End() { m.mu.Unlock() }

// Fits says why not all of these groups can be added, or sets aside what they need.
func (m Merging) Fits(groups []Group, width uint64, now time.Time) error {
	known := len(m.mappings)
	err := m.fits(groups, width, now)
	if err != nil {
		m.mappings = m.mappings[:known]
	}
	return err
}

func (m Merging) fits(groups []Group, width uint64, now time.Time) error {
	if width != uint64(m.width) {
		return ErrOtherTime
	}
	bins := m.bins
	for i := range groups {
		g := &groups[i]
		if _, ok := m.bucketOf(g.Bucket, now.UnixNano()); !ok {
			return ErrOtherTime
		}
		if _, ok := m.number(g.Mapping); !ok {
			return ErrMappings
		}
		bins += len(g.OK.List) + len(g.Errors.List)
	}
	if len(m.rows)+len(groups) > m.maxRows || !m.charge(bins) {
		return ErrNoMergedRoom
	}
	return nil
}

// charge charges the memory for so many bins in all.
func (m *Merged) charge(bins int) bool {
	chunks := (bins*mergedBinBytes + sketch.ChunkBytes - 1) / sketch.ChunkBytes
	if chunks <= m.charged {
		return true
	}
	if chunks > m.maxCharged || !m.memory.Reserve(chunks-m.charged) {
		return false
	}
	m.charged = chunks
	return true
}

// Add admits the key of a group that fits and adds what was counted.
func (m Merging) Add(origin registry.OriginID, g *Group) registry.Collapsed {
	admission := m.cycle.Admit(origin, &g.Key)
	mapping, _ := m.number(g.Mapping)
	bucket, _ := m.bucketOf(g.Bucket, g.Bucket)
	row := m.row(mergedKey{admission.ID, mapping, bucket})
	m.bins += row.ok.add(&g.OK) + row.errors.add(&g.Errors)
	row.Add(&g.Counts) // last: up to here it can go wrong, and the books say that it did
	m.held.Add(g.Spans)
	m.spans.Add(g.Spans)
	return admission.Collapsed
}

// number is a mapping's, which it may get now.
func (m *Merged) number(mapping sketch.Mapping) (id sketch.MappingID, ok bool) {
	for id, known := range m.mappings {
		if known == mapping {
			return sketch.MappingID(id), true
		}
	}
	if len(m.mappings) == sketch.MaxMappings {
		return 0, false
	}
	m.mappings = append(m.mappings, mapping)
	return sketch.MappingID(len(m.mappings) - 1), true
}

// row finds a row, or begins it.
func (m *Merged) row(key mergedKey) *mergedRow {
	number, known := m.numbers[key]
	if !known {
		number = len(m.rows)
		m.numbers[key] = number
		m.rows = append(m.rows, mergedRow{mergedKey: key})
	}
	return &m.rows[number]
}

// add adds bins to the distribution and returns how many it did not have.
func (d *distribution) add(b *sketch.Bins) (more int) {
	d.zeros += b.Zeros
	before := len(d.bins)
	if d.bins == nil && len(b.List) > 0 {
		d.bins = make(map[uint16]uint64, len(b.List))
	}
	for _, bin := range b.List {
		d.bins[bin.Index] += bin.Spans
	}
	return len(d.bins) - before
}

// read adds the distribution to a sketch.
func (d *distribution) read(into *sketch.Sketch) {
	into.AddZeros(d.zeros)
	for bin, spans := range d.bins {
		into.AddBin(uint(bin), spans)
	}
}

// open makes it that of a cycle that was opened then.
func (m *Merged) open(opened time.Time) {
	now := opened.UnixNano()
	m.oldest = now - now%m.width - mergedBack*m.width
}

// clear gives up what was merged so far, and says how many spans that were.
func (m *Merged) clear() (spans uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	spans = m.held.Load()
	m.reset()
	return spans
}

// reset gives all memory back.
func (m *Merged) reset() {
	m.numbers, m.rows, m.mappings = map[mergedKey]int{}, nil, m.mappings[:1]
	m.memory.Release(m.charged)
	m.bins, m.charged = 0, 0
	m.held.Store(0)
}
