package workload

import (
	"math/rand/v2"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// spreadLength is prime, so that its period has no common factor with any number of keys: every
// key is combined with every duration.
const spreadLength = 16381

// spread holds durations and flags, generated once and then used in rotation.
type spread struct {
	facts [spreadLength]facts
	next  int
}

type facts struct {
	duration uint64
	flags    span.Flags
}

func newSpread(rnd *rand.Rand, draw func(*rand.Rand) facts) *spread {
	s := &spread{}
	for i := range s.facts {
		s.facts[i] = draw(rnd)
	}
	return s
}

// ordinary returns a span of a typical service. Whether it is top-level depends on its kind;
// see rotation.
func ordinary(rnd *rand.Rand) facts {
	f := facts{duration: uint64(float64(time.Millisecond) + rnd.ExpFloat64()*float64(20*time.Millisecond))}
	if rnd.IntN(20) == 0 {
		f.flags |= span.Error
	}
	return f
}

// hostile returns durations that use as many sketch bins as possible.
func hostile(rnd *rand.Rand) facts {
	f := facts{duration: 1 + rnd.Uint64N(1<<30)}
	if rnd.IntN(8) == 0 {
		f.flags |= span.Error
	}
	if rnd.IntN(4) == 0 {
		f.flags |= span.TopLevel
	}
	return f
}

func (s *spread) fill(batch []Snapshot) {
	for i := range batch {
		f := &s.facts[s.next]
		batch[i].Duration = f.duration
		batch[i].Flags |= f.flags
		if s.next++; s.next == spreadLength {
			s.next = 0
		}
	}
}
