package totals

import (
	"cmp"
	"slices"
)

// Said is what one payload says: of some series, how many spans each had when the payload
// was made.
type Said struct{ all []saying }

type saying struct {
	series *Series
	spans  uint64
}

// Add adds a series with what it has now.
func (s *Said) Add(series *Series) { s.all = append(s.all, saying{series, series.Spans}) }

// Arrive notes that the reader has all of it, and returns the spans that it did not have
// before.
func (s *Said) Arrive() (spans uint64) {
	for i := range s.all {
		spans += s.all[i].arrive()
	}
	return spans
}

// Most is how many spans the reader lacks at most, if it has all but so many points.
func (s *Said) Most(points uint64) (spans uint64) {
	missing := make([]uint64, len(s.all))
	for i := range s.all {
		missing[i] = s.all[i].missing()
	}
	slices.SortFunc(missing, func(a, b uint64) int { return cmp.Compare(b, a) })
	for _, n := range missing[:min(points, uint64(len(missing)))] {
		spans += n
	}
	return spans
}

// arrive raises what has arrived of the series, and never lowers it: whoever raises it
// counts the difference, and nobody else does.
func (s *saying) arrive() uint64 {
	for {
		before := s.series.arrived.Load()
		if before >= s.spans {
			return 0
		}
		if s.series.arrived.CompareAndSwap(before, s.spans) {
			return s.spans - before
		}
	}
}

func (s *saying) missing() uint64 {
	arrived := s.series.arrived.Load()
	return s.spans - min(arrived, s.spans)
}
