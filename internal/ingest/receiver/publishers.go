package receiver

import (
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver/bodies"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// publisherTimeout is how long an unused publisher is kept. A new one finds its keys again within one
// request.
const publisherTimeout = 5 * time.Minute

// MaxPublishers bounds the publishers of a receiver if an interval has room for more origins. Each
// publisher has its own keys.
const MaxPublishers = 256

// Publishers keeps one publisher per origin, up to a limit; beyond it a new one replaces the one that was
// used longest ago. It also remembers the bodies that were published. One lock guards both and is
// held while a body is published, which takes little compared with counting it.
type Publishers struct {
	max   int
	new   func(span.Origin) *admit.Publisher
	admit *admit.Publishers

	mu       sync.Mutex
	counted  *bodies.DedupCache
	byOrigin map[span.Origin]*publisher
	parts    []admit.BatchPart // of the body that is being published
	isClosed bool
}

type publisher struct {
	*admit.Publisher
	used time.Time
}

// NewPublishers keeps at most so many publishers. Spans that they can't admit are left to the agent.
func NewPublishers(to *admit.Publishers, most int) *Publishers {
	return &Publishers{
		admit: to, new: to.NewPublisher, max: most, counted: bodies.NewDedupCache(),
		byOrigin: map[span.Origin]*publisher{},
	}
}

// NewLastPublishers does the same if no agent counts after this daemon: senders keep spans that find
// no room for a moment, and other spans that can't be admitted are dropped.
func NewLastPublishers(to *admit.Publishers, most int) *Publishers {
	p := NewPublishers(to, most)
	p.new = to.NewLastPublisher
	return p
}

// Batches are the batches of one body, each with its origin.
type Batches = iter.Seq2[span.Origin, *span.Batch]

// Publish publishes all batches of a body or none, without a look at earlier bodies.
func (p *Publishers) Publish(batches Batches, now time.Time) (reason admit.DropReason, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.resolve(batches, now) {
		return admit.DropShutdown, false
	}
	defer clear(p.parts)
	return p.admit.PublishTogether(func() {}, p.parts...)
}

// resolve finds the publishers of a body. It reports false after Close.
func (p *Publishers) resolve(batches Batches, now time.Time) bool {
	if p.isClosed {
		return false
	}
	p.parts = p.parts[:0]
	for origin, batch := range batches {
		p.parts = append(p.parts, admit.BatchPart{Publisher: p.get(origin, now), Batch: batch})
	}
	return true
}

// get returns the publisher of an origin. The origin's texts are bounded, since they may be kept.
func (p *Publishers) get(origin span.Origin, now time.Time) *admit.Publisher {
	kept := p.byOrigin[origin]
	if kept == nil {
		if len(p.byOrigin) >= p.max {
			p.evict()
		}
		origin = origin.Clone() // its texts may be a part of the body
		kept = &publisher{Publisher: p.new(origin)}
		p.byOrigin[origin] = kept
	}
	kept.used = now
	return kept.Publisher
}

// evict closes the publisher that was used longest ago, except those of the current body.
func (p *Publishers) evict() {
	var origin span.Origin
	var oldest *publisher
	for o, candidate := range p.byOrigin {
		isNeeded := func(part admit.BatchPart) bool { return part.Publisher == candidate.Publisher }
		if !slices.ContainsFunc(p.parts, isNeeded) && (oldest == nil || candidate.used.Before(oldest.used)) {
			origin, oldest = o, candidate
		}
	}
	if oldest != nil {
		p.remove(origin, oldest)
	}
}

// Expire closes publishers that were not used for publisherTimeout.
func (p *Publishers) Expire(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for origin, kept := range p.byOrigin {
		if now.Sub(kept.used) >= publisherTimeout {
			p.remove(origin, kept)
		}
	}
}

// Close closes all publishers. Nothing is published afterwards.
func (p *Publishers) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.isClosed = true
	for origin, kept := range p.byOrigin {
		p.remove(origin, kept)
	}
}

func (p *Publishers) remove(origin span.Origin, kept *publisher) {
	kept.Close()
	delete(p.byOrigin, origin)
}

// Count returns the number of publishers.
func (p *Publishers) Count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.byOrigin)
}
