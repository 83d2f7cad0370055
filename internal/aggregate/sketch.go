package aggregate

import "math/bits"

// Sketch is a distribution of durations as it is sent, bin for bin the agent's.
// It is where the stores of one key, which may stand in several drainers' tables,
// are added up: large, flat, and reused for the next key.
//
// The library collapses while it counts: a duration below the 2048 highest bins
// that it has seen so far goes into the lowest of them. Here nothing is collapsed
// before everything has been counted, and then what lies below the 2048 highest.
// That is the same, for what the library moves early it moves on with the others
// when the highest bin rises, and a test holds both to it in any order.
type Sketch struct {
	zeros  uint64
	used   [allPages]uint64            // a bit for each bin that counted
	counts [allPages * pageBins]uint64 // 0 where the bit is
}

// Bin is one bin in use.
type Bin struct {
	Index int32
	Count float64
}

// Reset empties the sketch, at the cost of what was in it.
func (s *Sketch) Reset() {
	s.zeros = 0
	for i, used := range s.used {
		if used != 0 {
			clear(s.counts[i*pageBins : (i+1)*pageBins])
			s.used[i] = 0
		}
	}
}

// Add counts one span.
func (s *Sketch) Add(nanoseconds uint64) {
	if nanoseconds == 0 {
		s.zeros++
		return
	}
	s.count(binOf(nanoseconds), 1)
}

func (s *Sketch) count(bin uint, spans uint64) {
	if spans > 0 {
		s.counts[bin] += spans
		s.used[bin/pageBins] |= 1 << (bin % pageBins)
	}
}

// Zeros is how many spans were too short for any bin.
func (s *Sketch) Zeros() float64 { return float64(s.zeros) }

// AppendBins appends the bins in use, lowest first, and 2048 apart at most.
func (s *Sketch) AppendBins(to []Bin) []Bin {
	s.collapse()
	for i, used := range s.used {
		counts := (*[pageBins]uint64)(s.counts[i*pageBins:])
		for ; used != 0; used &= used - 1 {
			place := bits.TrailingZeros64(used) % pageBins
			to = append(to, Bin{int32(i*pageBins + place), float64(counts[place])})
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
		s.used[bin/pageBins] &^= 1 << (bin % pageBins)
	}
	s.count(lowest, below)
}

// highest is the highest bin in use, or -1.
func (s *Sketch) highest() int {
	for i := len(s.used) - 1; i >= 0; i-- {
		if s.used[i] != 0 {
			return i*pageBins + bits.Len64(s.used[i]) - 1
		}
	}
	return -1
}
