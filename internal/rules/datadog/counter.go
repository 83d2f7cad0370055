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

// Counter converts the spans of a body to batches of snapshots, the data that statistics need.
type Counter struct {
	// Now returns the current time. It is called only for spans without a valid start.
	Now func() time.Time

	labeler
	decoder decode.Decoder
	decoded spantable.Table
	// Links of the spans of the current trace to their parents, and an index of the spans by ID.
	links     []agent.Link
	spanIndex agent.Spans
	batches   rules.Batches
	origins   rules.Origins          // origins of the senders of an OTLP request
	senders   []rules.AssignedOrigin // by number of the sender of an OTLP request

	// State of the current body.
	countedKinds  spantable.KindSet // kinds of spans that are always counted
	findsTopLevel bool              // top-level spans are found by their services, because the tracer did not mark them
	sampledSpans  []SampledSpan

	// State of the current trace.
	batchNumber    int        // number of its batch
	originFlags    span.Flags // span.SharedOrigin or 0
	weight         float64    // weight of each span
	recordsSampled bool       // counted spans are added to sampledSpans
	traceIndex     int        // index of the trace in the table
}

// SampledSpan is a counted span of a trace that is certainly sampled: its trace will be in the backend
// after the Datadog agent has accepted the body, unless the agent samples by trace ID. Only traces with
// a positive sampling priority count, because the agent decides about all others.
type SampledSpan struct {
	Batch int32 // number of the batch that contains the span
	Index int32 // index of the span in the batch
	span  int32 // index of the span in the table
	trace int32 // index of its trace in the table
}

// MaxBaseServices is the maximum number of base services in the body of a tracer, that is of services
// that are configured for its processes. Each needs a publisher.
const MaxBaseServices = rules.MaxOrigins

// NewCounter returns a counter.
func NewCounter() *Counter { return &Counter{Now: time.Now} }

// Count decodes body and counts its spans in batches, which Batches returns. lang is the language of
// the tracer according to the request headers. hasTopLevelMarks reports whether the tracer has marked
// top-level spans. If Count returns an error, the batches are incomplete: the caller must ignore them
// and leave the whole body to the Datadog agent.
func (c *Counter) Count(format decode.Format, body []byte, lang string, hasTopLevelMarks bool, policy *Policy) error {
	source := sourceV04
	if format == decode.FormatV1 {
		source = sourceV1
	}
	c.prepare(&c.decoded, source, lang, hasTopLevelMarks, policy)
	if err := c.decoder.Decode(format, body, policy.Names(), c.table); err != nil {
		return err //nolint:wrapcheck // the decoder's error is complete
	}
	return c.countTraces()
}

// CountIngested counts the spans in t, a table that package translate has filled from an OTLP request,
// with one group per trace. It modifies t. If it returns an error, the batches are incomplete, and the
// caller must ignore them.
func (c *Counter) CountIngested(t *spantable.Table, policy *Policy) error {
	const lang, hasTopLevelMarks = "", false // OTLP requests do not come from a Datadog tracer
	c.prepare(t, sourceOTLP, lang, hasTopLevelMarks, policy)
	c.senders = c.origins.AssignOrigins(c.senders, c.eachSenderOrigin)
	return c.countTraces()
}

// prepare prepares the counter for the spans in t, which come from source s. lang is the language of the tracer, or ""
// for an OTLP request. hasTopLevelMarks reports whether the tracer has marked top-level spans. policy has the
// configured labels and rules.
func (c *Counter) prepare(t *spantable.Table, s source, lang string, hasTopLevelMarks bool, policy *Policy) {
	c.table = t
	c.source = s
	c.policy = policy
	c.selectRulebook(lang)
	// The agent finds top-level spans itself if the tracer has not marked them. Tracers' rules require marks.
	c.findsTopLevel = c.rulebook.followsAgent && !hasTopLevelMarks
	c.services.reset(lang)
	c.batches.Reset(c)
	c.origins.Reset()
	c.sampledSpans = c.sampledSpans[:0]
	c.scratch = c.scratch[:0]
	c.senders = c.senders[:0]
}

// selectRulebook selects the rules by which spans are counted: those of the Datadog agent, or if the policy
// asks for a tracer's rules, those of the tracer for the language lang.
func (c *Counter) selectRulebook(lang string) {
	c.rulebookID = agentRules
	if c.policy.usesTracerRules {
		c.rulebookID = rulebookOf(lang)
	}
	c.rulebook = &rulebooks[c.rulebookID]
	c.ruleLabels = &c.policy.labels.byRulebook[c.rulebookID]
	c.countedKinds = c.policy.countedKinds & c.rulebook.countableKinds
}

