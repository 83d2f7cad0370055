package flush

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// row is one key's counts in one bucket, with the aggregates that they are the
// sum of. Usually that is one; a key that several drainers have counted has more.
type row struct {
	aggregate.Counts
	parts []part
}

func (r *row) key() *span.Key             { return r.parts[0].key }
func (r *row) origin() aggregate.OriginID { return r.parts[0].origin }
func (r *row) bucket() int64              { return r.parts[0].Bucket }

// part is one aggregate beside what decides its place in the payloads.
type part struct {
	*aggregate.Aggregate
	table  *aggregate.Table
	origin aggregate.OriginID
	key    *span.Key
}

// compareParts is the order of rows in the payloads: by origin, then bucket,
// then type, because each of these changes opens a new payload or bucket.
func compareParts(a, b part) int {
	if order := cmp.Or(cmp.Compare(a.origin, b.origin), cmp.Compare(a.Bucket, b.Bucket)); order != 0 {
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

// merge returns one row for each (key, bucket) of the sealed cycle, in payload
// order. They are valid until forget.
func (m *merger) merge(sealed *aggregate.Sealed) []row {
	for _, table := range sealed.Tables {
		counted := table.Rows()
		for i := range counted {
			entry := &sealed.Keys[counted[i].Key]
			m.parts = append(m.parts, part{Aggregate: &counted[i], table: table, origin: entry.Origin, key: &entry.Key})
		}
	}
	slices.SortFunc(m.parts, compareParts)
	for first := 0; first < len(m.parts); {
		last := first + 1
		for last < len(m.parts) && m.parts[last].Key == m.parts[first].Key && m.parts[last].Bucket == m.parts[first].Bucket {
			last++
		}
		r := row{parts: m.parts[first:last]}
		for i := range r.parts {
			r.Add(&r.parts[i].Counts)
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
