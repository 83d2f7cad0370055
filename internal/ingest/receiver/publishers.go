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

// publisherTimeout is the time after which an unused publisher is closed. It can be short, because a new publisher caches
// its keys again within one request.
const publisherTimeout = 5 * time.Minute

// MaxPublishers is the maximum number of publishers of a receiver. It limits the memory for the keys of the publishers
// if --max-origins is higher.
const MaxPublishers = 256

// Publishers keeps one publisher per origin, up to a limit. At the limit a new publisher replaces the least recently used
// one. It also remembers the published bodies. One lock guards both. It is held while a body is published, which takes
// much less time than counting the body.
type Publishers struct {
	max          int
	newPublisher func(span.Origin) *admit.Publisher
	admit        *admit.Publishers

	mu       sync.Mutex
	counted  *bodies.DedupCache
	byOrigin map[span.Origin]*publisher
	parts    []admit.BatchPart // batches of the body that is being published
	isClosed bool
}

type publisher struct {
	*admit.Publisher
	lastUsed time.Time
}

// NewPublishers returns Publishers with at most maxPublishers publishers, which remember at most maxCounted bodies. If upstreamCounts is true, spans that are not
// admitted are left to the upstream to count. Otherwise they are left to the sender to retry if a retry can succeed, and
// dropped if not.
func NewPublishers(admission *admit.Publishers, maxPublishers, maxCounted int, upstreamCounts bool) *Publishers {
	p := &Publishers{
		admit: admission, newPublisher: admission.NewLastPublisher, max: maxPublishers,
		counted: bodies.NewDedupCache(maxCounted), byOrigin: map[span.Origin]*publisher{},
	}
	if upstreamCounts {
		p.newPublisher = admission.NewPublisher
	}
	return p
}

// Batches are the batches of one body, each with its origin.
type Batches = iter.Seq2[span.Origin, *span.Batch]

// Publish publishes all batches of a body or none. Unlike BufferedRequest.Publish it does not recognize retries.
func (p *Publishers) Publish(batches Batches, now time.Time) (reason admit.DropReason, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.prepare(batches, now) {
		return admit.DropShutdown, false
	}
	defer clear(p.parts)
	return p.admit.PublishTogether(func() {}, p.parts...)
}

// prepare sets parts to the batches of a body and their publishers. It returns false after Close.
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

// get returns the publisher of an origin. It creates one if necessary, and evicts another one at the limit.
func (p *Publishers) get(origin span.Origin, now time.Time) *admit.Publisher {
	kept := p.byOrigin[origin]
	if kept == nil {
		if len(p.byOrigin) >= p.max {
			p.evict()
		}
		origin = origin.Clone() // its strings can refer to the memory of the body
		kept = &publisher{Publisher: p.newPublisher(origin)}
		p.byOrigin[origin] = kept
	}
	kept.lastUsed = now
	return kept.Publisher
}

// evict closes the least recently used publisher that is not in parts, if there is one.
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

// Expire closes the publishers that have not been used for publisherTimeout.
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
