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
	countedKinds     spantable.KindSet // kinds of spans that are always counted
	hasTopLevelMarks bool              // the tracer marked top-level spans itself
	keptSpans        []Kept

	// State of the current trace.
	batchNumber int        // number of its batch
	originFlags span.Flags // span.SharedOrigin or 0
	weight      float64    // weight of each span
	recordsKept bool       // counted spans are added to keptSpans
	groupIndex  int        // number of the trace in the table
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

// Count decodes a body and counts its spans. lang is the language of the tracer according to the
// request's headers. hasTopLevelMarks is true if the tracer has marked top-level spans itself. If
// Count returns an error, no span is counted, and the agent must count the body instead.
func (c *Counter) Count(format decode.Format, body []byte, lang string, hasTopLevelMarks bool, policy *Policy) error {
	from := fromTags
	if format == decode.FormatV1 {
		from = fromFields
	}
	c.begin(&c.decoded, from, lang, hasTopLevelMarks, policy)
	if err := c.decoder.Decode(format, body, policy.Names(), c.table); err != nil {
		return err //nolint:wrapcheck // the decoder's error is complete
	}
	return c.countTraces()
}

// CountIngested counts the spans of a table that package translate filled from an OTLP request.
// Each group is a trace. CountIngested changes the table.
func (c *Counter) CountIngested(t *spantable.Table, policy *Policy) error {
	c.begin(t, fromOTLP, "", false, policy)
	c.senders = c.origins.AssignOrigins(c.senders, c.eachSenderOrigin)
	return c.countTraces()
}

// begin resets the counter for a body and selects the rules that apply to it: those of the agent,
// or those of the tracer for lang if the policy asks for them.
func (c *Counter) begin(t *spantable.Table, from source, lang string, hasTopLevelMarks bool, policy *Policy) {
	c.table = t
	c.source = from
	c.policy = policy
	c.rulebookID = agentRules
	if policy.ofTracer {
		c.rulebookID = rulebookOf(lang)
	}
	c.rulebook = &rulebooks[c.rulebookID]
	c.bookLabels = &policy.labels.byRulebook[c.rulebookID]
	c.countedKinds = policy.countedKinds & c.rulebook.counts
	c.hasTopLevelMarks = hasTopLevelMarks || !c.rulebook.followsAgent // tracers' rules use only the marks
	c.services.reset(lang)
	c.batches.Reset(c)
	c.origins.Reset()
	c.keptSpans = c.keptSpans[:0]
	c.scratch = c.scratch[:0]
	c.senders = c.senders[:0]
}

// countTraces counts the spans of all traces in the table. It stops at the first error, for which
// the agent must count the body instead.
func (c *Counter) countTraces() error {
	for i := range c.table.Groups {
		if c.table.Err() != nil {
			break
		}
		c.countTrace(i)
	}
	return c.table.Err() //nolint:wrapcheck // the decoder's error is complete
}

// Batches iterates over the batches of the last body. Each contains the counted spans of one base
// service, the configured service of a process. A batch is valid until the next body.
func (c *Counter) Batches(yield func(baseService string, batch *span.Batch) bool) {
	for origin, batch := range c.batches.All {
		if !yield(origin.Service, batch) {
			return
		}
	}
}

// IngestedBatches iterates over the batches that the last call of CountIngested has filled, and
// their origins. A batch is valid until the next body; its origin remains valid.
func (c *Counter) IngestedBatches(yield func(origin span.Origin, batch *span.Batch) bool) {
	for from, batch := range c.batches.All {
		origin := c.origins.Get(from.Number)
		origin.Service = from.Service
		if !yield(origin, batch) {
			return
		}
	}
}

// Decoded returns the table of the last body and its decoder.
func (c *Counter) Decoded() (*spantable.Table, *decode.Decoder) { return &c.decoded, &c.decoder }

// Release drops all references to the last body. If the body was very large, Release also frees the
// memory that the counter would otherwise keep for the next body.
func (c *Counter) Release() {
	c.decoder.Release()
	wasLarge := c.decoded.Release()
	if wasLarge || cap(c.scratch) > keptText || cap(c.keptSpans)*keptBytes > keptText {
		c.links = nil
		c.scratch = nil
		c.keptSpans = nil
	}
	c.batches.Release()
	c.key.Clear()
	clear(c.links[:cap(c.links)])
	c.origins.Reset()
	c.table = &c.decoded
	c.keptSpans = c.keptSpans[:0]
}

