package apm

import (
	"slices"
	"sync"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/clientstats"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/traces"
)

// maxPublishers bounds the publishers that are kept. Each has its keys.
const maxPublishers = 256

// publisherTimeout is how long a publisher is kept that nobody uses: its keys are found
// again in one request.
const publisherTimeout = 5 * time.Minute

// publishers keeps a publisher for each origin that was met, up to max; one more replaces
// the one that was used longest ago. One lock guards all of it, because publishing under
// it takes little beside counting.
type publishers struct {
	admit *admit.Publishers
	max   int

	mu       sync.Mutex
	byOrigin map[span.Origin]*publisher
	parts    []admit.Part // of the body that is being published
	closed   bool
}

type publisher struct {
	*admit.Publisher
	used time.Time
}

// publish admits all batches of a counted body, or leaves all to the agent. It calls
// commit when all are certain to be admitted, before the first is published.
func (p *publishers) publish(commit func(), c *traces.Counter, origin span.Origin, now time.Time) (admit.Drop, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return admit.DropShutdown, false
	}
	origin.Normalize()
	p.parts = p.parts[:0]
	for baseService, spans := range c.Batches {
		origin.Service = baseService
		p.parts = append(p.parts, admit.Part{Publisher: p.get(origin, now), Spans: spans})
	}
	defer clear(p.parts)
	return p.admit.PublishTogether(commit, p.parts...)
}

// merge adds what a tracer has counted itself, or nothing of it, and calls commit
// before it does.
func (p *publishers) merge(commit func(), stats *clientstats.Payload, now time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return admit.ErrStopping
	}
	origin := stats.Origin
	origin.Normalize()
	return p.get(origin, now).Merge(commit, stats.Groups, stats.Width, now)
}

// get returns the publisher of an origin that is bounded, since it may be kept.
func (p *publishers) get(origin span.Origin, now time.Time) *admit.Publisher {
	kept := p.byOrigin[origin]
	if kept == nil {
		if len(p.byOrigin) >= p.max {
			p.evict()
		}
		origin = origin.Clone() // or it would hold the body that it is a part of
		kept = &publisher{Publisher: p.admit.NewPublisher(origin)}
		p.byOrigin[origin] = kept
	}
	kept.used = now
	return kept.Publisher
}

// evict closes the publisher that was used longest ago, of those that the current body
// does not need.
func (p *publishers) evict() {
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

// expire closes those that nobody has used for publisherTimeout.
func (p *publishers) expire(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for origin, kept := range p.byOrigin {
		if now.Sub(kept.used) >= publisherTimeout {
			p.remove(origin, kept)
		}
	}
}

// close closes them all. What comes later is left to the agent.
func (p *publishers) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for origin, kept := range p.byOrigin {
		p.remove(origin, kept)
	}
}

func (p *publishers) remove(origin span.Origin, kept *publisher) {
	kept.Close()
	delete(p.byOrigin, origin)
}

func (p *publishers) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.byOrigin)
}
