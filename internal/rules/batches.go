package rules

import (
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// MaxOrigins is the maximum number of batches of one body, except for the batch of the common origin,
// which MaxBatches includes. Each batch needs a publisher.
const (
	MaxOrigins = 32
	MaxBatches = MaxOrigins + 1
)

// SnapshotBytes is the memory for a snapshot without its fingerprint.
const SnapshotBytes = int(unsafe.Sizeof(span.Snapshot{}))

// ValueBytes is the memory for a value of a span.
const ValueBytes = int(unsafe.Sizeof(span.Value{}))

// Batches contains the snapshots of one body, the data of its spans that statistics need, grouped by
// origin.
type Batches struct {
	all          []batch // the elements up to the capacity keep memory of earlier bodies for reuse
	fingerprints []byte  // fingerprints of all snapshots, concatenated
	labeler      span.Labeler
}

// BatchID identifies a batch by the process that sent its spans and by their service.
type BatchID struct {
	Origin  int // number of the origin, the description of the process
	Service string
}

// batch is a batch with its ID.
type batch struct {
	span.Batch
	id      BatchID
	service []byte // copy of id.Service, because the caller may reuse the memory of its string
}

// Reset removes all batches, but keeps their memory for those of the next request body. labeler returns the labels
// under which the spans of that body are counted.
func (b *Batches) Reset(labeler span.Labeler) {
	for i := range b.all {
		batch := &b.all[i]
		batch.Batch = span.Batch{Snapshots: batch.Snapshots, Values: batch.Values} // keeps only their memory
		batch.id = BatchID{}
	}
	b.all = b.all[:0]
	b.fingerprints = b.fingerprints[:0]
	b.labeler = labeler
}

// FindOrAdd returns the number of the batch with the given ID, and adds an empty batch if there is none.
// ok is false if there are already MaxOrigins batches. A batch of CommonOrigin can always be added.
func (b *Batches) FindOrAdd(id BatchID) (number int, ok bool) {
	for i := range b.all {
		if b.all[i].id == id {
			return i, true
		}
	}
	number = len(b.all)
	isFull := number >= MaxOrigins
	if isFull && id.Origin != CommonOrigin {
		return 0, false
	}
	b.addBatch(id)
	return number, true
}

// addBatch appends an empty batch with a copy of id. It reuses the memory of a batch of an earlier request body, if
// there is one.
func (b *Batches) addBatch(id BatchID) {
	number := len(b.all)
	if number < cap(b.all) {
		b.all = b.all[:number+1]
	} else {
		b.all = append(b.all, batch{})
	}
	added := &b.all[number]
	added.service = append(added.service[:0], id.Service...)
	added.id = BatchID{Origin: id.Origin, Service: spantable.View(added.service)}
	added.Snapshots = added.Snapshots[:0]
	added.Values = added.Values[:0]
}

// AddSnapshot appends a snapshot to the batch with the given number, and copies its fingerprint.
func (b *Batches) AddSnapshot(number int, fingerprint []byte, s span.Snapshot) {
	s.Fingerprint = uint32(len(b.fingerprints))
	b.fingerprints = append(b.fingerprints, fingerprint...)
	s.FingerprintEnd = uint32(len(b.fingerprints))
	batch := &b.all[number]
	batch.Snapshots = append(batch.Snapshots, s)
}

// AddValue appends a value of the last snapshot in the batch with the given number.
func (b *Batches) AddValue(number int, v span.Value) {
	batch := &b.all[number]
	v.Snapshot = uint32(len(batch.Snapshots) - 1)
	batch.Values = append(batch.Values, v)
}

// FingerprintBytes returns the total length of all fingerprints.
func (b *Batches) FingerprintBytes() int { return len(b.fingerprints) }

// Len returns the number of snapshots of the batch with this number.
func (b *Batches) Len(number int) int { return len(b.all[number].Snapshots) }

// Count returns the number of batches.
func (b *Batches) Count() int { return len(b.all) }

// All iterates over the batches in the order of their numbers, and yields each with its ID. IDs and
// batches are valid until the next Reset.
func (b *Batches) All(yield func(BatchID, *span.Batch) bool) {
	for i := range b.all {
		batch := &b.all[i]
		batch.Fingerprints = b.fingerprints // complete only now, because appending moves them
		batch.Labeler = b.labeler
		if !yield(batch.id, &batch.Batch) {
			return
		}
	}
}

// keptBytes is the limit on memory that is kept for the next body.
const keptBytes = 4 << 20

// Release removes all batches, and frees their memory if it is larger than keptBytes.
func (b *Batches) Release() {
	bytes := cap(b.fingerprints)
	for _, batch := range b.all[:cap(b.all)] {
		bytes += cap(batch.Snapshots)*SnapshotBytes + cap(batch.Values)*ValueBytes + cap(batch.service)
	}
	b.Reset(nil)
	if bytes > keptBytes {
		*b = Batches{}
	}
}