// countTraces counts the spans of all traces in the table. It stops at the first error and returns it.
// The batches are then incomplete, and the caller must ignore them.
func (c *Counter) countTraces() error {
	traces := c.table.Groups
	for i := range traces {
		if c.table.Err() != nil {
			break
		}
		c.countTrace(i)
	}
	return c.table.Err() //nolint:wrapcheck // the decoder's error is complete
}

// Batches iterates over the batches of the last body that was counted. It yields each batch with its base service, the
// service that is configured for the process. A batch is valid until the next body is counted.
func (c *Counter) Batches(yield func(baseService string, batch *span.Batch) bool) {
	for id, batch := range c.batches.All {
		if !yield(id.Service, batch) {
			return
		}
	}
}

// IngestedBatches iterates over the batches that the last call of CountIngested has filled. It yields
// each batch with its origin, the description of the process that sent its spans. Both are valid until
// the next body is counted.
func (c *Counter) IngestedBatches(yield func(origin span.Origin, batch *span.Batch) bool) {
	for id, batch := range c.batches.All {
		origin := c.origins.Get(id.Origin)
		origin.Service = id.Service
		if !yield(origin, batch) {
			return
		}
	}
}

// Decoded returns the table of the last body and its decoder.
func (c *Counter) Decoded() (*spantable.Table, *decode.Decoder) { return &c.decoded, &c.decoder }

// Release drops all references to the last body. It keeps the memory of the counter for the next body,
// but frees large buffers if the last body was unusually large.
func (c *Counter) Release() {
	c.decoder.Release()
	c.batches.Release()
	c.key.Clear()
	c.origins.Reset()
	c.table = &c.decoded          // instead of the table of an OTLP request
	clear(c.links[:cap(c.links)]) // also those of earlier, longer bodies
	c.sampledSpans = c.sampledSpans[:0]
	wasLargeBody := c.decoded.Release()
	if wasLargeBody || c.hasLargeBuffer() {
		c.links = nil
		c.scratch = nil
		c.sampledSpans = nil
	}
}

// hasLargeBuffer reports whether a buffer has more memory than a counter keeps for the next body.
func (c *Counter) hasLargeBuffer() bool {
	sampledBytes := cap(c.sampledSpans) * sampledSpanBytes
	return cap(c.scratch) > maxReusedBytes || sampledBytes > maxReusedBytes
}

// countTrace counts the spans of the trace with the given index in the table. It counts none of them if
// the Datadog agent would drop the trace.
func (c *Counter) countTrace(index int) {
	g := &c.table.Groups[index]
	spans := c.table.SpansOf(g)
	if len(spans) == 0 || !c.normalizeSpans(spans) {
		return
	}
	if c.findsTopLevel {
		c.indexSpans(spans)
	}
	root := c.findRoot(spans)
	if c.rulebook.honorsIgnoredResources && c.isIgnoredTrace(root) {
		return
	}
	c.selectSpan(root)
	c.setWeight()
	c.selectBatch(g, c.mainService(root))
	isSynthetic := c.rulebook.isSynthetic(c.table.String(g.Origin))
	hasKeepingPriority := g.HasPriority && g.Priority > 0
	c.traceIndex = index
	c.recordsSampled = c.policy.traceIDs && hasKeepingPriority && g.TraceLow != 0
	for i := range spans {
		if c.table.Err() != nil {
			return // the agent counts the body
		}
		s := &spans[i]
		c.selectSpan(s)
		s.IsSynthetic = isSynthetic
		if !c.rulebook.followsAgent {
			c.setKindAndSynthetic(s)
		}
		isTopLevel := c.isTopLevel(i)
		if !c.isCounted(s, isTopLevel) {
			continue
		}
		tableIndex := int(g.SpanStart) + i
		c.addSnapshot(uint32(tableIndex), isTopLevel)
		if c.recordsSampled {
			c.addSampled(tableIndex)
		}
	}
}

// year2000 is the earliest start of a span that the agent accepts.
const year2000 = 946684800e9

