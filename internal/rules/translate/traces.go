package translate

import (
	"slices"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/decode/otlp"
	"github.com/spanstatsd/spanstatsd/internal/spantable"
)

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
func (t *traces) group(spans []otlp.Place) {
	t.numbers.Reset(len(spans))
	t.of, t.place = t.of[:0], t.place[:0]
	for i := range spans {
		t.of = append(t.of, uint32(t.numbers.Of(0, spans[i].TraceLow)))
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
