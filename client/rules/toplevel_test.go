package rules

import "testing"

// TestIDsThatShareAPlace: however the ids of a trace are chosen, finding its spans
// costs about a look each. Each of these lists fell into one place of some table
// that had no secret.
func TestIDsThatShareAPlace(t *testing.T) {
	const spans = 1 << 12
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
		var s Spans
		s.Reset(trace)
		looks := uint64(0)
		for i := range trace {
			home := s.home(trace[i].Span)
			looks += (s.slot(trace[i].Span) - home) & s.mask
		}
		if looks > 8*spans {
			t.Errorf("%s: %d looks beyond the first for %d spans", name, looks, spans)
		}
	}
}
