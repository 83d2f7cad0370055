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
	traces  traces
	counted int // spans of the last request that were counted before, see Counted
}

// New returns a translator for the tags that the agent's rules ask for. It fails if they need more
// attributes than spantable.MaxLabels.
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

// Bytes returns the maximum memory of a Translator, its request of length body and the new table.
// perSpan is added for each span.
func Bytes(body, perSpan int) int {
	return otlp.Bytes(body, perSpan+traceBytes) + spantable.LimitsOf(body, tagBytes).Bytes(0)
}

// Names returns the names of the attributes that are read from spans and from resources.
func (t *Translator) Names() (ofSpans, ofResources *spantable.Names) { return t.ofSpans, t.ofResources }

// Translate fills the table to from a request. isCounted reports whether the spans of the request were
// counted before; a resource can override it. On an error the table is empty, and the request has
// failed with the same error.
func (t *Translator) Translate(r *otlp.Request, isCounted bool, to *spantable.Table) error {
	t.request, t.to, t.counted = r, to, 0
	to.Reset(r.Body, spantable.LimitsOf(len(r.Body), tagBytes))
	for i := range r.Resources {
		resource := &r.Resources[i]
		t.selectResource(resource)
		resource.IsCounted = t.isCounted(isCounted)
		if resource.IsCounted {
			first, last := r.SpansOf(resource)
			t.counted += last - first
			continue
		}
		t.addResource(resource)
		if err := to.Err(); err != nil {
			to.Reset(nil, to.Limits)
			r.Fail(err)
			return err
		}
	}
	return nil
}

// Counted returns how many spans of the last request are not in the table because they were counted
// before.
func (t *Translator) Counted() int { return t.counted }

// isCounted reports whether the spans of the selected resource were counted before. As in the
// agent's receiver, the resource's attribute takes precedence over byRequest, the mark of the
// request.
func (t *Translator) isCounted(byRequest bool) bool {
	if !t.resourceAttrs.Set.Has(attrComputed) {
		return byRequest
	}
	value := t.to.String(t.resourceTag(attrComputed))
	return value != "" && value != "false"
}

// keptByDefault is the sampling priority of every trace. OTLP does not carry a priority.
const keptByDefault = 1

// addResource adds the traces of the selected resource to the table, and a sender for the resource.
func (t *Translator) addResource(resource *otlp.Resource) {
	r, to := t.request, t.to
	first, last := r.SpansOf(resource)
	if first == last {
		return
	}
	sender := t.sender()
	t.readResource(r.Tags[resource.FirstTag:resource.LastTag])
	spans, groups := t.addTraces(r.Extras[first:last])
	for i := resource.First; i < resource.Last; i++ {
		scope := &r.Scopes[i]
		if scope.First < scope.Last {
			t.readScope(r.Tags[scope.FirstTag:scope.LastTag])
		}
		for j := scope.First; j < scope.Last && to.Err() == nil; j++ {
			index, extra := j-first, &r.Extras[j]
			trace := t.traces.numberOf[index]
			t.fill(&spans[t.traces.position[index]], &r.Spans[j], r.Bytes(extra.State))
			groups[trace].TraceLow = extra.TraceLow
			t.traces.facts[trace].addMissing(traceFacts{
				t.tags.values[t.env].text, t.tags.values[t.version].text,
				t.tags.values[t.commit].text, t.tags.values[t.origin].text,
			})
		}
	}
	var senderFacts traceFacts
	for i, facts := range t.traces.facts {
		groups[i].Origin = facts.origin
		facts.addMissing(senderFacts)
		senderFacts = facts
	}
	sender.Version, sender.Commit = senderFacts.version, senderFacts.commit
	if sender.Env.Len == 0 {
		sender.Env = senderFacts.env
	}
	to.Senders = append(to.Senders, sender)
}

// addTraces adds a group to the table for each trace of the given spans, and empty spans for them.
// It returns the added spans and groups.
func (t *Translator) addTraces(extras []otlp.SpanExtra) ([]spantable.Span, []spantable.Group) {
	t.traces.group(extras)
	to, begin := t.to, uint32(0)
	spans, groups := len(to.Spans), len(to.Groups)
	for _, end := range t.traces.ends {
		g := spantable.Group{First: uint32(len(to.Spans)), Priority: keptByDefault, HasPriority: true}
		to.Spans = append(to.Spans, make([]spantable.Span, end-begin)...) // as many as the request has
		to.AddGroup(g)
		begin = end
	}
	return to.Spans[spans:], to.Groups[groups:]
}

// traces groups the spans of one resource by trace. Datadog identifies a trace by the lower half of
// its ID.
type traces struct {
	numbers  spantable.TraceNumbers
	numberOf []uint32     // for each span, the number of its trace
	position []uint32     // for each span, its position when spans are ordered by trace
	ends     []uint32     // for each trace, the position after its last span
	facts    []traceFacts // for each trace
}

// traceBytes is the memory per span of traces.
const traceBytes = spantable.TraceNumberBytes + 2*(3*4+int(unsafe.Sizeof(traceFacts{})))

// group assigns numbers to the traces of spans, and positions to the spans. It is a counting sort:
// it counts the spans of each trace, and places each span after the end of the previous trace.
func (t *traces) group(spans []otlp.SpanExtra) {
	t.numbers.Reset(len(spans))
	t.numberOf, t.position = t.numberOf[:0], t.position[:0]
	for i := range spans {
		t.numberOf = append(t.numberOf, uint32(t.numbers.NumberOf(0, spans[i].TraceLow)))
	}
	count := t.numbers.Len()
	t.ends = slices.Grow(t.ends[:0], count+1)[:count+1]
	clear(t.ends)
	for _, number := range t.numberOf {
		t.ends[number+1]++
	}
	for i := range count {
		t.ends[i+1] += t.ends[i]
	}
	for _, number := range t.numberOf {
		t.position = append(t.position, t.ends[number])
		t.ends[number]++
	}
	t.ends = t.ends[:count]
	t.facts = slices.Grow(t.facts[:0], count)[:count]
	clear(t.facts)
}

// traceFacts are the attributes of spans that describe their trace or their sender. For a trace,
// the first span with the attribute counts; for a sender, the last trace with it.
type traceFacts struct{ env, version, commit, origin spantable.Text }

// addMissing sets the empty fields from more.
func (f *traceFacts) addMissing(more traceFacts) {
	add := func(field *spantable.Text, text spantable.Text) {
		if field.Len == 0 {
			*field = text
		}
	}
	add(&f.env, more.env)
	add(&f.version, more.version)
	add(&f.commit, more.commit)
	add(&f.origin, more.origin)
}