// countTrace counts the spans of the trace with the given index in the table. It counts none of
// them if the agent would drop the trace.
func (c *Counter) countTrace(index int) {
	g := &c.table.Groups[index]
	spans := c.table.SpansOf(g)
	if len(spans) == 0 || !c.normalizeSpans(spans) {
		return
	}
	if !c.hasTopLevelMarks {
		c.findParents(spans)
	}
	root := c.findRoot(spans)
	if c.rulebook.honorsIgnoredResources && c.isIgnoredTrace(root) {
		return
	}
	c.applyRoot(root, g)
	isSynthetic := c.rulebook.isSynthetic(c.table.String(g.Origin))
	isKept := g.HasPriority && g.Priority > 0
	c.groupIndex = index
	c.recordsKept = c.policy.traceIDs && isKept && g.TraceLow != 0
	for i := range spans {
		if c.table.Err() != nil {
			return // the agent counts the body
		}
		s := &spans[i]
		c.Select(c.table, s.First, s.Last)
		s.IsSynthetic = isSynthetic
		if !c.rulebook.followsAgent {
			c.readTracerTags(s)
		}
		isTopLevel := c.isTopLevel(i)
		if !c.isCounted(s, isTopLevel) {
			continue
		}
		tableIndex := int(g.First) + i
		c.addSnapshot(uint32(tableIndex), isTopLevel)
		if c.recordsKept {
			c.recordKept(tableIndex)
		}
	}
}

// year2000 is the earliest start of a span that the agent accepts.
const year2000 = 946684800e9

