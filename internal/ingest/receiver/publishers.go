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

// publisherTimeout is how long an unused publisher is kept. It may be short, because a new publisher learns
// its keys within one request.
const publisherTimeout = 5 * time.Minute

// MaxPublishers bounds the publishers of a receiver, each of which has its own keys, if an interval has room
// for more origins.
const MaxPublishers = 256

// Publishers keeps one publisher per origin, up to a limit; beyond it a new one replaces the one that was
// used longest ago. It also remembers the bodies that were published. One lock guards both and is
// held while a body is published, which takes little time compared with counting it.
type Publishers struct {
	max          int
	newPublisher func(span.Origin) *admit.Publisher
	admit        *admit.Publishers

	mu       sync.Mutex
	counted  *bodies.DedupCache
	byOrigin map[span.Origin]*publisher
	parts    []admit.BatchPart // of the body that is being published
	isClosed bool
}

type publisher struct {
	*admit.Publisher
	lastUsed time.Time
}

// NewPublishers keeps at most so many publishers. If the upstream counts, spans that can't be admitted are
// left to it. Otherwise their senders keep those that find no room, and others are dropped.
func NewPublishers(to *admit.Publishers, most int, upstreamCounts bool) *Publishers {
	p := &Publishers{
		admit: to, newPublisher: to.NewLastPublisher, max: most, counted: bodies.NewDedupCache(),
		byOrigin: map[span.Origin]*publisher{},
	}
	if upstreamCounts {
		p.newPublisher = to.NewPublisher
	}
	return p
}

// Batches are the batches of one body, each with its origin.
type Batches = iter.Seq2[span.Origin, *span.Batch]

// Publish publishes all batches of a body or none. It does not recognize retries.
func (p *Publishers) Publish(batches Batches, now time.Time) (reason admit.DropReason, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.prepare(batches, now) {
		return admit.DropShutdown, false
	}
	defer clear(p.parts)
	return p.admit.PublishTogether(func() {}, p.parts...)
}

// prepare fills parts with the publishers and batches of a body. It reports false after Close.
func (p *Publishers) prepare(batches Batches, now time.Time) bool {
	if p.isClosed {
		return false
	}
	p.parts = p.parts[:0]
	for origin, batch := range batches {
		p.parts = append(p.parts, admit.BatchPart{Publisher: p.get(origin, now), Batch: batch})
	}
	return true
}

// get returns the publisher of an origin.
func (p *Publishers) get(origin span.Origin, now time.Time) *admit.Publisher {
	kept := p.byOrigin[origin]
	if kept == nil {
		if len(p.byOrigin) >= p.max {
			p.evict()
		}
		origin = origin.Clone() // its texts may be a part of the body
		kept = &publisher{Publisher: p.newPublisher(origin)}
		p.byOrigin[origin] = kept
	}
	kept.lastUsed = now
	return kept.Publisher
}

// evict closes the publisher that was used longest ago, but none of the current body.
func (p *Publishers) evict() {
	var origin span.Origin
	var oldest *publisher
	for o, candidate := range p.byOrigin {
		isInUse := slices.ContainsFunc(p.parts, func(part admit.BatchPart) bool {
			return part.Publisher == candidate.Publisher
		})
		if !isInUse && (oldest == nil || candidate.lastUsed.Before(oldest.lastUsed)) {
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
		if now.Sub(kept.lastUsed) >= publisherTimeout {
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
