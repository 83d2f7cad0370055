package workload

import (
	"math/rand/v2"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// rotation is a fixed set of keys, used in a fixed order again and again.
type rotation struct {
	keys  []span.Key
	order []uint32 // indices of keys
	next  int
}

// newRotation uses the keys one after the other.
func newRotation(keys []span.Key) *rotation {
	r := &rotation{keys: keys, order: make([]uint32, len(keys))}
	for i := range r.order {
		r.order[i] = uint32(i)
	}
	return r
}

const (
	skewedKeys   = 100
	skewedPeriod = 900 // the shortest in which every key has its exact share
)

// newSkew gives the first key 540 of 900 spans, the next nine 30 each, and one
// to each of the other ninety, shuffled.
func newSkew(rnd *rand.Rand) *rotation {
	r := &rotation{keys: someKeys(skewedKeys), order: make([]uint32, 0, skewedPeriod)}
	for i := range r.keys {
		share := 1
		if i == 0 {
			share = 540
		} else if i < 10 {
			share = 30
		}
		for range share {
			r.order = append(r.order, uint32(i))
		}
	}
	rnd.Shuffle(len(r.order), func(i, j int) { r.order[i], r.order[j] = r.order[j], r.order[i] })
	return r
}

func (r *rotation) all() []span.Key { return r.keys }

// fill makes the roots of traces top-level.
func (r *rotation) fill(batch []Snapshot) {
	for i := range batch {
		index := r.order[r.next]
		if r.next++; r.next == len(r.order) {
			r.next = 0
		}
		key, flags := &r.keys[index], span.Flags(0)
		if key.TraceRoot == span.TraceRootTrue {
			flags = span.TopLevel
		}
		batch[i] = Snapshot{Key: key, Index: int(index), Flags: flags}
	}
}
