package flush

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/sketch"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Row has one key's counts in one bucket and mapping: the sum of the aggregates that are its parts. Usually
// there is one; a key that several drainers have counted, or a tracer too, has more.
type Row struct {
	aggregate.Counts
	parts []part
}

// Key is the key of all parts.
func (r *Row) Key() *span.Key { return r.parts[0].key }

// KeyID is the number of the key in the cycle.
func (r *Row) KeyID() registry.KeyID { return r.parts[0].Key }

// Origin is the index of the key's origin in Sealed.Origins.
func (r *Row) Origin() registry.OriginID { return r.parts[0].origin }

// Bucket is when the bucket begins, in nanoseconds since the Unix epoch.
func (r *Row) Bucket() int64 { return r.parts[0].Bucket }

// Mapping is the mapping of its distributions, an index of Sealed.Mappings.
func (r *Row) Mapping() sketch.MappingID { return r.parts[0].Mapping }

// ReadOK adds the distribution of the spans without an error to a histogram, or to a sketch of the same
// mapping.
func (r *Row) ReadOK(to sketch.Sum) {
	for i := range r.parts {
		r.parts[i].ReadOK(to)
	}
}

// ReadErrors does the same for the spans with an error.
func (r *Row) ReadErrors(to sketch.Sum) {
	for i := range r.parts {
		r.parts[i].ReadErrors(to)
	}
}

// ErrorDuration is the part of Duration that spans with an error took.
func (r *Row) ErrorDuration() (nanoseconds float64) {
	for i := range r.parts {
		nanoseconds += r.parts[i].ErrorDuration()
	}
	return nanoseconds
}

// part is one aggregate with what decides its position among the rows.
type part struct {
	aggregate.Part
	origin registry.OriginID
	key    *span.Key
}

// compareParts is the order of rows: by origin, then bucket, mapping and type, because a change of any of
// these begins a new payload, or a bucket of one. Equal parts belong to one row.
func compareParts(a, b part) int {
	order := cmp.Or(
		cmp.Compare(a.origin, b.origin),
		cmp.Compare(a.Bucket, b.Bucket), cmp.Compare(a.Mapping, b.Mapping),
	)
	if order != 0 {
		return order
	}
	return cmp.Or(strings.Compare(a.key.Type, b.key.Type), cmp.Compare(a.Key, b.Key))
}

// Merger makes rows of a sealed cycle. It only reads the tables: counts are added up here, sketches while
// they are encoded. Its memory is reused from cycle to cycle; it has one user at a time.
type Merger struct {
	parts []part
	rows  []Row
}

// Merge returns one row for each (key, bucket, mapping) of the sealed cycle, sorted by origin, bucket,
// mapping, type and key. They are valid until Forget.
func (m *Merger) Merge(sealed *aggregate.Sealed) []Row {
	for counted := range sealed.Parts {
		entry := &sealed.Keys[counted.Key]
		m.parts = append(m.parts, part{Part: counted, origin: entry.Origin, key: &entry.Key})
	}
	slices.SortFunc(m.parts, compareParts)
	for first := 0; first < len(m.parts); {
		last := first + 1
		for last < len(m.parts) && compareParts(m.parts[first], m.parts[last]) == 0 {
			last++
		}
		r := Row{parts: m.parts[first:last]}
		for i := range r.parts {
			counts := r.parts[i].Counts()
			r.Add(&counts)
		}
		m.rows = append(m.rows, r)
		first = last
	}
	return m.rows
}

// Forget drops the rows, whose cycle is about to be released, and keeps their memory.
func (m *Merger) Forget() {
	clear(m.parts)
	clear(m.rows)
	m.parts, m.rows = m.parts[:0], m.rows[:0]
}

// Whole rounds a weighted count, for destinations that take integers: up with a probability of its
// fraction, so that the mean over many payloads is exact. A count that the destination's type cannot hold
// becomes the largest one, because wrapping around would make it small.
func Whole(f float64, most uint64) uint64 {
	switch {
	case !(f > 0): // also NaN
		return 0
	case f >= float64(most):
		return most
	}
	n := uint64(f)
	if fraction := f - float64(n); fraction > 0 && rand.Float64() < fraction {
		n++
	}
	return n
}
