// Package translate makes of a request of OTLP what the Datadog agent's own OTLP ingest makes of it
// before it counts: traces of Datadog, with the second version of its names. The agent's rules
// then count those like traces of any tracer, so there is one code that counts as the agent does.
//
// # Translating
//
// A Translator fills a second table of spans from the decoded request. Of the tags of a span it
// makes those alone that a rule of statistics asks for. Texts stay places in the request's body;
// what the ingest makes itself stands in what was made for the second table. What a resource and a
// scope say is read once, into tags of which each label has one, so a request takes time in
// proportion to its length.
//
// A resource whose spans somebody has counted already (_dd.stats_computed), or its request where
// the resource says nothing, becomes no trace. A host that the resource does not say is left to
// the agent. Only the agent can say how a list reads as a tag: such a request is not translated.
//
// # Bounds
//
// The second table keeps the limits of the request's length, Bytes in all.
//
// # Threading
//
// One goroutine at a time uses a Translator. Its memory is used again for the next request, and
// nothing is allocated a span once it is warm.
package translate

import (
	"slices"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/decode/otlp"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// Translator turns requests into what the agent's own OTLP ingest makes of them.
type Translator struct {
	maker
	traces  traces
	counted int
}

// New makes a translator of the tags that the agent's rules ask for. It fails where they need
// more attributes than can be read.
func New(wanted *spantable.Names) (*Translator, error) {
	v, err := newVocabulary(wanted)
	if err != nil {
		return nil, err
	}
	return &Translator{maker: maker{vocabulary: v}}, nil
}

// tagBytes is for how many bytes of a request there may be one tag: a resource gives each of its
// tags to each span.
const tagBytes = 2

// Bytes is the most that a Translator takes, with a request of that length and the table that it
// becomes, and so many bytes more for each span.
func Bytes(body, perSpan int) int {
	return otlp.Bytes(body, perSpan+traceBytes) + spantable.LimitsOf(body, tagBytes).Bytes(0)
}

// Names are those of the attributes that are read.
func (t *Translator) Names() (ofSpans, ofResources *spantable.Names) { return t.ofSpans, t.ofResources }

// Translate fills a table with what becomes of a request. isCounted says that statistics of all
// of it were made before, unless a resource says otherwise. With an error the table is empty, and
// the request fails with it.
func (t *Translator) Translate(r *otlp.Request, isCounted bool, to *spantable.Table) error {
	t.request, t.to, t.counted = r, to, 0
	to.Reset(r.Body, spantable.LimitsOf(len(r.Body), tagBytes))
	for i := range r.Resources {
		of := &r.Resources[i]
		t.selectProcess(of)
		if of.IsCounted = t.isCounted(isCounted); of.IsCounted {
			first, last := r.SpansOf(of)
			t.counted += last - first
			continue
		}
		t.addResource(of)
		if err := to.Err(); err != nil {
			to.Reset(nil, to.Limits)
			r.Fail(err)
			return err
		}
	}
	return nil
}

// Counted is how many spans of the last request are in no trace, because statistics of them were
// made before.
func (t *Translator) Counted() int { return t.counted }

// isCounted says whether statistics of the selected resource's spans were made before: what it
// says itself goes before what its request says, as in the agent's receiver.
func (t *Translator) isCounted(said bool) bool {
	if !t.process.Set.Has(attrComputed) {
		return said
	}
	value := t.to.String(t.resourceTag(attrComputed))
	return value != "" && value != "false"
}

// keptByDefault is the priority of a trace of which nobody says whether it is kept.
const keptByDefault = 1

// addResource makes traces of the spans of the selected resource, which become one sender's.
func (t *Translator) addResource(of *otlp.Resource) {
	r, to := t.request, t.to
	first, last := r.SpansOf(of)
	if first == last {
		return
	}
	sender := t.sender()
	t.readResource(r.Tags[of.FirstTag:of.LastTag])
	spans, groups := t.addTraces(r.Extras[first:last])
	for i := of.First; i < of.Last; i++ {
		scope := &r.Scopes[i]
		if scope.First < scope.Last {
			t.readScope(r.Tags[scope.FirstTag:scope.LastTag])
		}
		for from := scope.First; from < scope.Last && to.Err() == nil; from++ {
			at, place := from-first, &r.Extras[from]
			trace := t.traces.of[at]
			t.fill(&spans[t.traces.place[at]], &r.Spans[from], r.Bytes(place.State))
			groups[trace].TraceLow = place.TraceLow
			t.traces.say[trace].addMissing(ofTrace{
				t.tags.values[t.env].text, t.tags.values[t.version].text,
				t.tags.values[t.commit].text, t.tags.values[t.origin].text,
			})
		}
	}
	var ofSender ofTrace
	for i, says := range t.traces.say {
		groups[i].Origin = says.origin
		says.addMissing(ofSender)
		ofSender = says
	}
	if sender.Version, sender.Commit = ofSender.version, ofSender.commit; sender.Env.Len == 0 {
		sender.Env = ofSender.env
	}
	to.Senders = append(to.Senders, sender)
}

// addTraces adds a group for each trace of some spans, and room for those.
func (t *Translator) addTraces(all []otlp.SpanExtra) ([]spantable.Span, []spantable.Group) {
	t.traces.group(all)
	to, begin := t.to, uint32(0)
	spans, groups := len(to.Spans), len(to.Groups)
	for _, end := range t.traces.ends {
		g := spantable.Group{First: uint32(len(to.Spans)), Priority: keptByDefault, HasPriority: true}
		to.Spans = append(to.Spans, make([]spantable.Span, end-begin)...) // no more than the request has
		to.AddGroup(g)
		begin = end
	}
	return to.Spans[spans:], to.Groups[groups:]
}

// traces are the spans of one resource by their traces, which Datadog tells apart by the lower
// half of an id.
type traces struct {
	numbers spantable.TraceNumbers
	of      []uint32  // by span, the number of its trace
	place   []uint32  // by span, where it stands when those of one trace stand behind one another
	ends    []uint32  // by trace, behind its last span's place
	say     []ofTrace // by trace
}

// traceBytes is what a span takes in traces.
const traceBytes = spantable.TraceNumberBytes + 2*(3*4+int(unsafe.Sizeof(ofTrace{})))

// group groups spans: it counts those of each trace, and then puts each where those of earlier
// traces end.
func (t *traces) group(spans []otlp.SpanExtra) {
	t.numbers.Reset(len(spans))
	t.of, t.place = t.of[:0], t.place[:0]
	for i := range spans {
		t.of = append(t.of, uint32(t.numbers.NumberOf(0, spans[i].TraceLow)))
	}
	count := t.numbers.Len()
	t.ends = slices.Grow(t.ends[:0], count+1)[:count+1]
	clear(t.ends)
	for _, number := range t.of {
		t.ends[number+1]++
	}
	for i := range count {
		t.ends[i+1] += t.ends[i]
	}
	for _, number := range t.of {
		t.place = append(t.place, t.ends[number])
		t.ends[number]++
	}
	t.ends = t.ends[:count]
	t.say = slices.Grow(t.say[:0], count)[:count]
	clear(t.say)
}

// ofTrace is what a span says that is its trace's, or its sender's, more than its own. Of a
// trace the first span that says something counts, and of a sender the last trace.
type ofTrace struct{ env, version, commit, origin spantable.Text }

// addMissing takes over what was not said yet.
func (o *ofTrace) addMissing(more ofTrace) {
	add := func(to *spantable.Text, text spantable.Text) {
		if to.Len == 0 {
			*to = text
		}
	}
	add(&o.env, more.env)
	add(&o.version, more.version)
	add(&o.commit, more.commit)
	add(&o.origin, more.origin)
}
