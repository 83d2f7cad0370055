package rules

import (
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// MaxOrigins bounds the origins of one body, beside the common one. MaxBatches counts that too. Each
// takes a publisher.
const (
	MaxOrigins = 32
	MaxBatches = MaxOrigins + 1
)

// SnapshotBytes is what a snapshot takes beside its key.
const SnapshotBytes = int(unsafe.Sizeof(span.Snapshot{}))

// Batches are the snapshots of one body by their origins.
type Batches struct {
	all  []batch // behind its length with the memory of earlier ones
	keys []byte  // of all snapshots
}

// Origin is that of a batch: a number that the rules give it, and a service.
type Origin struct {
	Number  int
	Service string
}

type batch struct {
	span.Batch
	origin  Origin
	service []byte // of the origin, since the one that is given may lie in memory that is used again
}

// Reset forgets all of them.
func (b *Batches) Reset() {
	for i := range b.all {
		b.all[i].Keys, b.all[i].origin = nil, Origin{}
	}
	b.all, b.keys = b.all[:0], b.keys[:0]
}

// Of returns the number of an origin's batch, and begins the batch if there is none. It reports false if
// there are too many; the common origin always has one.
func (b *Batches) Of(origin Origin) (number int, ok bool) {
	for i := range b.all {
		if b.all[i].origin == origin {
			return i, true
		}
	}
	number = len(b.all)
	if number >= MaxOrigins && origin.Number != Common {
		return 0, false
	}
	if number < cap(b.all) {
		b.all = b.all[:number+1]
	} else {
		b.all = append(b.all, batch{})
	}
	begun := &b.all[number]
	begun.service = append(begun.service[:0], origin.Service...)
	begun.origin = Origin{origin.Number, spantable.View(begun.service)}
	begun.Snapshots = begun.Snapshots[:0]
	return number, true
}

// Add appends a span's snapshot to a batch, with a copy of its key.
func (b *Batches) Add(number int, key []byte, s span.Snapshot) {
	s.Key = uint32(len(b.keys))
	b.keys = append(b.keys, key...)
	s.KeyEnd = uint32(len(b.keys))
	to := &b.all[number]
	to.Snapshots = append(to.Snapshots, s)
}

// KeyBytes is how many bytes the keys of all snapshots have.
func (b *Batches) KeyBytes() int { return len(b.keys) }

// Len is how many snapshots a batch has.
func (b *Batches) Len(number int) int { return len(b.all[number].Snapshots) }

// Count is how many batches there are.
func (b *Batches) Count() int { return len(b.all) }

// All visits the batches, by number. They are good until the next Reset.
func (b *Batches) All(yield func(Origin, *span.Batch) bool) {
	for i := range b.all {
		one := &b.all[i]
		one.Keys = b.keys
		if !yield(one.origin, &one.Batch) {
			return
		}
	}
}

// keptBytes bounds the memory that is kept from one body to the next.
const keptBytes = 4 << 20

// Release lets go of the last body's batches, and of the memory that only a very large one needed.
func (b *Batches) Release() {
	bytes := cap(b.keys)
	for _, one := range b.all[:cap(b.all)] {
		bytes += cap(one.Snapshots)*SnapshotBytes + cap(one.service)
	}
	if b.Reset(); bytes > keptBytes {
		*b = Batches{}
	}
}