// normalizeSpans corrects the parents, start times and durations of the spans of a trace, like the
// Datadog agent. It returns false if a span has no ID or starts before 1970, because such a trace is
// not counted. A start before 1970 is also recorded as an error in the table.
func (c *Counter) normalizeSpans(spans []spantable.Span) bool {
	for i := range spans {
		s := &spans[i]
		if s.ID == 0 {
			return false
		}
		if s.Parent == s.ID {
			s.Parent = 0
		}
		isNegativeStart := s.Start > math.MaxInt64
		if isNegativeStart {
			c.table.Fail(decode.ErrUnparsable)
			return false
		}
		c.normalizeTime(s)
	}
	return true
}

// normalizeTime sets the duration of s to 0 if its end would overflow. If s starts before 2000, normalizeTime
// sets its start so that it ends now. If s is too long for that, because it would start before 1970, it starts now.
func (c *Counter) normalizeTime(s *spantable.Span) {
	if s.Duration > math.MaxInt64-s.Start {
		s.Duration = 0
	}
	if s.Start >= year2000 {
		return
	}
	s.Start = uint64(c.Now().UnixNano())
	if s.Duration <= s.Start {
		s.Start -= s.Duration
	}
}

// setWeight sets c.weight, the number of spans that each span of a sampled trace represents. The rules of the Datadog
// agent derive the weight from the sample rate, a tag of the trace's root, which must be the current span. With the
// rules of a tracer, the weight is always 1. An invalid weight is recorded as an error in the table.
func (c *Counter) setWeight() {
	c.weight = 1
	if !c.rulebook.usesSampleRate {
		return
	}
	rate, hasRate := c.tagNumber(labelSampleRate)
	weight := agent.WeightOf(rate, hasRate)
	if !wire.ValidWeight(weight) {
		c.table.Fail(decode.ErrUnparsable)
		return
	}
	c.weight = weight
}

// selectBatch sets c.batchNumber, the batch for the spans of the trace g, and c.originFlags, which is SharedOrigin if
// the batch also contains spans of other processes. Spans are in the same batch if the same process sent them and they
// have the same base service. If there are too many batches, selectBatch selects the batch of the common origin for an
// OTLP request, and records an error in the table for other requests.
func (c *Counter) selectBatch(g *spantable.Group, baseService string) {
	origin := c.originOf(g)
	originNumber := int(origin.Number)
	isShared := origin.IsShared
	if originNumber == rules.CommonOrigin {
		baseService = "" // the common origin describes processes of several services
	}
	number, hasBatch := c.batches.FindOrAdd(rules.BatchID{Origin: originNumber, Service: baseService})
	hasTooMany := !hasBatch
	if hasTooMany && c.source != sourceOTLP {
		c.table.Fail(spantable.ErrTooMuch) // the agent counts the body
		return
	}
	if hasTooMany {
		number = c.findCommonBatch(originNumber)
		isShared = true
	}
	c.batchNumber = number
	c.originFlags = 0
	if isShared {
		c.originFlags = span.SharedOrigin
	}
}

// originOf returns the origin of the process that sent the trace g. Only an OTLP request can have several.
func (c *Counter) originOf(g *spantable.Group) rules.AssignedOrigin {
	if c.source != sourceOTLP {
		return rules.AssignedOrigin{Number: 0}
	}
	return c.senders[g.Sender]
}

// findCommonBatch returns the number of the batch of the common origin, for processes without a batch of their own. It
// makes the common origin describe the process with the given origin as well.
func (c *Counter) findCommonBatch(originNumber int) int {
	common := c.origins.MergeIntoCommon(c.origins.Get(originNumber))
	number, _ := c.batches.FindOrAdd(rules.BatchID{Origin: common})
	return number
}

// findRoot returns the root of a trace: the last span without a parent ID. If all spans have one, it
// returns a span whose parent is not in the trace, or the last span if there is no such span either.
func (c *Counter) findRoot(spans []spantable.Span) *spantable.Span {
	for i := len(spans) - 1; i >= 0; i-- {
		if spans[i].Parent == 0 {
			return &spans[i]
		}
	}
	if !c.findsTopLevel { // otherwise countTrace has already indexed the spans
		c.indexSpans(spans)
	}
	return &spans[c.spanIndex.Root()]
}

