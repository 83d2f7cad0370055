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

// SnapshotBytes is the memory for a snapshot without its fingerprint.
const SnapshotBytes = int(unsafe.Sizeof(span.Snapshot{}))

// Batches are the snapshots of one body by their origins.
type Batches struct {
	all          []batch // up to its capacity with the memory of earlier bodies
	fingerprints []byte  // of all snapshots
	labeller     span.Labeller
}

// Origin is the origin of a batch: a number that the rules give it, and a service.
type Origin struct {
	Number  int
	Service string
}

type batch struct {
	span.Batch
	origin  Origin
	service []byte // of the origin; a copy, as the given one may be in memory that is reused
}

// Reset begins a body, whose spans the labeller makes keys of.
func (b *Batches) Reset(labeller span.Labeller) {
	for i := range b.all {
		b.all[i].Batch = span.Batch{Snapshots: b.all[i].Snapshots}
		b.all[i].origin = Origin{}
	}
	b.all, b.fingerprints, b.labeller = b.all[:0], b.fingerprints[:0], labeller
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

// Add appends a span's snapshot to a batch, with a copy of its fingerprint.
func (b *Batches) Add(number int, fingerprint []byte, s span.Snapshot) {
	s.Fingerprint = uint32(len(b.fingerprints))
	b.fingerprints = append(b.fingerprints, fingerprint...)
	s.FingerprintEnd = uint32(len(b.fingerprints))
	to := &b.all[number]
	to.Snapshots = append(to.Snapshots, s)
}

// FingerprintBytes returns the length of all fingerprints.
func (b *Batches) FingerprintBytes() int { return len(b.fingerprints) }

// Len returns the number of snapshots of a batch.
func (b *Batches) Len(number int) int { return len(b.all[number].Snapshots) }

// Count returns the number of batches.
func (b *Batches) Count() int { return len(b.all) }

// All visits the batches, by number. They are valid until the next Reset.
func (b *Batches) All(yield func(Origin, *span.Batch) bool) {
	for i := range b.all {
		one := &b.all[i]
		one.Fingerprints, one.Labeller = b.fingerprints, b.labeller
		if !yield(one.origin, &one.Batch) {
			return
		}
	}
}

// keptBytes bounds the memory that is kept from one body to the next.
const keptBytes = 4 << 20

// Release releases the batches of the last body, and memory that only a very large body needed.
func (b *Batches) Release() {
	bytes := cap(b.fingerprints)
	for _, one := range b.all[:cap(b.all)] {
		bytes += cap(one.Snapshots)*SnapshotBytes + cap(one.service)
	}
	if b.Reset(nil); bytes > keptBytes {
		*b = Batches{}
	}
}
