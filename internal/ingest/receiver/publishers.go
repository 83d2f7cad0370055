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

// Publishers keeps one publisher per origin, the process that sends spans. At the maximum number of publishers, a new one
// replaces the least recently used one. Publishers also remembers the bodies that were published. One lock guards both.
// It is held while a body is published, which takes much less time than counting the spans of the body.
type Publishers struct {
	max          int
	newPublisher func(span.Origin) *admit.Publisher
	admit        *admit.Publishers

	mu            sync.Mutex
	countedBodies *bodies.DedupCache
	byOrigin      map[span.Origin]*cachedPublisher
	parts         []admit.BatchPart // batches of the body that is being published
	isClosed      bool
}

// cachedPublisher is the publisher of one origin.
type cachedPublisher struct {
	*admit.Publisher
	lastUsed time.Time
}

// NewPublishers returns a cache of at most maxPublishers admit.Publishers, which also remembers at most maxBodies
// counted bodies. upstreamCounts is true if the upstream is an agent, which counts the spans of forwarded requests that
// the daemon has not counted.
func NewPublishers(admission *admit.Publishers, maxPublishers, maxBodies int, upstreamCounts bool) *Publishers {
	newPublisher := admission.NewPublisher
	if !upstreamCounts {
		newPublisher = admission.NewLastPublisher // it reports uncounted spans as dropped, because no agent counts them
	}
	return &Publishers{
		admit: admission, newPublisher: newPublisher, max: maxPublishers,
		countedBodies: bodies.NewDedupCache(maxBodies), byOrigin: map[span.Origin]*cachedPublisher{},
	}
}

// Batches are the batches of one body, each with its origin.
type Batches = iter.Seq2[span.Origin, *span.Batch]

// Publish publishes all batches of a request body, or none of them. If isPublished is false, reason says why. It
// does not check whether an equal body was published before.
func (p *Publishers) Publish(batches Batches, now time.Time) (reason admit.DropReason, isPublished bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isClosed {
		return admit.DropShutdown, false
	}
	p.setParts(batches, now)
	defer clear(p.parts)   // they refer to the memory of the body
	onPublish := func() {} // nothing to record
	return p.admit.PublishTogether(onPublish, p.parts...)
}

// setParts fills p.parts with the batches of a request body and the publisher for each batch. The caller must hold
// p.mu, and p must not be closed.
func (p *Publishers) setParts(batches Batches, now time.Time) {
	p.parts = p.parts[:0]
	for origin, batch := range batches {
		p.parts = append(p.parts, admit.BatchPart{Publisher: p.getOrCreate(origin, now), Batch: batch})
	}
}

// getOrCreate returns the publisher for spans of the given origin, the process that sends them. If there is none,
// it creates one. At the maximum number of publishers, it first closes the least recently used one. The caller must
// hold p.mu.
func (p *Publishers) getOrCreate(origin span.Origin, now time.Time) *admit.Publisher {
	cached := p.byOrigin[origin]
	if cached == nil {
		if len(p.byOrigin) >= p.max {
			p.closeLeastRecent()
		}
		origin = origin.Clone() // its strings can refer to the memory of the body
		cached = &cachedPublisher{Publisher: p.newPublisher(origin)}
		p.byOrigin[origin] = cached
	}
	cached.lastUsed = now
	return cached.Publisher
}

// closeLeastRecent closes the least recently used publisher. It does not close publishers in p.parts, because the
// body that is being published needs them.
func (p *Publishers) closeLeastRecent() {
	var leastRecent *cachedPublisher
	var leastRecentOrigin span.Origin
	for origin, cached := range p.byOrigin {
		if p.isInParts(cached) {
			continue
		}
		if leastRecent == nil || cached.lastUsed.Before(leastRecent.lastUsed) {
			leastRecent = cached
			leastRecentOrigin = origin
		}
	}
	if leastRecent != nil {
		p.close(leastRecentOrigin, leastRecent)
	}
}

// isInParts reports whether the body that is being published needs a publisher.
func (p *Publishers) isInParts(cached *cachedPublisher) bool {
	return slices.ContainsFunc(p.parts, func(part admit.BatchPart) bool {
		return part.Publisher == cached.Publisher
	})
}

// Expire closes the publishers that have not been used for publisherTimeout.
func (p *Publishers) Expire(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for origin, cached := range p.byOrigin {
		if now.Sub(cached.lastUsed) >= publisherTimeout {
			p.close(origin, cached)
		}
	}
}

// Close closes all publishers. Later calls of Publish publish nothing.
func (p *Publishers) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.isClosed = true
	for origin, cached := range p.byOrigin {
		p.close(origin, cached)
	}
}

// close closes the publisher of an origin, and forgets it.
func (p *Publishers) close(origin span.Origin, cached *cachedPublisher) {
	cached.Close()
	delete(p.byOrigin, origin)
}

// Count returns the number of publishers.
func (p *Publishers) Count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.byOrigin)
}
