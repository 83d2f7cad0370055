package traces

import (
	"math"

	"github.com/spanstatsd/spanstatsd/client/rules"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// trace counts the spans of one trace, as one that the agent would take whole or
// not at all.
func (c *Counter) trace(number int) {
	t := &c.payload.chunks[number]
	records := c.payload.records[t.first:t.last]
	if len(records) == 0 || !c.normalize(records) {
		return
	}
	if !c.tracer {
		c.relate(records)
	}
	root := c.root(records)
	if c.rulebook.heedsIgnored && c.ignored(root) {
		return
	}
	c.sender = c.payload.originOf(t)
	c.readRoot(root, t)
	c.chunk, c.keeps = number, c.policy.labels.traceIDs && t.isKept() && c.payload.ids[number].low != 0
	for i := range records {
		if c.payload.Failed() {
			return // it is left to the agent, however much there is left of it
		}
		rec := &records[i]
		c.selectSpan(rec)
		if !c.rulebook.mending {
			c.readOwn(rec)
		}
		if top := c.isTopLevel(i); c.eligible(rec, top) {
			c.snapshot(rec, top)
			if c.keeps {
				c.keep(t.first + i)
			}
		}
	}
}

// year2000 is the earliest start of a span that the agent believes.
const year2000 = 946684800e9

// normalize mends what the agent mends, before anything is asked of the spans. A
// span without an id costs its trace, as there.
func (c *Counter) normalize(records []record) bool {
	for i := range records {
		rec := &records[i]
		if rec.id == 0 {
			return false
		}
		if rec.parent == rec.id {
			rec.parent = 0
		}
		if rec.start > math.MaxInt64 {
			c.payload.Fail() // before 1970: no tracer writes that
			return false
		}
		if rec.duration > math.MaxInt64-rec.start {
			rec.duration = 0
		}
		if rec.start < year2000 {
			rec.start = uint64(c.Now().UnixNano())
			if rec.duration <= rec.start {
				rec.start -= rec.duration
			}
		}
	}
	return true
}

// relate relates the spans of a trace to each other, where that has to be known.
func (c *Counter) relate(records []record) {
	c.links = c.links[:0]
	for i := range records {
		rec := &records[i]
		link := rules.Link{Span: rec.id, Parent: rec.parent}
		if !c.tracer && !c.payload.Failed() {
			link.Service = c.services.service(c.text(rec.service))
		}
		c.links = append(c.links, link)
	}
	c.spans.Reset(c.links)
}

// root is the span that speaks for the trace: as nearly always, the last one without
// a parent, which is found without relating them.
func (c *Counter) root(records []record) *record {
	for i := len(records) - 1; i >= 0; i-- {
		if records[i].parent == 0 {
			return &records[i]
		}
	}
	if c.tracer {
		c.relate(records)
	}
	return &records[c.spans.Root()]
}

func (c *Counter) isTopLevel(i int) bool {
	return !c.tracer && c.spans.IsTopLevel(i) || c.isOne(labelTopLevel) || c.isOne(labelTracerTopLevel)
}

// eligible says what rules.Eligible says, for tags as the agent's receiver reads
// them.
func (c *Counter) eligible(rec *record, top bool) bool {
	if !top && !c.counts.has(rec.kind) && !c.isOne(labelMeasured) || c.rulebook.lastingOnly && rec.duration == 0 {
		return false
	}
	version, ok := c.number(labelPartialVersion)
	isPartial := ok && version >= 0
	return !isPartial
}

// ignored says whether the agent would leave the trace out for its root's resource.
func (c *Counter) ignored(root *record) bool {
	if len(c.policy.ignore) == 0 {
		return false
	}
	resource := c.text(root.resource)
	if len(resource) == 0 {
		k := span.Key{Operation: string(c.text(root.name))}
		k.Normalize("")
		resource = []byte(k.Resource)
	}
	for _, r := range c.policy.ignore {
		if r.Match(resource) {
			return true
		}
	}
	return false
}

// readRoot reads what a trace's root says for all of its spans.
func (c *Counter) readRoot(root *record, t *chunk) {
	c.selectSpan(root)
	if c.weight = 1; c.rulebook.weighs {
		c.weight = rules.WeightOf(c.number(labelSampleRate))
	}
	if !wire.ValidWeight(c.weight) {
		c.payload.Fail()
		c.weight = 1
	}
	c.current = c.batch(c.mainService(root))
	c.synthetic = c.rulebook.isSynthetic(view(t.origin.Of(c.payload.body)))
}

// snapshot appends one span to its batch.
func (c *Counter) snapshot(rec *record, top bool) {
	if rec.misplaced {
		c.payload.Fail()
		return
	}
	c.scratch = c.scratch[:0]
	var flags span.Flags
	if rec.failed {
		flags |= span.Error
	}
	if top {
		flags |= span.TopLevel
	}
	key := c.encode(rec)
	c.current.message = wire.AppendWhole(c.current.message, key, rec.duration, int64(rec.start+rec.duration), flags, c.weight)
	c.current.count++
	if c.messageBytes += len(key); c.messageBytes > c.payload.limits.made {
		c.payload.Fail()
	}
}
