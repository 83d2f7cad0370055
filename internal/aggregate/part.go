package aggregate

import (
	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/sketch"
)

// Part is what one table has counted of a key in one bucket, or what was merged of it
// in one mapping.
type Part struct {
	Key     registry.KeyID
	Mapping sketch.MappingID
	Bucket  int64 // its start, nanoseconds since the Unix epoch

	table  *Table // or
	merged *Merged
	row    int32
}

// Part is a row's.
func (t *Table) Part(at int) Part {
	r := &t.rows[at]
	return Part{Key: r.key, Bucket: t.oldest + int64(r.bucket)*t.width, table: t, row: int32(at)}
}

func (m *Merged) part(at int) Part {
	row := &m.rows[at]
	return Part{Key: row.key, Mapping: row.mapping, Bucket: row.bucket, merged: m, row: int32(at)}
}

// Counts is all but the sketches.
func (p *Part) Counts() Counts {
	if p.table != nil {
		return p.table.rows[p.row].Counts
	}
	return p.merged.rows[p.row].Counts
}

// ReadOK adds the distribution of the part's spans without an error to a histogram, or to a
// sketch, which holds nothing of another mapping.
func (p *Part) ReadOK(to sketch.Sum) {
	if t := p.table; t != nil {
		t.rows[p.row].ok.Read(&t.pages, to)
	} else {
		p.merged.rows[p.row].ok.read(to, p.merged.mappings[p.Mapping])
	}
}

// ReadErrors does the same for its spans with an error.
func (p *Part) ReadErrors(to sketch.Sum) {
	if t := p.table; t == nil {
		p.merged.rows[p.row].errors.read(to, p.merged.mappings[p.Mapping])
	} else if failed := t.rows[p.row].failed; failed != 0 {
		t.failed[failed-1].durations.Read(&t.pages, to)
	}
}

// ErrorDuration is what of Counts.Duration spans with an error took. Tracers that count
// themselves do not tell it; of theirs it is what the bins of those spans stand for.
func (p *Part) ErrorDuration() float64 {
	if t := p.table; t == nil {
		return p.merged.rows[p.row].errorDuration(p.merged.mappings[p.Mapping])
	} else if failed := t.rows[p.row].failed; failed != 0 {
		return t.failed[failed-1].duration
	}
	return 0
}
