// Package sketch keeps distributions of durations, bin for bin those of the agent. It
// knows nothing of spans, keys or cycles.
//
// # What it owns
//
//   - Mapping: which durations a bin holds. The agent's own is a table; those of tracers
//     that count themselves come with their sketches.
//   - Grid: into which cells durations are counted, so that whoever reads them has exact
//     counts: the agent's bins, or cells that end at the bounds of a Histogram too, and of classic buckets.
//   - Store: the small, growing form in which one drainer counts one aggregate. It refers
//     to pages of its table's Arena, which takes them from the one Memory.
//   - Sketch: the large, flat form in which the flush adds up the stores of one key for the
//     agent, and whose bins it reads. Only here is anything collapsed, as the library does it.
//   - Histogram: the same for OpenTelemetry, a base-2 exponential histogram of seconds.
//   - Classic: the same by upper bounds that an operator chose.
//
// # Threading
//
// Memory may be used by anybody. An Arena and its stores have one writer at a time, the
// owner of their table, and no lock; so have a Sketch, a Histogram and a Classic. A Grid never changes.
//
// # Bounds
//
// All arenas together take at most the bytes that NewMemory was given, in chunks of
// ChunkBytes; a store itself has a fixed size. Without memory, a store collapses its
// lowest cells early and counts that (Memory.Coarsened): no span is lost, and the high
// percentiles stay exact. A Sketch has room for every bin that a Mapping may have
// (Mapping.Range), and a Histogram for every duration. A Classic has at most MaxBounds.
package sketch

import "math/bits"

// Sketch is a distribution of durations as the agent has it, bin for bin. The
// stores of one key, which may stand in several drainers' tables, are added up in it. It
// is large and flat, and reused for the next key.
//
// The library collapses while it counts: a duration below the 2048 highest bins that it has
// seen so far goes into the lowest of them. Here nothing is collapsed before everything has
// been counted, and then the bins below the 2048 highest are. The result is the same, because
// the library moves a duration that it has collapsed early on with the others when the highest
// bin rises. A test compares both, in any order of durations.
//
// Tracers that count themselves collapse their sketches themselves, each by its own limit.
// Every bin of a mapping that is not the agent's is sent as it came.
type Sketch struct {
	zeros  uint64
	counts [sketchBins]uint64
	used   [sketchBins / 64]uint64 // a bit for each bin that has a count
	words  int                     // of used, from the lowest on, that may have a bit
}

// Run is some neighbouring bins of a sketch, all in use: from the index First up to End.
// It holds no pointer, for the flush writes one for every other bin.
type Run struct{ First, End int32 }

// Len is the number of bins.
func (r Run) Len() int { return int(r.End - r.First) }

// Reset empties the sketch, at the cost of what was in it.
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

// AddBin counts spans of one bin.
func (s *Sketch) AddBin(bin uint, spans uint64) {
	if spans > 0 {
		s.counts[bin] += spans
		s.used[bin/64] |= 1 << (bin % 64)
		s.words = max(s.words, int(bin/64)+1)
	}
}

// AddBins counts spans that a tracer has counted. All that is added is of one mapping.
func (s *Sketch) AddBins(_ Mapping, bins []Bin) {
	for _, bin := range bins {
		s.AddBin(uint(bin.Index), bin.Spans)
	}
}

func (s *Sketch) addCells(g *Grid, first uint, counters []uint32) {
	for i, spans := range counters {
		if spans > 0 {
			s.AddBin(uint(g.bins[first+uint(i)]), uint64(spans))
		}
	}
}

// Zeros is how many spans were too short for any bin.
func (s *Sketch) Zeros() float64 { return float64(s.zeros) }

// Counts is the spans in each bin of a run, valid until the sketch changes.
func (s *Sketch) Counts(r Run) []uint64 { return s.counts[r.First:r.End] }

// AppendRuns appends the runs of bins in use, lowest first; of the agent's own mapping,
// 2048 bins apart at most.
func (s *Sketch) AppendRuns(to []Run, mapping MappingID) []Run {
	if mapping == 0 {
		s.collapse()
	}
	start := len(to)
	for i, used := range s.used[:s.words] {
		for used != 0 {
			first := bits.TrailingZeros64(used)
			length := bits.TrailingZeros64(^(used >> first))
			used &^= (1<<length - 1) << first
			run := Run{int32(64*i + first), int32(64*i + first + length)}
			if n := len(to); n > start && to[n-1].End == run.First { // it goes on from the word before
				to[n-1].End = run.End
			} else {
				to = append(to, run)
			}
		}
	}
	return to
}

// collapse puts what lies below the 2048 highest bins into the lowest of them.
func (s *Sketch) collapse() {
	lowest := uint(max(0, s.highest()-maxBins+1))
	below := uint64(0)
	for bin := range lowest {
		below += s.counts[bin]
		s.counts[bin] = 0
		s.used[bin/64] &^= 1 << (bin % 64)
	}
	s.AddBin(lowest, below)
}

// highest is the highest bin in use, or -1.
func (s *Sketch) highest() int {
	for i := s.words - 1; i >= 0; i-- {
		if s.used[i] != 0 {
			return 64*i + bits.Len64(s.used[i]) - 1
		}
	}
	return -1
}