// normalizeSpans corrects the IDs, start times and durations of the spans of a trace like the agent.
// It returns false if the trace is not counted because a span has no ID or an invalid start time.
// An invalid start time also fails the table, so that the agent counts the body.
func (c *Counter) normalizeSpans(spans []spantable.Span) bool {
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

// applyRoot reads the sample rate and the base service from the root span of a trace. They determine
// the weight of the trace's spans and the batch to which the spans are added.
func (c *Counter) applyRoot(root *spantable.Span, g *spantable.Group) {
	c.Select(c.table, root.First, root.Last)
	c.weight = 1
	if c.rulebook.usesSampleRate {
		c.weight = agent.WeightOf(c.numberValue(labelSampleRate))
	}
	if !wire.ValidWeight(c.weight) {
		c.table.Fail(decode.ErrUnparsable)
		c.weight = 1
	}
	c.selectBatch(g, c.mainService(root))
}

// selectBatch selects the batch to which the spans of the current trace are added: that of its sender
// and base service. If there are too many batches, the spans of an OTLP request are counted under
// the common origin. For a tracer's body, selectBatch fails the table, so that the agent counts it.
func (c *Counter) selectBatch(g *spantable.Group, baseService string) {
	var place rules.Place
	if len(c.senders) > 0 {
		place = c.senders[g.Sender]
	}
	origin := rules.Origin{Number: int(place.Number), Service: baseService}
	if origin.Number == rules.Common {
		origin.Service = ""
	}
	number, hasBatch := c.batches.FindOrAdd(origin)
	switch {
	case hasBatch:
	case c.source == fromOTLP:
		common := c.origins.MergeIntoCommon(c.origins.Get(origin.Number))
		number, _ = c.batches.FindOrAdd(rules.Origin{Number: common})
		place.IsShared = true
	default:
		c.table.Fail(spantable.ErrTooMuch)
	}
	c.batchNumber = number
	c.originFlags = 0
	if place.IsShared {
		c.originFlags = span.SharedOrigin
	}
}

// findRoot returns the root of a trace: the last span without a parent. If every span has a parent,
// it returns the span that the agent would choose.
func (c *Counter) findRoot(spans []spantable.Span) *spantable.Span {
	for i := len(spans) - 1; i >= 0; i-- {
		if spans[i].Parent == 0 {
			return &spans[i]
		}
	}
	if c.hasTopLevelMarks {
		c.findParents(spans)
	}
	return &spans[c.spans.Root()]
}

// findParents finds the parent of each span of a trace, and stores the result in c.spans. It reads
// the services of the spans only if top-level spans must be found.
func (c *Counter) findParents(spans []spantable.Span) {
	c.links = c.links[:0]
	for i := range spans {
		s := &spans[i]
		link := agent.Link{Span: s.ID, Parent: s.Parent}
		if !c.hasTopLevelMarks && c.table.Err() == nil {
			link.Service = c.services.normalize(c.validText(s.Service))
		}
		c.links = append(c.links, link)
	}
	c.spans.Reset(c.links)
}

// isTopLevel reports whether the current span, which has the given index in its trace, is top-level.
func (c *Counter) isTopLevel(index int) bool {
	if !c.hasTopLevelMarks && c.spans.IsTopLevel(index) {
		return true
	}
	return c.isOne(labelTopLevel) || c.isOne(labelTracerTopLevel)
}

// isCounted reports whether s, the current span, is counted. It must be a top-level span, have a
// span kind for which the policy counts all spans, or be marked as measured. A span that the
// tracer sent before it was finished is never counted.
func (c *Counter) isCounted(s *spantable.Span, isTopLevel bool) bool {
	isRelevant := isTopLevel || c.countedKinds.Has(s.Kind) || c.isOne(labelMeasured)
	if !isRelevant {
		return false
	}
	if c.rulebook.nonzeroOnly && s.Duration == 0 {
		return false
	}
	version, ok := c.numberValue(labelPartialVersion)
	isUnfinished := ok && version >= 0
	return !isUnfinished
}

// isIgnoredTrace reports whether the agent ignores a trace because of the resource of its root. If
// the root has no resource, the agent uses its operation instead.
func (c *Counter) isIgnoredTrace(root *spantable.Span) bool {
	if len(c.policy.ignoredResources) == 0 {
		return false
	}
	resource := c.validText(root.Resource)
	if len(resource) == 0 {
		k := span.Key{Operation: c.cloneText(root.Name)}
		k.Normalize("") // copies the normalized operation to the resource
		resource = []byte(k.Resource)
	}
	return c.policy.ignoresResource(resource)
}

// addSnapshot adds the current span to the batch of its trace. index is the index of the span in the
// table. addSnapshot fails the table if only the agent can count the span.
func (c *Counter) addSnapshot(index uint32, isTopLevel bool) {
	s := &c.table.Spans[index]
	if s.HasUnknownType {
		c.table.Fail(decode.ErrUnparsable)
		return
	}
	c.scratch = c.scratch[:0]
	flags := c.originFlags
	if s.Status == spantable.StatusError {
		flags |= span.Error
	}
	if isTopLevel {
		flags |= span.TopLevel
	}
	var fingerprint []byte
	if c.matchesIgnoreRule() {
		flags |= span.Ignored
	} else {
		fingerprint = c.makeFingerprint(s)
		if len(fingerprint) == 0 {
			c.makeKey(s) // fails the table now if only the agent can read a tag
		}
	}
	c.batches.Add(c.batchNumber, fingerprint, span.Snapshot{
		Duration: s.Duration, End: int64(s.Start + s.Duration), Weight: c.weight, Span: index, Flags: flags,
	})
	if c.batches.FingerprintBytes() > c.table.Limits.DerivedBytes {
		c.table.Fail(spantable.ErrTooMuch)
	}
}

// Label returns the key of the span with the given index in the table of the last body. The key is
// valid until the next call. Label implements span.Labeller.
func (c *Counter) Label(index uint32) *span.Key {
	s := &c.table.Spans[index]
	c.scratch = c.scratch[:0]
	c.Select(c.table, s.First, s.Last)
	return c.makeKey(s)
}

// recordKept records that sampling keeps the trace of the span that was added to a batch last. index
// is the index of the span in the table.
func (c *Counter) recordKept(index int) {
	lastOfBatch := c.batches.Len(c.batchNumber) - 1
	c.keptSpans = append(c.keptSpans, Kept{
		Batch: int32(c.batchNumber), At: int32(lastOfBatch),
		span: int32(index), group: int32(c.groupIndex),
	})
}

// Kept returns the counted spans of the last body whose traces sampling keeps. It returns nothing
// unless the policy asks for trace IDs. The result is valid until the next body.
func (c *Counter) Kept() []Kept { return c.keptSpans }

// IDs returns the IDs of a span and its trace. traceHigh is 0 if the tracer did not send the upper
// half of the trace ID. The caller must not have modified the body.
func (c *Counter) IDs(k Kept) (traceHigh, traceLow, span uint64) {
	g := &c.table.Groups[k.group]
	if !g.IsHighRead {
		g.TraceHigh = c.readTraceHigh(g)
		g.IsHighRead = true
	}
	return g.TraceHigh, g.TraceLow, c.table.Spans[k.span].ID
}

// highDigits is the number of hexadecimal digits of the tag that contains the upper half of a trace
// ID in v0.4 to v0.7.
const highDigits = 16

// readTraceHigh returns the upper half of a trace ID, which is a tag of one of its spans. It reads
// the first valid tag, and returns 0 if there is none.
func (c *Counter) readTraceHigh(g *spantable.Group) uint64 {
	spans := c.table.SpansOf(g)
	for i := range spans {
		tags := c.table.TagsOf(&spans[i])
		for j := range tags {
			tag := &tags[j]
			hasValidLength := tag.Value == spantable.IsText && tag.Text().Len == highDigits
			if tag.Label != decode.LabelTraceHigh || !hasValidLength {
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

// CounterBytes returns the maximum memory of a counter for bodies of bodyLen bytes. traceIDs is true
// if the policy asks for trace IDs.
func CounterBytes(bodyLen int, traceIDs bool) int {
	perSpan := countingBytes
	if traceIDs {
		perSpan += keptBytes
	}
	return decode.Bytes(bodyLen, perSpan) + anyCounter
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
