package rules

import (
	"math/rand/v2"
	"testing"
)

// Finding the spans of a trace takes about one comparison each, whatever their IDs are. With an index that
// had no random seed, the IDs of each list would share a slot.
func TestIndex_CollidingIDs(t *testing.T) {
	const spans = 1 << 12
	defer func(before [2]uint64) { hashSeed = before }(hashSeed)
	inverse := uint64(1) // of the golden ratio's odd number, modulo 2^64
	for range 6 {
		inverse *= 2 - 0x9e3779b97f4a7c15*inverse
	}
	for name, id := range map[string]func(i uint64) uint64{
		"one after another": func(i uint64) uint64 { return i },
		"high bits only":    func(i uint64) uint64 { return i << 40 },
		"highest bits only": func(i uint64) uint64 { return i << 52 },
		"a known product":   func(i uint64) uint64 { return i * inverse },
		"its high bits":     func(i uint64) uint64 { return i << 40 * inverse },
	} {
		trace := make([]Link, spans)
		for i := range trace {
			trace[i].Span = id(uint64(i) + 1)
		}
		for range 300 {
			hashSeed = [2]uint64{rand.Uint64(), rand.Uint64() | 1}
			if looks := looksFor(trace); looks > 4*spans {
				t.Errorf("%s: with %x %d looks beyond the first for %d spans", name, hashSeed, looks, spans)
			}
		}
	}
}

func looksFor(trace []Link) (looks uint64) {
	var s Spans
	s.Reset(trace)
	for i := range trace {
		home := s.hash(trace[i].Span)
		looks += (s.slot(trace[i].Span) - home) & s.mask
	}
	return looks
}
