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

// Counter converts bodies to batches of snapshots.
type Counter struct {
	// Now returns the current time. It is called only for spans without a valid start.
	Now func() time.Time

	labeller
	decoder decode.Decoder
	decoded spantable.Table
	links   []agent.Link
	spans   agent.Spans
	batches rules.Batches
	origins rules.Origins // origins of the senders of an OTLP request
	senders []rules.Place // place of each sender of an OTLP request

	// State of the current body.
	counts spantable.KindSet // kinds of spans that are always counted
	marked bool              // the tracer marked top-level spans itself
	kept   []Kept

	// State of the current trace.
	batch  int        // number of its batch
	shared span.Flags // span.SharedOrigin or 0
	weight float64    // weight of each span
	keeps  bool       // counted spans are added to kept
	group  int        // number of the trace in the table
}

// Kept is a counted span of a trace that sampling certainly keeps: the trace will be in the backend
// once the agent has accepted the body. A trace without a priority is not included, because the
// agent decides about it, nor is a trace with a rejecting priority, although the agent may keep its
// errors. An agent that samples by trace ID keeps fewer traces.
type Kept struct {
	Batch, At   int32 // number of the batch, and index of the span in the batch
	span, group int32 // index of the span and of its trace in the table
}

// MaxBaseServices is the maximum number of base services in a body of a tracer. Each needs a
// publisher.
const MaxBaseServices = rules.MaxOrigins

// NewCounter returns a counter.
func NewCounter() *Counter { return &Counter{Now: time.Now} }

// Count decodes a body and counts its spans. lang is the language in the request's header. topLevel
// reports whether the tracer marked top-level spans itself. On an error no span is counted, and the
// body must be left to the agent.
func (c *Counter) Count(format decode.Format, body []byte, lang string, topLevel bool, policy *Policy) error {
	from := fromTags
	if format == decode.FormatV1 {
		from = fromFields
	}
	c.begin(&c.decoded, from, lang, topLevel, policy)
	if err := c.decoder.Decode(format, body, policy.Names(), c.table); err != nil {
		return err //nolint:wrapcheck // the decoder's error is complete
	}
	return c.countTraces()
}

// CountIngested counts the spans of a table that package translate filled from an OTLP request.
// Each group is a trace. CountIngested changes the table.
func (c *Counter) CountIngested(t *spantable.Table, policy *Policy) error {
	c.begin(t, fromOTLP, "", false, policy)
	c.senders = c.origins.Place(c.senders, c.eachSender)
	return c.countTraces()
}

// begin resets the counter for a body.
func (c *Counter) begin(t *spantable.Table, from source, lang string, topLevel bool, policy *Policy) {
	c.table, c.source, c.policy, c.id = t, from, policy, ofAgent
	if policy.ofTracer {
		c.id = rulebookOf(lang)
	}
	c.book, c.own = &rulebooks[c.id], &policy.labels.byBook[c.id]
	c.counts = policy.kinds & c.book.counts
	c.marked = topLevel || !c.book.normalizing // tracers' rules use only the marks
	c.services.reset(lang)
	c.batches.Reset(c)
	c.origins.Reset()
	c.kept, c.made, c.senders = c.kept[:0], c.made[:0], c.senders[:0]
}

// countTraces counts all traces of the table, until one fails.
func (c *Counter) countTraces() error {
	for i := range c.table.Groups {
		if c.table.Err() != nil {
			break
		}
		c.countTrace(i)
	}
	return c.table.Err() //nolint:wrapcheck // the decoder's error is complete
}

// Batches iterates over the base services of the last body and their batches. They are valid until
// the next body.
func (c *Counter) Batches(yield func(baseService string, batch *span.Batch) bool) {
	for origin, batch := range c.batches.All {
		if !yield(origin.Service, batch) {
			return
		}
	}
}

// IngestedBatches iterates over the origins of the last table of CountIngested and their batches.
// The origins stay valid; the batches are valid until the next body.
func (c *Counter) IngestedBatches(yield func(origin span.Origin, batch *span.Batch) bool) {
	for from, batch := range c.batches.All {
		origin := c.origins.Of(from.Number)
		if origin.Service = from.Service; !yield(origin, batch) {
			return
		}
	}
}

