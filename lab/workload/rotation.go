package workload

import (
	"math/rand/v2"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// rotation is a fixed set of keys, used repeatedly in a fixed order.
type rotation struct {
	keys  []span.Key
	order []uint32 // indexes of keys
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
	skewedPeriod = 900 // shortest period in which every key has its exact share
)

// newSkew returns a shuffled rotation of 900 spans: the first key has 540, each of the next
// nine has 30, and each of the other ninety has one.
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

// fill marks the roots of traces as top-level.
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
