package flush

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/sketch"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// row is one key's counts in one bucket and mapping, with the aggregates that they
// are the sum of. Usually that is one; a key that several drainers have counted, or
// a tracer too, has more.
type row struct {
	aggregate.Counts
	parts []part
}

func (r *row) key() *span.Key            { return r.parts[0].key }
func (r *row) origin() registry.OriginID { return r.parts[0].origin }
func (r *row) bucket() int64             { return r.parts[0].Bucket }
func (r *row) mapping() sketch.MappingID { return r.parts[0].Mapping }

// part is one aggregate beside what decides its place in the payloads.
type part struct {
	aggregate.Part
	origin registry.OriginID
	key    *span.Key
}

// compareParts is the order of rows in the payloads: by origin, then bucket, then
// mapping, then type, because each of these changes opens a new payload or bucket.
// Equal parts are of one row.
func compareParts(a, b part) int {
	if order := cmp.Or(cmp.Compare(a.origin, b.origin), cmp.Compare(a.Bucket, b.Bucket), cmp.Compare(a.Mapping, b.Mapping)); order != 0 {
		return order
	}
	if order := strings.Compare(a.key.Type, b.key.Type); order != 0 {
		return order
	}
	return cmp.Compare(a.Key, b.Key)
}

// merger makes rows of a sealed cycle. It reads the tables and writes nothing to
// them: counts are added up here, sketches while they are encoded.
type merger struct {
	parts []part
	rows  []row
}

// merge returns one row for each (key, bucket, mapping) of the sealed cycle, in
// payload order. They are valid until forget.
func (m *merger) merge(sealed *aggregate.Sealed) []row {
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
		r := row{parts: m.parts[first:last]}
		for i := range r.parts {
			counts := r.parts[i].Counts()
			r.Add(&counts)
		}
		m.rows = append(m.rows, r)
		first = last
	}
	return m.rows
}

// forget lets go of what the rows point to, which is about to be released, and
// keeps the memory.
func (m *merger) forget() {
	clear(m.parts)
	clear(m.rows)
	m.parts, m.rows = m.parts[:0], m.rows[:0]
}