// Decoded returns the table of the last body and its decoder.
func (c *Counter) Decoded() (*spantable.Table, *decode.Decoder) { return &c.decoded, &c.decoder }

// Release drops the last body, and frees the memory that only a very large body needs.
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

// countTrace counts the spans of trace number of the table. It counts none of them if the agent
// would drop the trace.
func (c *Counter) countTrace(number int) {
	g := &c.table.Groups[number]
	spans := c.table.SpansOf(g)
	if len(spans) == 0 || !c.normalize(spans) {
		return
	}
	if !c.marked {
		c.relate(spans)
	}
	root := c.root(spans)
	if c.book.honorsIgnored && c.ignored(root) {
		return
	}
	c.readRoot(root, g)
	isSynthetic := c.book.isSynthetic(c.table.String(g.Origin))
	c.group, c.keeps = number, c.policy.traceIDs && g.HasPriority && g.Priority > 0 && g.TraceLow != 0
	for i := range spans {
		if c.table.Err() != nil {
			return // the agent counts the body
		}
		s := &spans[i]
		c.Select(c.table, s.First, s.Last)
		s.IsSynthetic = isSynthetic
		if !c.book.normalizing {
			c.readOwn(s)
		}
		if topLevel := c.isTopLevel(i); c.eligible(s, topLevel) {
			c.add(g.First+uint32(i), topLevel)
			if c.keeps {
				c.keep(int(g.First) + i)
			}
		}
	}
}

// year2000 is the earliest start of a span that the agent accepts.
const year2000 = 946684800e9

// normalize normalizes the spans of a trace like the agent. It reports false if the trace is
// dropped because a span has no ID, and fails the table if only the agent can read a span.
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
			c.table.Fail(decode.ErrUnparsable) // a negative time, before 1970
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

// readRoot sets the state of the current trace that depends on its root: weight, batch and shared.
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

// findBatch sets the batch of the current trace by its sender and base service. If a tracer's body
// has too many base services, it fails the table, so that the body is left to the agent. An OTLP
// request may have no agent upstream, so its trace is counted in the common origin instead.
func (c *Counter) findBatch(g *spantable.Group, baseService string) {
	var place rules.Place
	if len(c.senders) > 0 {
		place = c.senders[g.Sender]
	}
	origin := rules.Origin{Number: int(place.Number), Service: baseService}
	if origin.Number == rules.Common {
		origin.Service = ""
	}
	batch, ok := c.batches.Of(origin)
	if !ok && c.source != fromOTLP {
		c.table.Fail(spantable.ErrTooMuch)
	} else if !ok {
		origin = rules.Origin{Number: c.origins.Spill(c.origins.Of(origin.Number))}
		batch, _ = c.batches.Of(origin)
		place.IsShared = true
	}
	c.batch, c.shared = batch, 0
	if place.IsShared {
		c.shared = span.SharedOrigin
	}
}

// root returns the root of a trace. Nearly always that is the last span without a parent. Otherwise
// relate is needed to find it.
func (c *Counter) root(spans []spantable.Span) *spantable.Span {
	for i := len(spans) - 1; i >= 0; i-- {
		if spans[i].Parent == 0 {
			return &spans[i]
		}
	}
	if c.marked {
		c.relate(spans)
	}
	return &spans[c.spans.Root()]
}

// relate fills c.spans with the parent of each span. Services are read only if they are needed to
// find top-level spans.
func (c *Counter) relate(spans []spantable.Span) {
	c.links = c.links[:0]
	for i := range spans {
		s := &spans[i]
		link := agent.Link{Span: s.ID, Parent: s.Parent}
		if !c.marked && c.table.Err() == nil {
			link.Service = c.services.service(c.text(s.Service))
		}
		c.links = append(c.links, link)
	}
	c.spans.Reset(c.links)
}

// isTopLevel reports whether span i of the current trace is top-level. The span must be selected.
func (c *Counter) isTopLevel(i int) bool {
	return !c.marked && c.spans.IsTopLevel(i) || c.isOne(labelTopLevel) || c.isOne(labelTracerTopLevel)
}

