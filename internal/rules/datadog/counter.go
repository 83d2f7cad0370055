package datadog

import (
	"time"

	agent "github.com/spanstatsd/spanstatsd/client/rules"
	decode "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	"github.com/spanstatsd/spanstatsd/internal/rules"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/spantable"
)

// Counter turns bodies into batches of snapshots.
type Counter struct {
	// Now is the clock. Only spans without a start ask for it.
	Now func() time.Time

	labeller
	decoder decode.Decoder
	decoded spantable.Table
	links   []agent.Link
	spans   agent.Spans
	batches rules.Batches
	origins []span.Origin // of the senders, where the body has several
	senders []int         // by sender, the number of its origin

	// Of the body that is being counted.
	counts spantable.KindSet // for their kind alone
	tracer bool              // its tracer marked top-level spans itself
	kept   []Kept

	// Of the trace that is being counted.
	batch  int // its number
	weight float64
	keeps  bool // its spans are noted in kept
	group  int  // its number in the table
}

// Kept is a counted span of a trace that sampling keeps for certain: when the agent has taken the
// body, the backend will have it, and somebody can look at it there. Of a trace that has no
// priority the agent decides, and of what it rejects the agent may keep what has an error, or may
// not. An agent that samples by trace ids whatever tracers say keeps less.
type Kept struct {
	Batch, At   int32 // which of Batches it is in, and which of its spans it is
	span, group int32
}

// root is the span that speaks for the trace: as nearly always, the last one without a parent,
// which is found without relating them.
func (c *Counter) root(spans []spantable.Span) *spantable.Span {
	for i := len(spans) - 1; i >= 0; i-- {
		if spans[i].Parent == 0 {
			return &spans[i]
		}
	}
	if c.tracer {
		c.relate(spans)
	}
	return &spans[c.spans.Root()]
}

// relate relates the spans of a trace to each other, where that has to be known.
func (c *Counter) relate(spans []spantable.Span) {
	c.links = c.links[:0]
	for i := range spans {
		s := &spans[i]
		link := agent.Link{Span: s.ID, Parent: s.Parent}
		if !c.tracer && c.table.Err() == nil {
			link.Service = c.services.service(c.text(s.Service))
		}
		c.links = append(c.links, link)
	}
	c.spans.Reset(c.links)
}

func (c *Counter) isTopLevel(i int) bool {
	return !c.tracer && c.spans.IsTopLevel(i) || c.isOne(labelTopLevel) || c.isOne(labelTracerTopLevel)
}

// eligible says what agent.Eligible says, for tags as the agent's receiver reads them.
func (c *Counter) eligible(s *spantable.Span, top bool) bool {
	if !top && !c.counts.Has(s.Kind) && !c.isOne(labelMeasured) || c.book.lastingOnly && s.Duration == 0 {
		return false
	}
	version, ok := c.number(labelPartialVersion)
	isPartial := ok && version >= 0
	return !isPartial
}

// ignored says whether the agent would leave the trace out for its root's resource.
func (c *Counter) ignored(root *spantable.Span) bool {
	if len(c.policy.ignore) == 0 {
		return false
	}
	resource := c.text(root.Resource)
	if len(resource) == 0 {
		k := span.Key{Operation: c.clone(root.Name)}
		k.Normalize("")
		resource = []byte(k.Resource)
	}
	return c.policy.ignores(resource)
}

// add appends the selected span to its batch.
func (c *Counter) add(s *spantable.Span, top bool) {
	if s.IsDoubtful {
		c.table.Fail(decode.ErrUnread)
		return
	}
	c.made = c.made[:0]
	var flags span.Flags
	if s.Status == spantable.StatusError {
		flags |= span.Error
	}
	if top {
		flags |= span.TopLevel
	}
	c.batches.Add(c.batch, c.encode(s), span.Snapshot{
		Duration: s.Duration, End: int64(s.Start + s.Duration), Weight: c.weight, Flags: flags,
	})
	if c.batches.KeyBytes() > c.table.Limits.Made {
		c.table.Fail(spantable.ErrTooMuch)
	}
}
