package aggregate

import (
	"context"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// KeyID is the dense number of a key in one cycle. OriginID is the same of an
// origin. Neither means anything in another cycle.
type (
	KeyID    uint32
	OriginID uint32
)

// KeyEntry is what a KeyID stands for.
type KeyEntry struct {
	Origin OriginID
	Key    span.Key
}

// Aggregate is one key's counters and sketches in one bucket.
//
// The counters are float64, as the agent's are: exact for whole numbers up to
// 2^53, fractional where a weight is, and unable to wrap around.
type Aggregate struct {
	Key      KeyID
	Bucket   int64   // start of the bucket, nanoseconds since the Unix epoch
	Spans    uint64  // snapshots, unweighted: the unit of the books
	Hits     float64 // weighted, as are the three below
	Errors   float64
	TopLevel float64
	Duration float64 // nanoseconds, not truncated
	OK       *Sketch
	Err      *Sketch // nil until the first error

	spare *Sketch // an empty error sketch of an earlier cycle, kept for its memory
}

// Add counts one snapshot.
func (a *Aggregate) Add(duration uint64, flags span.Flags, weight float64) {
	a.Spans++
	a.Hits += weight
	a.Duration += float64(duration) * weight
	if flags&span.TopLevel != 0 {
		a.TopLevel += weight
	}
	if flags&span.Error == 0 {
		a.OK.Add(duration)
		return
	}
	a.Errors += weight
	a.errors().Add(duration)
}

// Merge adds what another drainer counted of the same key and bucket.
func (a *Aggregate) Merge(other *Aggregate) error {
	a.Spans += other.Spans
	a.Hits += other.Hits
	a.Errors += other.Errors
	a.TopLevel += other.TopLevel
	a.Duration += other.Duration
	if other.Err != nil {
		if err := a.errors().Merge(other.Err); err != nil {
			return err
		}
	}
	return a.OK.Merge(other.OK)
}

// errors is the error sketch, there from the first error on.
func (a *Aggregate) errors() *Sketch {
	if a.Err == nil {
		a.Err, a.spare = a.spareErr(), nil
		if a.Err == nil {
			a.Err = NewSketch()
		}
	}
	return a.Err
}

// spareErr is the error sketch whose memory this row can use, if it has one.
func (a *Aggregate) spareErr() *Sketch {
	if a.Err != nil {
		return a.Err
	}
	return a.spare
}

// Sealed is one cycle that nobody writes any more: its registry and every
// drainer's table of it. It belongs to the flush until Release.
type Sealed struct {
	Cycle   uint64
	Start   time.Time     // when the cycle opened
	End     time.Time     // when it was sealed
	Width   time.Duration // of a bucket
	Origins []span.Origin // by OriginID
	Keys    []KeyEntry    // by KeyID
	Tables  []*Table      // one a drainer; the same key may stand in several

	// Cleared is how many snapshots a clear gave up, which are in no table. Then
	// there is nothing else here.
	Cleared uint64

	// Delivery is resolved when every payload of the cycle has had its outcome.
	Delivery *Delivery

	release func()
}

// Spans is the number of snapshots in all tables, counted from their rows.
func (s *Sealed) Spans() (spans uint64) {
	for _, table := range s.Tables {
		for i := range table.Rows() {
			spans += table.Rows()[i].Spans
		}
	}
	return spans
}

// Release gives the registry and the tables back for reuse. Nothing of Sealed
// may be touched afterwards, except Delivery.
func (s *Sealed) Release() {
	if s.release != nil {
		s.release()
	}
	s.release, s.Origins, s.Keys, s.Tables = nil, nil, nil, nil
}

// NewSealed makes a sealed cycle of its parts.
func NewSealed(cycle uint64, start, end time.Time, width time.Duration,
	origins []span.Origin, keys []KeyEntry, tables ...*Table,
) *Sealed {
	return &Sealed{
		Cycle: cycle, Start: start, End: end, Width: width,
		Origins: origins, Keys: keys, Tables: tables, Delivery: NewDelivery(),
	}
}

// Delivery is a promise: what became of one sealed cycle. It is how a tracer
// that asked for a report learns of the outcome without anything downstream
// knowing the tracer.
type Delivery struct {
	done chan struct{}
	err  error
}

// NewDelivery returns a promise that is not kept yet.
func NewDelivery() *Delivery { return &Delivery{done: make(chan struct{})} }

// Resolve keeps the promise; nil means that the agent accepted everything. It
// is called once.
func (d *Delivery) Resolve(err error) {
	d.err = err
	close(d.done)
}

// Wait returns the outcome, or the context's error if that ends first.
func (d *Delivery) Wait(ctx context.Context) error {
	select {
	case <-d.done:
		return d.err
	case <-ctx.Done():
		return ctx.Err()
	}
}