// eligible reports whether the selected span is counted, see agent.Eligible. It reads tags like the
// agent's receiver.
func (c *Counter) eligible(s *spantable.Span, topLevel bool) bool {
	isRelevant := topLevel || c.counts.Has(s.Kind) || c.isOne(labelMeasured)
	if !isRelevant || c.book.nonzeroOnly && s.Duration == 0 {
		return false
	}
	version, ok := c.number(labelPartialVersion)
	isPartial := ok && version >= 0
	return !isPartial
}

// ignored reports whether the agent ignores the trace because of its root's resource.
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

// add appends a snapshot of the selected span, whose index in the table is number, to the batch of
// its trace.
func (c *Counter) add(number uint32, topLevel bool) {
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
	if topLevel {
		flags |= span.TopLevel
	}
	var fingerprint []byte
	if c.isIgnored() {
		flags |= span.Ignored
	} else if fingerprint = c.fingerprintOf(s); len(fingerprint) == 0 {
		c.label(s) // fails the table now if only the agent can read a tag
	}
	c.batches.Add(c.batch, fingerprint, span.Snapshot{
		Duration: s.Duration, End: int64(s.Start + s.Duration), Weight: c.weight, Span: number, Flags: flags,
	})
	if c.batches.FingerprintBytes() > c.table.Limits.DerivedBytes {
		c.table.Fail(spantable.ErrTooMuch)
	}
}

// Label returns the key of span number of the last body, see span.Labeller.
func (c *Counter) Label(number uint32) *span.Key {
	s := &c.table.Spans[number]
	c.made = c.made[:0]
	c.Select(c.table, s.First, s.Last)
	return c.label(s)
}

// keep adds the last counted span to kept. span is its index in the table.
func (c *Counter) keep(span int) {
	c.kept = append(c.kept, Kept{
		Batch: int32(c.batch), At: int32(c.batches.Len(c.batch) - 1),
		span: int32(span), group: int32(c.group),
	})
}

// Kept returns the spans of the last body that sampling keeps, if the policy asks for trace IDs.
// The result is valid until the next body. IDs must be called before the body is modified.
func (c *Counter) Kept() []Kept { return c.kept }

// IDs returns the IDs of a span and its trace. traceHigh is 0 if the tracer did not send it.
func (c *Counter) IDs(k Kept) (traceHigh, traceLow, span uint64) {
	g := &c.table.Groups[k.group]
	if !g.IsHighRead {
		g.TraceHigh, g.IsHighRead = c.traceHigh(g), true
	}
	return g.TraceHigh, g.TraceLow, c.table.Spans[k.span].ID
}

// highDigits is the number of hexadecimal digits of the tag that contains the upper half of a trace
// ID in v0.4 to v0.7.
const highDigits = 16

// traceHigh returns the upper half of a trace ID, from the first span that has a valid tag for it.
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

// keptBytes is the memory of an element of Counter.kept. keptText is the limit on memory for texts
// and for kept that a counter keeps for the next body.
const (
	keptBytes = int(unsafe.Sizeof(Kept{}))
	keptText  = 4 << 20
)

// countingBytes is the memory for counting a span: its link, its entry in agent.Spans, and its
// snapshot.
const countingBytes = int(unsafe.Sizeof(agent.Link{})) + 8 + rules.SnapshotBytes

// CounterBytes returns the maximum memory of a counter for bodies of the given length. traceIDs
// reports whether the policy asks for trace IDs.
func CounterBytes(body int, traceIDs bool) int {
	perSpan := countingBytes
	if traceIDs {
		perSpan += keptBytes
	}
	return decode.Bytes(body, perSpan) + anyCounter
}

// IngestedBytes is the memory of CountIngested per span, in addition to the table. AnyCounter is
// the memory that does not depend on the table.
const (
	IngestedBytes = countingBytes
	AnyCounter    = anyCounter
)

// anyCounter is the memory of a counter that does not depend on the body: the normalized labels of
// a span, its fingerprint, and shared strings of the body.
const anyCounter = rules.MaxFingerprint + 160<<10
