package door

import (
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// publisherTimeout is how long a publisher is kept that nobody uses: its keys are found
// again in one request.
const publisherTimeout = 5 * time.Minute

// Publishers keeps a publisher for each origin that was met, up to max; one more replaces
// the one that was used longest ago. One lock guards all of it, because publishing under
// it takes little beside counting.
type Publishers struct {
	max int
	new func(span.Origin) *admit.Publisher
	by  *admit.Publishers

	mu       sync.Mutex
	byOrigin map[span.Origin]*publisher
	parts    []admit.Part // of the body that is being published
	closed   bool
}

type publisher struct {
	*admit.Publisher
	used time.Time
}

// owed is spans of a request that are counted, and that its sender may still send again.
type owed struct{ cycle, spans uint64 }

// MaxPublishers is how many are kept where an interval has room for more origins. Each has
// its keys.
const MaxPublishers = 256

// NewPublishers keeps so many publishers that publish by way of those. What they can't admit
// the agent behind counts.
func NewPublishers(by *admit.Publishers, most int) *Publishers {
	return &Publishers{by: by, new: by.NewPublisher, max: most, byOrigin: map[span.Origin]*publisher{}}
}

// NewLastPublishers is the same where nobody behind counts: what passes is refused, and
// whatever is not admitted else is dropped.
func NewLastPublishers(by *admit.Publishers, most int) *Publishers {
	return &Publishers{by: by, new: by.NewLastPublisher, max: most, byOrigin: map[span.Origin]*publisher{}}
}

// Batches are those of one body, each with its origin.
type Batches = iter.Seq2[span.Origin, *span.Batch]

// Publish admits all batches of a counted body, or none. It calls commit when all are
// certain to be admitted, before the first is published.
func (p *Publishers) Publish(commit func(), batches Batches, now time.Time) (admit.Drop, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return admit.DropShutdown, false
	}
	p.parts = p.parts[:0]
	for origin, batch := range batches {
		p.parts = append(p.parts, admit.Part{Publisher: p.get(origin, now), Batch: batch})
	}
	defer clear(p.parts)
	return p.by.PublishTogether(commit, p.parts...)
}

// Counted is a span of one of the batches that are about to be published, and the number of the
// cycle that it is counted in. Only commit may ask.
func (p *Publishers) Counted(batch, at int) (cycle uint64, slot *aggregate.Slot) {
	return p.parts[batch].Publisher.Counted(at)
}

// appendOwed appends what is about to be published. Only commit may ask.
func (p *Publishers) appendOwed(to []owed) []owed {
	for i := range p.parts {
		by := p.parts[i].Publisher
		to = append(to, owed{by.Cycle(), uint64(by.Counting())})
	}
	return to
}

// Merge adds what a tracer of that origin has counted itself, or nothing of it, and calls
// commit with what that is before it does.
func (p *Publishers) Merge(
	commit func(owed), origin span.Origin, groups []aggregate.Group, width uint64, now time.Time,
) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return admit.ErrStopping
	}
	by := p.get(origin, now)
	//nolint:wrapcheck // its own words
	return by.Merge(func(spans uint64) { commit(owed{by.Cycle(), spans}) }, groups, width, now)
}

// get returns the publisher of an origin that is bounded, since it may be kept.
func (p *Publishers) get(origin span.Origin, now time.Time) *admit.Publisher {
	kept := p.byOrigin[origin]
	if kept == nil {
		if len(p.byOrigin) >= p.max {
			p.evict()
		}
		origin = origin.Clone() // or it would hold the body that it is a part of
		kept = &publisher{Publisher: p.new(origin)}
		p.byOrigin[origin] = kept
	}
	kept.used = now
	return kept.Publisher
}

// evict closes the publisher that was used longest ago, of those that the current body
// does not need.
func (p *Publishers) evict() {
	var origin span.Origin
	var oldest *publisher
	for o, candidate := range p.byOrigin {
		isNeeded := func(part admit.Part) bool { return part.Publisher == candidate.Publisher }
		if !slices.ContainsFunc(p.parts, isNeeded) && (oldest == nil || candidate.used.Before(oldest.used)) {
			origin, oldest = o, candidate
		}
	}
	if oldest != nil {
		p.remove(origin, oldest)
	}
}

// Expire closes those that nobody has used for publisherTimeout.
func (p *Publishers) Expire(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for origin, kept := range p.byOrigin {
		if now.Sub(kept.used) >= publisherTimeout {
			p.remove(origin, kept)
		}
	}
}

// Close closes them all. Nothing is published later.
func (p *Publishers) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for origin, kept := range p.byOrigin {
		p.remove(origin, kept)
	}
}

func (p *Publishers) remove(origin span.Origin, kept *publisher) {
	kept.Close()
	delete(p.byOrigin, origin)
}

// Count is how many are kept.
func (p *Publishers) Count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.byOrigin)
}