// indexSpans fills c.spanIndex, which finds the parent of each span by its ID. If c.findsTopLevel, the index
// also contains the service of each span: a span is top-level if its service differs from that of its
// parent. If the services need too much memory, indexSpans records an error in the table and omits the rest.
func (c *Counter) indexSpans(spans []spantable.Span) {
	c.links = c.links[:0]
	for i := range spans {
		s := &spans[i]
		link := agent.Link{Span: s.ID, Parent: s.Parent}
		if c.findsTopLevel && c.table.Err() == nil {
			link.Service = c.services.normalize(c.validBytes(s.Service))
		}
		c.links = append(c.links, link)
	}
	c.spanIndex.Reset(c.links)
}

// isTopLevel reports whether the current span, which has the given index in its trace, is top-level.
func (c *Counter) isTopLevel(index int) bool {
	if c.findsTopLevel && c.spanIndex.IsTopLevel(index) {
		return true
	}
	return c.isOne(labelTopLevel) || c.isOne(labelTracerTopLevel)
}

// isCounted reports whether s is part of the statistics: if it is top-level, has a kind in
// c.countedKinds, or has the tag _dd.measured. It returns false for unfinished spans, and by the rules
// of some tracers for spans without a duration. s must be the current span, whose tags c reads.
func (c *Counter) isCounted(s *spantable.Span, isTopLevel bool) bool {
	isRelevant := isTopLevel || c.countedKinds.Has(s.Kind) || c.isOne(labelMeasured)
	if !isRelevant {
		return false
	}
	if c.rulebook.ignoresZeroDuration && s.Duration == 0 {
		return false
	}
	// The tag is 0 or more if the tracer will send the span again when it is finished.
	version, hasVersion := c.tagNumber(labelPartialVersion)
	isUnfinished := hasVersion && version >= 0
	return !isUnfinished
}

// isIgnoredTrace reports whether the Datadog agent is configured to ignore a trace because of the resource
// of root, its root span. If root has no resource, its operation counts as the resource, like in the agent.
func (c *Counter) isIgnoredTrace(root *spantable.Span) bool {
	if len(c.policy.ignoredResources) == 0 {
		return false
	}
	resource := c.validBytes(root.Resource)
	if len(resource) == 0 {
		operation := normalizeOperation(c.cloneText(root.Name))
		resource = []byte(operation)
	}
	return c.policy.ignoresResource(resource)
}

// normalizeOperation returns the name of an operation as the Datadog agent normalizes it.
func normalizeOperation(name string) string {
	const unknownLang = "" // only the normalization of the service depends on it
	key := span.Key{Operation: name}
	key.Normalize(unknownLang)
	return key.Operation
}

// addSnapshot adds the current span, which has the given index in the table, to the batch c.batchNumber. A span
// that an ignore rule matches is added without a fingerprint. addSnapshot records an error in the table if the
// batches are too large, or if only the Datadog agent can read the span.
func (c *Counter) addSnapshot(index uint32, isTopLevel bool) {
	s := &c.table.Spans[index]
	if s.HasUnknownType {
		c.table.Fail(decode.ErrUnparsable)
		return
	}
	c.scratch = c.scratch[:0] // contains texts of the previous span
	isIgnored := c.matchesIgnoreRule()
	var fingerprint []byte
	if !isIgnored {
		fingerprint = c.checkedFingerprint(s)
	}
	c.batches.AddSnapshot(c.batchNumber, fingerprint, span.Snapshot{
		Duration: s.Duration,
		End:      int64(s.Start + s.Duration),
		Weight:   c.weight,
		Span:     index,
		Flags:    c.originFlags | flagsOf(s, isTopLevel, isIgnored),
	})
	if c.batches.FingerprintBytes() > c.table.Limits.DerivedBytes {
		c.table.Fail(spantable.ErrTooMuch)
	}
}

// checkedFingerprint returns the fingerprint of s, the current span, or nil if makeFingerprint can't make one. It then
// records an error in the table if makeKey can't make the key of s either, because a label is a list or a map.
func (c *Counter) checkedFingerprint(s *spantable.Span) []byte {
	fingerprint := c.makeFingerprint(s)
	if fingerprint == nil {
		c.makeKey(s) // only to record the error; Label makes the key again when it is needed
	}
	return fingerprint
}

// flagsOf returns the flags of a span in a batch: whether it failed, is top-level, or is ignored.
func flagsOf(s *spantable.Span, isTopLevel, isIgnored bool) (flags span.Flags) {
	if s.Status == spantable.StatusError {
		flags |= span.Error
	}
	if isTopLevel {
		flags |= span.TopLevel
	}
	if isIgnored {
		flags |= span.Ignored
	}
	return flags
}

