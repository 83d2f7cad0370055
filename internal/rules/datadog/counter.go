package datadog

import (
	"math"
	"strconv"
	"time"
	"unsafe"

	agent "github.com/spanstatsd/spanstatsd/client/rules"
	decode "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	"github.com/spanstatsd/spanstatsd/internal/rules"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
	"github.com/spanstatsd/spanstatsd/internal/wire"
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
	origins rules.Origins // of the senders, where the body has several
	senders []rules.Place // by sender

	// Of the body that is being counted.
	counts spantable.KindSet // for their kind alone
	tracer bool              // its tracer marked top-level spans itself
	kept   []Kept

	// Of the trace that is being counted.
	batch  int        // its number
	shared span.Flags // whether it shares its origin
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

// MaxBaseServices bounds the base services of one body of a tracer. Each takes a publisher.
const MaxBaseServices = rules.MaxOrigins

// NewCounter makes a counter.
func NewCounter() *Counter { return &Counter{Now: time.Now} }

// Count reads a body and makes batches of what the agent would count of it. lang is the language
// that the request's header names; topLevel says that the tracer marked top-level spans itself.
// With an error the body is left to the agent.
func (c *Counter) Count(format decode.Format, body []byte, lang string, topLevel bool, policy *Policy) error {
	from := fromTags
	if format == decode.FormatV1 {
		from = fromFields
	}
	c.begin(&c.decoded, from, lang, topLevel, policy)
	if err := c.decoder.Decode(format, body, policy.Names(), c.table); err != nil {
		return err //nolint:wrapcheck // it says that traces can't be read
	}
	return c.countTraces()
}

// CountIngested makes batches of what the agent would count of a table that its own OTLP ingest
// has made: each group is a trace, of a sender of its own. The table is changed.
func (c *Counter) CountIngested(t *spantable.Table, policy *Policy) error {
	c.begin(t, fromOTLP, "", false, policy)
	c.senders = c.origins.Place(c.senders, c.eachSender)
	return c.countTraces()
}

// begin makes the counter ready for a body.
func (c *Counter) begin(t *spantable.Table, from source, lang string, topLevel bool, policy *Policy) {
	c.table, c.source, c.policy, c.id = t, from, policy, ofAgent
	if policy.ofTracer {
		c.id = rulebookOf(lang)
	}
	c.book, c.own = &rulebooks[c.id], &policy.labels.of[c.id]
	c.counts = policy.kinds & c.book.counts
	c.tracer = topLevel || !c.book.mending // whose statistics go by its own marks
	c.services.reset(lang)
	c.batches.Reset(c)
	c.origins.Reset()
	c.kept, c.made, c.senders = c.kept[:0], c.made[:0], c.senders[:0]
}

func (c *Counter) countTraces() error {
	for i := range c.table.Groups {
		if c.table.Err() != nil {
			break
		}
		c.countTrace(i)
	}
	return c.table.Err() //nolint:wrapcheck // it says that traces can't be read
}

// Batches are what the last body held: the snapshots of each base service. They are good until the
// next body.
func (c *Counter) Batches(yield func(baseService string, batch *span.Batch) bool) {
	for origin, batch := range c.batches.All {
		if !yield(origin.Service, batch) {
			return
		}
	}
}

// IngestedBatches are the same of a table of CountIngested, each with an origin that may be kept.
func (c *Counter) IngestedBatches(yield func(origin span.Origin, batch *span.Batch) bool) {
	for from, batch := range c.batches.All {
		origin := c.origins.Of(from.Number)
		if origin.Service = from.Service; !yield(origin, batch) {
			return
		}
	}
}

// Decoded is the table of the last body, and what has read it.
func (c *Counter) Decoded() (*spantable.Table, *decode.Decoder) { return &c.decoded, &c.decoder }

// Release lets go of the last body, and of the memory that only a very large one needed.
func (c *Counter) Release() {
	c.decoder.Release()
	if c.decoded.Release() || cap(c.made) > keptText || cap(c.kept)*keptBytes > keptText {
		c.links, c.made, c.kept = nil, nil, nil
	}
	c.batches.Release()
	c.key.Clear()
	clear(c.links[:cap(c.links)])
	c.origins.Reset()
	c.table, c.kept = &c.decoded, c.kept[:0]
}

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
	isSynthetic := c.book.isSynthetic(c.table.String(g.Origin))
	c.group, c.keeps = number, c.policy.traceIDs && g.HasPriority && g.Priority > 0 && g.TraceLow != 0
	for i := range spans {
		if c.table.Err() != nil {
			return // it is left to the agent, however much there is left of it
		}
		s := &spans[i]
		c.Select(c.table, s.First, s.Last)
		s.IsSynthetic = isSynthetic
		if !c.book.mending {
			c.readOwn(s)
		}
		if top := c.isTopLevel(i); c.eligible(s, top) {
			c.add(g.First+uint32(i), top)
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
			c.table.Fail(decode.ErrUnparsable) // before 1970: no tracer writes that
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
		c.table.Fail(decode.ErrUnparsable)
		c.weight = 1
	}
	c.findBatch(g, c.mainService(root))
}

// findBatch finds the batch of a trace by its sender and its base service. A body of a tracer with too many base
// services is left to the agent. OTLP may have no agent upstream, and shares the common origin.
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

// add appends the selected span, which has that number, to its batch.
func (c *Counter) add(number uint32, top bool) {
	s := &c.table.Spans[number]
	if s.HasUnknownType {
		c.table.Fail(decode.ErrUnparsable)
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
	var fingerprint []byte
	if c.isIgnored() {
		flags |= span.Ignored
	} else if fingerprint = c.fingerprintOf(s); len(fingerprint) == 0 {
		c.label(s) // fails the table now if only the agent can tell how a tag reads
	}
	c.batches.Add(c.batch, fingerprint, span.Snapshot{
		Duration: s.Duration, End: int64(s.Start + s.Duration), Weight: c.weight, Span: number, Flags: flags,
	})
	if c.batches.FingerprintBytes() > c.table.Limits.DerivedBytes {
		c.table.Fail(spantable.ErrTooMuch)
	}
}

// Label returns the key of a span of the last body, see span.Labeller.
func (c *Counter) Label(number uint32) *span.Key {
	s := &c.table.Spans[number]
	c.made = c.made[:0]
	c.Select(c.table, s.First, s.Last)
	return c.label(s)
}

// keep notes a span of the current trace that was counted last.
func (c *Counter) keep(span int) {
	c.kept = append(c.kept, Kept{
		Batch: int32(c.batch), At: int32(c.batches.Len(c.batch) - 1),
		span: int32(span), group: int32(c.group),
	})
}

// Kept are those of the last body, where the policy asks for the ids of traces. They are good
// until the body is changed.
func (c *Counter) Kept() []Kept { return c.kept }

// IDs are those of a span and its trace, of which the high half is 0 where the tracer has none.
func (c *Counter) IDs(k Kept) (traceHigh, traceLow, span uint64) {
	g := &c.table.Groups[k.group]
	if !g.IsHighRead {
		g.TraceHigh, g.IsHighRead = c.traceHigh(g), true
	}
	return g.TraceHigh, g.TraceLow, c.table.Spans[k.span].ID
}

// highDigits is how many digits the tag has that the older formats write the high half as.
const highDigits = 16

// traceHigh is what the first span of a trace says that has the tag.
func (c *Counter) traceHigh(g *spantable.Group) uint64 {
	for i := range c.table.SpansOf(g) {
		tags := c.table.TagsOf(&c.table.SpansOf(g)[i])
		for j := range tags {
			tag := &tags[j]
			isText := tag.Value == spantable.IsText && tag.Text().Len == highDigits
			if tag.Label != decode.LabelTraceHigh || !isText {
				continue
			}
			if high, err := strconv.ParseUint(c.table.String(tag.Text()), 16, 64); err == nil {
				return high
			}
		}
	}
	return 0
}

// keptBytes is what a span takes that is kept, keptText what a counter keeps of texts from one
// body to the next.
const (
	keptBytes = int(unsafe.Sizeof(Kept{}))
	keptText  = 4 << 20
)

// countingBytes is what counting a span takes: its link with its place among the trace's, and its
// snapshot.
const countingBytes = int(unsafe.Sizeof(agent.Link{})) + 8 + rules.SnapshotBytes

// CounterBytes is the most that a counter takes for bodies of that length, where the ids of traces
// are asked for or not.
func CounterBytes(body int, traceIDs bool) int {
	each := countingBytes
	if traceIDs {
		each += keptBytes
	}
	return decode.Bytes(body, each) + anyCounter
}

// IngestedBytes is what CountIngested takes for each span beside the table that it is given, and
// for any table.
const (
	IngestedBytes = countingBytes
	AnyCounter    = anyCounter
)

// anyCounter is what a counter takes for any body: the names and the labels of a span that it
// mends, its fingerprint, and strings that are sent ahead.
const anyCounter = rules.MaxFingerprint + 160<<10
