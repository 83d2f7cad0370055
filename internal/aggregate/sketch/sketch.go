// Package sketch keeps distributions of durations that are bin for bin the agent's. It knows nothing about
// spans, keys or cycles.
//
// # What it owns
//
//   - Mapping: which durations a bin contains. The agent's is a table; those of tracers that count
//     themselves are part of their sketches.
//   - Grid: the cells that durations are counted in, so that each reader gets exact counts: the agent's
//     bins, or cells that also end at the bounds of Histogram or Classic buckets.
//   - Store: the small, growing form in which one drainer counts one row. It refers to pages of its table's
//     Arena, which takes them from the Memory.
//   - Sketch: the large, flat form in which exporters add up the stores of one key for the agent. Only here
//     are bins collapsed, as by the library.
//   - Histogram: the same for OpenTelemetry, a base-2 exponential histogram of seconds.
//   - Classic: the same for upper bounds chosen by the operator.
//
// # Concurrency
//
// Memory is safe for concurrent use. An Arena and its stores have one writer at a time, the owner of their
// table, and no lock; so have a Sketch, a Histogram and a Classic. A Grid is immutable.
//
// # Limits
//
// All arenas together take at most the bytes given to NewMemory, in chunks of ChunkBytes; a Store has a
// fixed size. Without memory, a store collapses its lowest cells early and counts the spans concerned
// (Memory.Coarsened): no span is lost, and the high percentiles stay exact. A Sketch has memory for every
// bin that a Mapping can have (Mapping.Range), and a Histogram for every duration. A Classic has at most
// MaxBounds.
package sketch

import "math/bits"

// Sketch is a distribution of durations that is bin for bin the agent's. It adds up the stores of
// one key, which can be in the tables of several drainers. It is large and flat, and is reused for
// the next key.
//
// The library collapses bins while it counts: a duration below the 2048 highest bins so far goes
// into the lowest of them. Sketch collapses bins only after everything has been counted. The result
// is the same, because the library moves a duration that it has collapsed early together with the
// others when the highest bin increases. A test compares both, for durations in any order.
//
// Tracers that count collapse their sketches themselves, each by a limit of its own. Bins of other
// mappings than the agent's are sent unchanged.
type Sketch struct {
	zeros  uint64
	counts [sketchBins]uint64
	used   [sketchBins / 64]uint64 // one bit per bin, set if the bin has a count
	words  int                     // number of elements of used that can have bits set
}

// Run is a sequence of neighboring bins in use, with indexes from First up to but excluding End. It
// has no pointers, because exporters write one for every other bin.
type Run struct{ First, End int32 }

// Len returns the number of bins.
func (r Run) Len() int { return int(r.End - r.First) }

// Reset empties the sketch. It clears only those parts that have been used.
func (s *Sketch) Reset() {
	for i, used := range s.used[:s.words] {
		if used != 0 {
			clear(s.counts[64*i : 64*i+64])
		}
	}
	clear(s.used[:s.words])
	s.zeros, s.words = 0, 0
}

// AddZeros counts spans that are too short for any bin.
func (s *Sketch) AddZeros(spans uint64) { s.zeros += spans }

// AddBin counts spans in one bin.
func (s *Sketch) AddBin(bin uint, spans uint64) {
	if spans > 0 {
		s.counts[bin] += spans
		s.used[bin/64] |= 1 << (bin % 64)
		s.words = max(s.words, int(bin/64)+1)
	}
}

// AddBins counts spans that a tracer has counted. All additions until Reset have the same mapping.
func (s *Sketch) AddBins(_ Mapping, bins []Bin) {
	for _, bin := range bins {
		s.AddBin(uint(bin.Index), bin.Spans)
	}
}

// addCells adds the counts of neighboring cells of a grid, the first of which is first.
func (s *Sketch) addCells(g *Grid, first uint, counters []uint32) {
	for i, spans := range counters {
		if spans > 0 {
			s.AddBin(uint(g.bins[first+uint(i)]), uint64(spans))
		}
	}
}

// Zeros returns the number of spans that were too short for any bin.
func (s *Sketch) Zeros() float64 { return float64(s.zeros) }

// Counts returns the number of spans in each bin of a run. It is valid until the sketch changes.
func (s *Sketch) Counts(r Run) []uint64 { return s.counts[r.First:r.End] }

// Runs returns one Run for each sequence of neighboring bins that are not empty, lowest first. If mapping is that of the
// Datadog agent, it first reduces the sketch to the 2048 highest bins, as the agent does: it adds the counts of all lower
// bins to the lowest of these. Runs overwrites the elements of buffer.
func (s *Sketch) Runs(buffer []Run, mapping MappingID) []Run {
	if mapping == agentMappingID {
		s.collapse()
	}
	runs := buffer[:0]
	for i, word := range s.used[:s.words] {
		firstBin := int32(64 * i) // its bit is the lowest one of word
		for word != 0 {
			bitRun := lowestRun(word)
			word &^= bitsOf(bitRun) // clears the bits of this run, so that the next one is the lowest
			run := Run{First: firstBin + bitRun.First, End: firstBin + bitRun.End}
			runs = appendRun(runs, run) // extends the last run if it ends at a word boundary
		}
	}
	return runs
}

// lowestRun returns the lowest sequence of neighboring bits that are set in word. word must not be 0.
func lowestRun(word uint64) Run {
	first := bits.TrailingZeros64(word)
	length := bits.TrailingZeros64(^(word >> first))
	return Run{First: int32(first), End: int32(first + length)}
}

// bitsOf returns a word in which the bits of a run are set.
func bitsOf(r Run) uint64 { return (1<<r.Len() - 1) << r.First }

// appendRun appends a run of bins to runs. If the run begins where the last element of runs ends, it extends that element
// instead.
func appendRun(runs []Run, run Run) []Run {
	last := len(runs) - 1
	if last >= 0 && runs[last].End == run.First {
		runs[last].End = run.End
		return runs
	}
	return append(runs, run)
}

// collapse adds the counts of all bins below the 2048 highest ones to the lowest of these.
func (s *Sketch) collapse() {
	lowest := uint(max(0, s.highest()-maxBins+1))
	collapsed := uint64(0)
	for bin := range lowest {
		collapsed += s.counts[bin]
		s.counts[bin] = 0
		s.used[bin/64] &^= 1 << (bin % 64)
	}
	s.AddBin(lowest, collapsed)
}

// highest returns the highest bin that has a count, or -1 if there is none.
func (s *Sketch) highest() int {
	for i := s.words - 1; i >= 0; i-- {
		if s.used[i] != 0 {
			return 64*i + bits.Len64(s.used[i]) - 1
		}
	}
	return -1
}
