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
	at      int32 // the row
	Bucket  int64 // its start, nanoseconds since the Unix epoch
	from    source
}

// source has the rows of parts: a Table, or Merged.
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
