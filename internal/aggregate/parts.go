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
	at      int32 // of the row
	Bucket  int64 // its start, nanoseconds since the Unix epoch
	from    source
}

// source is where a part's counters and sketches are.
type source interface {
	counts(at int) Counts
	readOK(at int, to *sketch.Sketch)
	readErrors(at int, to *sketch.Sketch)
}

// Counts is all but the sketches.
func (p *Part) Counts() Counts { return p.from.counts(int(p.at)) }

// ReadOK adds the distribution of the part's spans without an error to a sketch, which
// holds nothing of another mapping.
func (p *Part) ReadOK(to *sketch.Sketch) { p.from.readOK(int(p.at), to) }

// ReadErrors does the same for its spans with an error.
func (p *Part) ReadErrors(to *sketch.Sketch) { p.from.readErrors(int(p.at), to) }

// Parts visits all that was counted.
func (s *Sealed) Parts(yield func(Part) bool) {
	for _, table := range s.Tables {
		for i := range table.rows {
			if !yield(table.Part(i)) {
				return
			}
		}
	}
	if s.Merged == nil {
		return
	}
	for i := range s.Merged.rows {
		row := &s.Merged.rows[i]
		if !yield(Part{Key: row.key, Mapping: row.mapping, at: int32(i), Bucket: row.bucket, from: s.Merged}) {
			return
		}
	}
}

// Mappings are those of the parts, by number.
func (s *Sealed) Mappings() []sketch.Mapping {
	if s.Merged == nil {
		return []sketch.Mapping{sketch.OwnMapping}
	}
	return s.Merged.mappings
}

func (m *Merged) counts(at int) Counts { return m.rows[at].Counts }

func (m *Merged) readOK(at int, to *sketch.Sketch) { m.rows[at].ok.read(to) }

func (m *Merged) readErrors(at int, to *sketch.Sketch) { m.rows[at].errors.read(to) }
