package oteltraces

import (
	"math"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// MaxBatches bounds the origins of one body. Each takes a publisher.
const MaxBatches = 32

// batch is the snapshots of one body that have one origin.
type batch struct {
	origin  *span.Origin
	message []byte // a spans message
	count   int
}

// batches are those of one body, with the memory of earlier ones behind them.
type batches struct{ all []batch }

func (b *batches) reset() {
	for i := range b.all {
		b.all[i].origin = nil
	}
	b.all = b.all[:0]
}

// of is the place of an origin's batch, begun if there is none. It reports false where
// there are too many.
func (b *batches) of(origin *span.Origin) (place int, ok bool) {
	for i := range b.all {
		if b.all[i].origin == origin || *b.all[i].origin == *origin {
			return i, true
		}
	}
	place = len(b.all)
	if place == MaxBatches {
		return 0, false
	}
	if place < cap(b.all) {
		b.all = b.all[:place+1]
	} else {
		b.all = append(b.all, batch{})
	}
	begun := &b.all[place]
	begun.origin, begun.count = origin, 0
	begun.message = wire.BeginSpans(begun.message[:0])
	return place, true
}

func (b *batches) add(place int, key []byte, duration uint64, end int64, flags span.Flags, weight float64) {
	to := &b.all[place]
	to.message = wire.AppendWhole(to.message, key, duration, end, flags, weight)
	to.count++
}

// end finishes all of them.
func (b *batches) end() {
	for i := range b.all {
		wire.EndSpans(b.all[i].message, 0, b.all[i].count)
	}
}

// room is what the batches of this body and of earlier ones take.
func (b *batches) room() (bytes int) {
	for _, one := range b.all[:cap(b.all)] {
		bytes += cap(one.message)
	}
	return bytes
}

// endOf is when a span ended, as a snapshot says it.
func endOf(rec *record) int64 { return int64(min(rec.end, math.MaxInt64)) }
