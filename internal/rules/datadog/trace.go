package datadog

import (
	"math"

	agent "github.com/spanstatsd/spanstatsd/client/rules"
	decode "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	"github.com/spanstatsd/spanstatsd/internal/rules"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/spantable"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// countTrace counts the spans of one trace, as one that the agent would take whole or not at all.
func (c *Counter) countTrace(number int) {
	g := &c.table.Groups[number]
	spans := c.table.SpansOf(g)
	if len(spans) == 0 || !c.normalize(spans) {
		return
	}
	if !c.tracer {
		c.relate(spans)
	}
	root := c.root(spans)
	if c.book.heedsIgnored && c.ignored(root) {
		return
	}
	c.readRoot(root, g)
	c.group, c.keeps = number, c.policy.traceIDs && g.HasPriority && g.Priority > 0 && g.TraceLow != 0
	for i := range spans {
		if c.table.Err() != nil {
			return // it is left to the agent, however much there is left of it
		}
		s := &spans[i]
		c.Select(c.table, s.First, s.Last)
		if !c.book.mending {
			c.readOwn(s)
		}
		if top := c.isTopLevel(i); c.eligible(s, top) {
			c.add(s, top)
			if c.keeps {
				c.keep(int(g.First) + i)
			}
		}
	}
}

// year2000 is the earliest start of a span that the agent believes.
const year2000 = 946684800e9

// normalize mends what the agent mends, before anything is asked of the spans. A span without an
// id costs its trace, as there.
func (c *Counter) normalize(spans []spantable.Span) bool {
	for i := range spans {
		s := &spans[i]
		if s.ID == 0 {
			return false
		}
		if s.Parent == s.ID {
			s.Parent = 0
		}
		if s.Start > math.MaxInt64 {
			c.table.Fail(decode.ErrUnread) // before 1970: no tracer writes that
			return false
		}
		if s.Duration > math.MaxInt64-s.Start {
			s.Duration = 0
		}
		if s.Start < year2000 {
			s.Start = uint64(c.Now().UnixNano())
			if s.Duration <= s.Start {
				s.Start -= s.Duration
			}
		}
	}
	return true
}

// readRoot reads what a trace's root says for all of its spans.
func (c *Counter) readRoot(root *spantable.Span, g *spantable.Group) {
	c.Select(c.table, root.First, root.Last)
	if c.weight = 1; c.book.weighs {
		c.weight = agent.WeightOf(c.number(labelSampleRate))
	}
	if !wire.ValidWeight(c.weight) {
		c.table.Fail(decode.ErrUnread)
		c.weight = 1
	}
	c.findBatch(g, c.mainService(root))
	c.isSynth = c.book.isSynthetic(c.table.String(g.Origin))
}

// findBatch finds the batch of a trace by its sender and its base service. What a tracer sent with too many
// base services is left to the agent; OTLP may have no agent behind it, and shares the common origin.
func (c *Counter) findBatch(g *spantable.Group, baseService string) {
	var under rules.Place
	if len(c.senders) > 0 {
		under = c.senders[g.Sender]
	}
	of, ok := rules.Origin{Number: int(under.Number), Service: baseService}, false
	if of.Number == rules.Common {
		of.Service = ""
	}
	if c.batch, ok = c.batches.Of(of); !ok && c.source != fromOTLP {
		c.table.Fail(spantable.ErrTooMuch)
	} else if !ok {
		of = rules.Origin{Number: c.origins.Spill(c.origins.Of(of.Number))}
		c.batch, _ = c.batches.Of(of)
		under.IsShared = true
	}
	c.shared = 0
	if under.IsShared {
		c.shared = span.SharedOrigin
	}
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
	flags := c.shared
	if s.Status == spantable.StatusError {
		flags |= span.Error
	}
	if top {
		flags |= span.TopLevel
	}
	key := c.encode(s)
	if len(key) == 0 {
		flags |= span.Ignored
	}
	c.batches.Add(c.batch, key, span.Snapshot{
		Duration: s.Duration, End: int64(s.Start + s.Duration), Weight: c.weight, Flags: flags,
	})
	if c.batches.KeyBytes() > c.table.Limits.Made {
		c.table.Fail(spantable.ErrTooMuch)
	}
}
