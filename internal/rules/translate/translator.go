// Package translate converts an OTLP request to Datadog traces, like the Datadog agent's OTLP
// ingest with the second version of its span names. The agent's rules (package datadog) then count
// those traces like traces of any tracer, so that one implementation counts like the agent.
//
// # Translation
//
// A Translator fills a table of Datadog spans from the decoded request. It creates only the tags
// that the rules ask for. Texts remain references into the request's body; texts that the ingest
// generates are stored in the new table. The attributes of a resource or scope are read once, into
// a list with one tag per label, so the time is proportional to the length of the request.
//
// A resource that is marked as counted (_dd.stats_computed) is not translated. A request can be
// marked for all resources that do not set the attribute. If a resource does not name its host, the
// host is left to the agent. Only the agent can convert a list to a tag, so a request that needs it
// is not translated.
//
// # Limits
//
// The new table has the limits of the request's length. Bytes returns the total.
//
// # Concurrency
//
// One goroutine at a time may use a Translator. The next request reuses its memory, so that
// translating a span allocates nothing once the translator is warm.
package translate

import (
	"slices"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/decode/otlp"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// Translator converts OTLP requests to tables of Datadog spans.
type Translator struct {
	spanBuilder
	traces       traces
	countedSpans int // spans of the last request that were counted before, see Counted
}

// New returns a translator that creates only the wanted tags. It fails if these tags are made from more
// than spantable.MaxLabels attributes.
func New(wanted *spantable.Names) (*Translator, error) {
	v, err := newVocabulary(wanted)
	if err != nil {
		return nil, err
	}
	return &Translator{spanBuilder: spanBuilder{vocabulary: v}}, nil
}

// tagBytes is how many bytes of a request allow one tag. A resource adds each of its tags to each
// of its spans, so the new table can have more tags than the request.
const tagBytes = 2

// Bytes returns the maximum memory of a Translator, of a request of bodyLen bytes, and of the table
// that the Translator makes from it. perSpan is the memory that the caller needs for each span in
// addition.
func Bytes(bodyLen, perSpan int) int {
	return otlp.MaxMemory(bodyLen, perSpan+traceBytes) + spantable.LimitsOf(bodyLen, tagBytes).Bytes(0)
}

// Names returns the names of the attributes that are read from spans and from resources.
func (t *Translator) Names() (ofSpans, ofResources *spantable.Names) { return t.ofSpans, t.ofResources }

// Translate converts the spans of an OTLP request to Datadog spans and stores them in output. It leaves
// out spans that the client has counted itself, according to an attribute of their resource, or to
// isRequestCounted if the resource does not have the attribute. If Translate returns an error, output is
// empty, and r.Err returns the same error.
func (t *Translator) Translate(r *otlp.Request, isRequestCounted bool, output *spantable.Table) error {
	t.request = r
	t.output = output
	t.countedSpans = 0
	output.Reset(r.Body, spantable.LimitsOf(len(r.Body), tagBytes))
	for i := range r.Resources {
		resource := &r.Resources[i]
		t.selectResource(resource)
		resource.IsCounted = t.isResourceCounted(isRequestCounted)
		if resource.IsCounted {
			start, end := r.SpansOf(resource)
			t.countedSpans += end - start
			continue
		}
		t.addResource(resource)
		if err := output.Err(); err != nil {
			output.Reset(nil, output.Limits)
			r.Fail(err)
			return err
		}
	}
	return nil
}

// Counted returns the number of spans of the last request that Translate left out, because their client
// had already counted them.
func (t *Translator) Counted() int { return t.countedSpans }

// isResourceCounted reports whether the client has already counted the spans of the current resource,
// according to the attribute _dd.stats_computed. If the resource does not have the attribute, the result
// is isRequestCounted, the default for the request.
func (t *Translator) isResourceCounted(isRequestCounted bool) bool {
	if !t.resourceAttrs.Set.Has(attrComputed) {
		return isRequestCounted
	}
	value := t.output.String(t.resourceTagValue(attrComputed))
	return value != "" && value != "false"
}

// defaultPriority is the sampling priority of every trace: it is kept. OTLP does not carry a priority.
const defaultPriority = 1

// addResource adds the traces of the current resource to the table, and a sender for the resource.
func (t *Translator) addResource(resource *otlp.Resource) {
	r := t.request
	start, end := r.SpansOf(resource)
	if start == end {
		return
	}
	sender := t.sender()
	t.readResource(r.Tags[resource.TagStart:resource.TagEnd])
	spans, traces := t.addTraces(r.Extras[start:end])
	for i := resource.ListStart; i < resource.ListEnd; i++ {
		t.buildSpans(&r.Scopes[i], start, spans, traces)
	}
	for i, tags := range t.traces.tags {
		traces[i].Origin = tags.origin
	}
	senderTags := t.traces.senderTags()
	sender.Version = senderTags.version
	sender.Commit = senderTags.commit
	if sender.Env.Len == 0 {
		sender.Env = senderTags.env
	}
	t.output.Senders = append(t.output.Senders, sender)
}

// buildSpans converts the OTLP spans of a scope to Datadog spans, and sets the IDs of their traces. outputSpans and
// outputTraces are those that addTraces has added to the output for the resource of the scope. firstOfResource is the
// index in the request of the first OTLP span of that resource.
func (t *Translator) buildSpans(
	scope *otlp.Scope, firstOfResource int, outputSpans []spantable.Span, outputTraces []spantable.Group,
) {
	if scope.ListStart == scope.ListEnd {
		return
	}
	r := t.request
	t.readScope(r.Tags[scope.TagStart:scope.TagEnd])
	for i := scope.ListStart; i < scope.ListEnd; i++ {
		if t.output.Err() != nil {
			return
		}
		otlpSpan, extra := &r.Spans[i], &r.Extras[i]
		indexInResource := i - firstOfResource
		outputIndex := t.traces.positions[indexInResource] // output spans are ordered by trace
		t.build(&outputSpans[outputIndex], otlpSpan, r.Bytes(extra.State))

		traceNumber := t.traces.traceNumbers[indexInResource]
		outputTraces[traceNumber].TraceLow = extra.TraceLow
		tagsOfTrace := &t.traces.tags[traceNumber]
		tagsOfTrace.setEmptyFields(t.traceTagsOfSpan()) // the first span of the trace with a tag counts
	}
}

// traceTagsOfSpan returns those tags of the last built span that describe its trace or its sender.
func (t *Translator) traceTagsOfSpan() traceTags {
	return traceTags{
		env:     t.tags.values[t.labels.env].text,
		version: t.tags.values[t.labels.version].text,
		commit:  t.tags.values[t.labels.commit].text,
		origin:  t.tags.values[t.labels.origin].text,
	}
}

// addTraces adds the traces of the given OTLP spans to the output, each with as many empty spans as it has
// OTLP spans. It returns the added spans, ordered by trace, and the added traces.
func (t *Translator) addTraces(otlpSpans []otlp.SpanExtra) (spans []spantable.Span, traces []spantable.Group) {
	t.traces.assignPositions(otlpSpans)
	output := t.output
	oldSpans := len(output.Spans)
	oldTraces := len(output.Groups)
	previousEnd := uint32(0)
	for _, end := range t.traces.ends {
		trace := spantable.Group{SpanStart: uint32(len(output.Spans)), Priority: defaultPriority, HasPriority: true}
		spanCount := end - previousEnd
		output.Spans = append(output.Spans, make([]spantable.Span, spanCount)...)
		output.AddGroup(trace)
		previousEnd = end
	}
	return output.Spans[oldSpans:], output.Groups[oldTraces:]
}

// traces groups the spans of one resource by trace. Datadog identifies a trace by the lower half of
// its ID.
type traces struct {
	numbers spantable.TraceNumbers
	// For each span, in the order of the request:
	traceNumbers []uint32 // number of its trace
	positions    []uint32 // its position when spans are ordered by trace
	// For each trace, by number:
	ends []uint32 // position after its last span
	tags []traceTags
}

// senderTags returns the tags that describe the sender of the traces. Each is taken from the last trace that
// has the tag.
func (t *traces) senderTags() traceTags {
	var combined traceTags
	for _, tags := range slices.Backward(t.tags) {
		combined.setEmptyFields(tags)
	}
	return combined
}

// traceBytes is the memory per span of traces.
const traceBytes = spantable.TraceNumberBytes + 2*(3*4+int(unsafe.Sizeof(traceTags{})))

// assignPositions numbers the traces of the given spans, and assigns a position to each span, so that the spans of a
// trace are consecutive.
func (t *traces) assignPositions(spans []otlp.SpanExtra) {
	t.numbers.Reset(len(spans))
	t.traceNumbers = t.traceNumbers[:0]
	const ignoredHigh = 0 // Datadog identifies a trace by the lower half of its ID
	for i := range spans {
		number := t.numbers.NumberOf(ignoredHigh, spans[i].TraceLow)
		t.traceNumbers = append(t.traceNumbers, uint32(number))
	}
	traceCount := t.numbers.Len()
	t.tags = resizeAndClear(t.tags, traceCount)
	t.setPositions(traceCount)
}

// resizeAndClear returns a slice of n zero values. It reuses the memory of s if it is large enough.
func resizeAndClear[T any](s []T, n int) []T {
	s = slices.Grow(s[:0], n)[:n]
	clear(s)
	return s
}

// setPositions sets positions and ends from traceNumbers. traceCount is the number of traces.
func (t *traces) setPositions(traceCount int) {
	t.ends = resizeAndClear(t.ends, traceCount)
	// Each element of ends is first the number of spans of a trace, then the next free position, and at last the end.
	spanCounts, nextPositions := t.ends, t.ends
	for _, trace := range t.traceNumbers {
		spanCounts[trace]++
	}
	start := uint32(0)
	for trace, count := range spanCounts {
		nextPositions[trace] = start
		start += count
	}
	t.positions = t.positions[:0]
	for _, trace := range t.traceNumbers {
		t.positions = append(t.positions, nextPositions[trace])
		nextPositions[trace]++
	}
}

// traceTags are the tags of spans that describe their trace or their sender. For a trace, the first span
// with the tag counts; for a sender, the last trace with it.
type traceTags struct{ env, version, commit, origin spantable.Text }

// setEmptyFields sets each empty field of f to the same field of other.
func (f *traceTags) setEmptyFields(other traceTags) {
	setIfEmpty := func(field *spantable.Text, text spantable.Text) {
		if field.Len == 0 {
			*field = text
		}
	}
	setIfEmpty(&f.env, other.env)
	setIfEmpty(&f.version, other.version)
	setIfEmpty(&f.commit, other.commit)
	setIfEmpty(&f.origin, other.origin)
}
