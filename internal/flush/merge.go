package flush

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// row is one aggregate beside what decides its place in the payloads.
type row struct {
	*aggregate.Aggregate
	origin aggregate.OriginID
	key    *span.Key
	broken bool // a part of it could not be merged, so it must not be sent
}

// compareRows is the order of rows in the payloads: by origin, then bucket,
// then type, because each of these changes opens a new payload or bucket.
func compareRows(a, b row) int {
	if order := cmp.Or(cmp.Compare(a.origin, b.origin), cmp.Compare(a.Bucket, b.Bucket)); order != 0 {
		return order
	}
	if order := strings.Compare(a.key.Type, b.key.Type); order != 0 {
		return order
	}
	return cmp.Compare(a.Key, b.Key)
}

// merge appends to rows one row for each (key, bucket) of the sealed cycle, in
// payload order. Tables are usually disjoint; a key that several drainers have
// counted is merged into the first one's row, which is ours to write.
func merge(rows []row, sealed *aggregate.Sealed) []row {
	for _, table := range sealed.Tables {
		counted := table.Rows()
		for i := range counted {
			entry := &sealed.Keys[counted[i].Key]
			rows = append(rows, row{Aggregate: &counted[i], origin: entry.Origin, key: &entry.Key})
		}
	}
	slices.SortFunc(rows, compareRows)
	kept := rows[:0]
	for _, r := range rows {
		if n := len(kept); n > 0 && kept[n-1].Key == r.Key && kept[n-1].Bucket == r.Bucket {
			kept[n-1].absorb(r)
			continue
		}
		kept = append(kept, r)
	}
	return kept
}

// absorb adds what another drainer counted of the same key and bucket.
func (r *row) absorb(other row) {
	if err := r.Merge(other.Aggregate); err != nil {
		r.broken = true
	}
}
