package workload

import (
	"math/rand/v2"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// spreadLength is prime, so that it shares no period with any number of keys:
// every key meets every duration.
const spreadLength = 16381

// spread is durations and flags, drawn once and then read in a circle.
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

// ordinary is the span of a service that does its work. The kind of the span
// says whether it is top-level too; see rotation.
func ordinary(rnd *rand.Rand) facts {
	f := facts{duration: uint64(float64(time.Millisecond) + rnd.ExpFloat64()*float64(20*time.Millisecond))}
	if rnd.IntN(20) == 0 {
		f.flags |= span.Error
	}
	return f
}

// hostile spreads durations over as many sketch bins as there are.
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
