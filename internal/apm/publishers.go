package apm

import (
	"strings"
	"sync"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/clientstats"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/traces"
)

// maxPublishers bounds the origins that are remembered. Each has its keys.
const maxPublishers = 256

// forgetAfter is how long an origin is remembered that sends nothing: its keys are
// learnt again in one request.
const forgetAfter = 5 * time.Minute

// publishers are admit's, one for each origin that was met. One lock guards all
// of it: what is done under it is some tens of nanoseconds a span.
type publishers struct {
	admit *admit.Publishers
	most  int

	mu     sync.Mutex
	known  map[span.Origin]*publisher
	parts  []admit.Part
	closed bool
}

type publisher struct {
	*admit.Publisher
	used time.Time
}

// publish admits all batches of a counted body, or leaves all to the agent. It calls
// commit when nothing of that is open any more, and before the first is published.
func (p *publishers) publish(commit func(), c *traces.Counter, origin span.Origin, now time.Time) (admit.Drop, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return admit.DropShutdown, false
	}
	origin.Normalize() // it is kept, and nobody says how long its parts are
	p.parts = p.parts[:0]
	for baseService, spans := range c.Batches {
		origin.Service = baseService
		p.parts = append(p.parts, admit.Part{Publisher: p.find(origin, now), Spans: spans})
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
	return p.find(stats.Origin, now).Merge(commit, stats.Groups, stats.Width, now)
}

func (p *publishers) find(origin span.Origin, now time.Time) *admit.Publisher {
	known := p.known[origin]
	if known == nil {
		if len(p.known) >= p.most {
			p.forget()
		}
		origin.Service = strings.Clone(origin.Service) // which was a part of the body
		known = &publisher{Publisher: p.admit.NewPublisher(origin)}
		p.known[origin] = known
	}
	known.used = now
	return known.Publisher
}

// forget closes the publisher that was used longest ago, of those that the body
// at hand does not need.
func (p *publishers) forget() {
	var oldest span.Origin
	var found *publisher
next:
	for origin, candidate := range p.known {
		for _, part := range p.parts {
			if part.Publisher == candidate.Publisher {
				continue next
			}
		}
		if found == nil || candidate.used.Before(found.used) {
			oldest, found = origin, candidate
		}
	}
	if found != nil {
		found.Close()
		delete(p.known, oldest)
	}
}

// age closes those that nobody has used for long.
func (p *publishers) age(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for origin, known := range p.known {
		if now.Sub(known.used) >= forgetAfter {
			known.Close()
			delete(p.known, origin)
		}
	}
}

// close ends them all. What comes later is left to the agent.
func (p *publishers) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, known := range p.known {
		known.Close()
	}
	clear(p.known)
}

func (p *publishers) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.known)
}