// Label returns the key of a span of the last body, the label set under which it is counted. index is
// the index of the span in the table. The key is valid until the next call. Label implements
// span.Labeler.
func (c *Counter) Label(index uint32) *span.Key {
	s := &c.table.Spans[index]
	c.scratch = c.scratch[:0]
	c.selectSpan(s)
	return c.makeKey(s)
}

// addSampled adds the span that was added to a batch last to c.sampledSpans. tableIndex is its index in the table.
func (c *Counter) addSampled(tableIndex int) {
	batchIndex := c.batches.Len(c.batchNumber) - 1
	c.sampledSpans = append(c.sampledSpans, SampledSpan{
		Batch: int32(c.batchNumber),
		Index: int32(batchIndex),
		span:  int32(tableIndex),
		trace: int32(c.traceIndex),
	})
}

// SampledSpans returns those counted spans of the last body whose trace has a positive sampling priority
// (see SampledSpan). It returns none unless Labels.TraceIDs is set. The result is valid until the next
// body is counted.
func (c *Counter) SampledSpans() []SampledSpan { return c.sampledSpans }

// IDs returns the trace ID of s as two halves, and the span ID. traceHigh is 0 if the tracer did not
// send the upper half. IDs reads the last body, so it must be called before the body is modified or
// another one is counted.
func (c *Counter) IDs(s SampledSpan) (traceHigh, traceLow, spanID uint64) {
	trace := &c.table.Groups[s.trace]
	if !trace.IsHighRead {
		trace.TraceHigh = c.readTraceHigh(trace)
		trace.IsHighRead = true
	}
	return trace.TraceHigh, trace.TraceLow, c.table.Spans[s.span].ID
}

// highDigits is the number of hexadecimal digits of the tag that contains the upper half of a trace
// ID in v0.4 to v0.7.
const highDigits = 16

// readTraceHigh returns the upper half of the ID of the trace g. It reads the first valid tag that contains
// this half among the tags of all spans of the trace. It returns 0 if there is none.
func (c *Counter) readTraceHigh(g *spantable.Group) uint64 {
	spans := c.table.SpansOf(g)
	for i := range spans {
		tags := c.table.TagsOf(&spans[i])
		for j := range tags {
			if tags[j].Label != decode.LabelTraceHigh {
				continue
			}
			if high, isValid := c.parseTraceHigh(&tags[j]); isValid {
				return high
			}
		}
	}
	return 0
}

// parseTraceHigh returns the upper half of a trace ID in the tag t. It returns false if the value does not
// consist of 16 hexadecimal digits.
func (c *Counter) parseTraceHigh(t *spantable.Tag) (high uint64, isValid bool) {
	hasValidLength := t.Type == spantable.TypeText && t.Text().Len == highDigits
	if !hasValidLength {
		return 0, false
	}
	const base, bitSize = 16, 64
	high, err := strconv.ParseUint(c.table.String(t.Text()), base, bitSize)
	return high, err == nil
}

// sampledSpanBytes is the memory of an element of Counter.sampledSpans. maxReusedBytes limits the
// memory of sampledSpans, and that of scratch, that a counter keeps for the next body.
const (
	sampledSpanBytes = int(unsafe.Sizeof(SampledSpan{}))
	maxReusedBytes   = 4 << 20
)

// countingBytes is the memory for counting a span: its link, its entry in agent.Spans, and its
// snapshot.
const countingBytes = int(unsafe.Sizeof(agent.Link{})) + 8 + rules.SnapshotBytes

// CounterBytes returns the maximum memory of a counter for bodies of bodyLen bytes. traceIDs is true if
// the counter also records the sampled spans of a body (see Labels.TraceIDs).
func CounterBytes(bodyLen int, traceIDs bool) int {
	perSpan := countingBytes
	if traceIDs {
		perSpan += sampledSpanBytes
	}
	return decode.MaxMemory(bodyLen, perSpan) + FixedCounterBytes
}

// IngestedBytes is the memory of CountIngested per span, in addition to the table. FixedCounterBytes is the
// memory of a counter that does not depend on the body.
const (
	IngestedBytes     = countingBytes
	FixedCounterBytes = rules.MaxFingerprint + 160<<10 // a fingerprint, the labels of a span, shared strings of the body
)
