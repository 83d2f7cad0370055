package traces

import (
	"math"
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// A body of FormatIngest is what package oteltraces makes of one request: payloads of v0.7, one
// behind the other, each of a sender of its own.

// sender is who sent one of the payloads.
type sender struct {
	facts  facts
	origin int // its number: senders that nothing tells apart have one
}

// walkIngest walks all payloads.
func (p *payload) walkIngest() {
	for p.At() < len(p.body) && !p.Failed() {
		if len(p.senders) > math.MaxUint16 {
			p.Fail()
			return
		}
		p.list = traceList{}
		p.walkV07()
		p.senders = append(p.senders, sender{facts: p.facts})
	}
}

// readSenders finds out which senders are one. Each may be kept as it is.
func (c *Counter) readSenders() {
	c.origins, c.sender = c.origins[:0], 0
	for i := range c.payload.senders {
		s := &c.payload.senders[i]
		f := &s.facts
		o := span.Origin{
			Env: c.clone(f.env), Version: c.clone(f.version), Host: c.clone(f.host), GitCommitSHA: c.clone(f.commit),
			Lang: c.clone(f.lang), TracerVersion: c.clone(f.tracerVersion), ContainerID: c.clone(f.container),
		}
		o.Normalize()
		if s.origin = slices.Index(c.origins, o); s.origin < 0 {
			s.origin = len(c.origins)
			c.origins = append(c.origins, o)
		}
		if len(c.origins) > MaxBatches {
			c.payload.Fail()
			return
		}
	}
}

// originOf is the number of a trace's origin.
func (p *payload) originOf(t *chunk) int {
	if len(p.senders) == 0 {
		return 0
	}
	return p.senders[t.sender].origin
}

// IngestBatches are what the last body held where it was one of FormatIngest: an origin that
// may be kept, and the body of a spans message for it. They are good until the next Count.
func (c *Counter) IngestBatches(yield func(origin span.Origin, spans []byte) bool) {
	for i := range c.batches {
		b := &c.batches[i]
		origin := c.origins[b.sender]
		if origin.Service = b.baseService; !yield(origin, b.body()) {
			return
		}
	}
}
