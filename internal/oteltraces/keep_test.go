package oteltraces

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// keptOf is what goes on of a body, counted again: the names and weights of its spans.
func keptOf(t *testing.T, body []byte, k Keeping) (names string, weight float64, kept, gone Tally) {
	t.Helper()
	if err := k.Check(); err != nil {
		t.Fatal(err)
	}
	c := NewCounter()
	if err := c.Count(body, standard()); err != nil {
		t.Fatal(err)
	}
	before := bytes.Clone(body)
	prefix := []byte("what was there")
	left, kept, gone := leftOf(&c.walked, bytes.Clone(prefix), &k)
	if !bytes.Equal(body, before) {
		t.Fatal("the body was written to")
	}
	if len(left) == 0 || &left[0] != &body[0] {
		if !bytes.HasPrefix(left, prefix) {
			t.Fatalf("it is not appended: %q", left)
		}
		left = left[len(prefix):]
		if len(left) > KeptBytes(len(body)) {
			t.Fatalf("%d bytes of %d, %d promised", len(left), len(body), KeptBytes(len(body)))
		}
	}
	spans := countedOf(t, NewCounter(), left, standard())
	for _, s := range spans {
		names += s.key.Resource
		weight += s.Weight
	}
	if kept.Spans != len(spans) || kept.Spans+gone.Spans != c.Spans() {
		t.Fatalf("%d spans go on, it says %+v and %+v of %d", len(spans), kept, gone, c.Spans())
	}
	return names, weight, kept, gone
}

// TestWhichSpansGoOn: each case has the randomness of its traces in their ids or states, and
// half of all traces is wanted.
func TestWhichSpansGoOn(t *testing.T) {
	const low, high = 0x00_7f_ff_ff_ff_ff_ff_ff, 0x00_80_00_00_00_00_00_00
	for name, test := range map[string]struct {
		keeping    Keeping
		spans      []madeSpan
		want       string
		weight     float64
		kept, gone Tally
	}{
		"by the lowest 56 bits of the id": {
			Keeping{Share: 0.5},
			[]madeSpan{{trace: low, name: "a"}, {trace: high, name: "b"}, {trace: 0xff<<56 | low, name: "c"}, {trace: 0xff<<56 | high, name: "d"}},
			"bd", 4,
			Tally{2, 2},
			Tally{2, 2},
		},
		"by the randomness that is said": {
			Keeping{Share: 0.5},
			[]madeSpan{{trace: low, state: "ot=rv:80000000000000", name: "a"}, {trace: high, state: "ot=rv:7fffffffffffff", name: "b"}},
			"a", 2,
			Tally{1, 1},
			Tally{1, 1},
		},
		"a higher threshold is honoured, a lower one raised": {
			Keeping{Share: 0.5},
			[]madeSpan{
				{trace: low, state: "ot=th:c", name: "a"},
				{trace: high, state: "ot=th:c", name: "b"},
				{trace: high + 1, state: "ot=th:4", name: "c"},
				{trace: 1, state: "ot=th:4", name: "d"},
				{trace: 2, state: "ot=th:8", name: "e"},
			},
			"abce", 4 + 4 + 2 + 2,
			Tally{4, 4},
			Tally{1, 1},
		},
		"whole traces": {
			Keeping{Share: 0.5},
			[]madeSpan{{trace: low, name: "a"}, {trace: high, name: "b", parent: 1}, {trace: low, name: "c", parent: 1}, {trace: high, name: "d"}},
			"bd", 4,
			Tally{1, 2},
			Tally{1, 2},
		},
		"a trace with an error, whatever its randomness, at its own weight": {
			Keeping{Share: 0.5, Errors: true},
			[]madeSpan{
				{trace: low, name: "a"},
				{trace: low, name: "b", parent: 1, code: codeError},
				{trace: low, name: "c", state: "ot=th:4"},
				{trace: high, name: "d", code: codeError},
				{trace: high + 1, name: "e"},
				{trace: 3, name: "f"},
			},
			"abcde", 1 + 1 + 4./3 + 1 + 2,
			Tally{3, 5},
			Tally{1, 1},
		},
		"errors are as others where they are not asked for": {
			Keeping{Share: 0.5, Slow: time.Second}, []madeSpan{{trace: low, name: "a", code: codeError}}, "", 0, Tally{}, Tally{1, 1},
		},
		"a trace with a slow root": {
			Keeping{Share: 0.5, Slow: time.Second},
			[]madeSpan{
				{trace: 1, name: "a", start: 5, end: 5 + 1e9},
				{trace: 2, name: "b", start: 5, end: 4 + 1e9},
				{trace: 1, name: "c", parent: 1},
				{trace: 3, name: "d", parent: 1, end: 1 << 40},
			},
			"ac", 2,
			Tally{1, 2},
			Tally{2, 2},
		},
		"no share, but errors": {
			Keeping{Errors: true}, []madeSpan{{trace: math.MaxUint64, name: "a"}, {trace: 1, name: "b", code: codeError}}, "b", 1, Tally{1, 1}, Tally{1, 1},
		},
		"nothing": {Keeping{}, []madeSpan{{trace: math.MaxUint64, name: "a"}}, "", 0, Tally{}, Tally{1, 1}},
		"a tracestate that is malformed": {
			Keeping{Share: 0.5}, []madeSpan{{trace: low, name: "a", state: "what"}, {trace: high, name: "b", state: "ot=th:8;th:8"}}, "ab", 2, Tally{2, 2}, Tally{},
		},
		"a trace that goes on in part": {
			Keeping{Share: 0.5}, []madeSpan{{trace: low, name: "a"}, {trace: low, name: "b", state: "ot=th:c"}}, "b", 4, Tally{1, 1}, Tally{0, 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, body := range [][]byte{
				request(madeResource{sdkResource("s"), [][]madeSpan{test.spans}}),
				request(apart(test.spans)...),
			} {
				names, weight, kept, gone := keptOf(t, body, test.keeping)
				if names != test.want || math.Abs(weight-test.weight) > 1e-9 || kept != test.kept || gone != test.gone {
					t.Errorf("%q goes on, %v in all, %+v, and not %+v; want %q, %v", names, weight, kept, gone, test.want, test.weight)
				}
			}
		})
	}
}

// apart has each span in a resource of its own.
func apart(spans []madeSpan) (all []madeResource) {
	for _, s := range spans {
		all = append(all, madeResource{sdkResource("s"), [][]madeSpan{{s}}})
	}
	return all
}

// TestWhereAllGoesOnNothingIsWritten: the very same bytes, where the share is all, and where
// no span needs another threshold.
func TestWhereAllGoesOnNothingIsWritten(t *testing.T) {
	for name, test := range map[string]struct {
		k    Keeping
		span madeSpan
	}{
		"all":        {Keeping{Share: 1}, madeSpan{}},
		"errors":     {Keeping{Share: 0.5, Errors: true}, madeSpan{code: codeError}},
		"thresholds": {Keeping{Share: 0.5}, madeSpan{state: "ot=th:8"}},
	} {
		body := request(madeResource{sdkResource("s"), [][]madeSpan{{test.span}}})
		c := NewCounter()
		if err := c.Count(body, standard()); err != nil {
			t.Fatal(err)
		}
		left, kept, gone := leftOf(&c.walked, make([]byte, 0, 1<<10), &test.k)
		if &left[0] != &body[0] || len(left) != len(body) || kept != (Tally{1, 1}) || gone != (Tally{}) {
			t.Errorf("%s: %d bytes of %d", name, len(left), len(body))
		}
	}
	c, cut := NewCounter(), append(request(madeResource{scopes: [][]madeSpan{{{}}}}), 0x0a)
	if err := c.Count(cut, standard()); err == nil {
		t.Fatal("it was counted")
	}
	if left, kept, gone := leftOf(&c.walked, nil, &Keeping{}); !bytes.Equal(left, cut) || kept != (Tally{}) || gone != (Tally{}) {
		t.Errorf("of a body that was not counted goes on %q", left)
	}
}

// TestWhatStandsAroundSpansStays: fields that we have no name for, wherever they are, and a
// scope without spans. What ends takes its scope and its resource along.
func TestWhatStandsAroundSpansStays(t *testing.T) {
	unknown := func(text string) []byte { return submessage(nil, 100, []byte(text)) }
	here := madeSpan{trace: 1 << 55, name: "here", more: unknown("in the span")}.encode()
	there := madeSpan{trace: 1, name: "there"}.encode()
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	scope := func(content ...[]byte) []byte { return submessage(nil, 2, join(content...)) }
	resource := func(content ...[]byte) []byte { return submessage(nil, 1, join(content...)) }
	span := func(b []byte) []byte { return submessage(nil, 2, b) }
	raisedHere := madeSpan{trace: 1 << 55, name: "here", more: unknown("in the span")}.encode()
	raisedHere = submessage(raisedHere, 3, []byte("ot=th:8"))
	body := join(
		unknown("1"), resource(unknown("2"), scope(unknown("3"), span(there), unknown("4"), span(here), unknown("5"), span(there)), unknown("6"), scope(span(there)), scope(), unknown("7")),
		unknown("8"), resource(unknown("gone"), scope(unknown("gone"), span(there))), resource(unknown("9")), unknown("10"),
	)
	want := join(
		unknown("1"), resource(unknown("2"), scope(unknown("3"), unknown("4"), span(raisedHere), unknown("5")), unknown("6"), scope(), unknown("7")),
		unknown("8"), resource(unknown("9")), unknown("10"),
	)
	c := NewCounter()
	if err := c.Count(body, standard()); err != nil {
		t.Fatal(err)
	}
	if got, _, _ := leftOf(&c.walked, nil, &Keeping{Share: 0.5}); !bytes.Equal(got, want) {
		t.Errorf("%q goes on, want\n%q", got, want)
	}
}

// TestWeightsStayHonest: over many traces, what goes on stands for as many spans, and as many
// errors, as there were, whatever is kept beside the share. The bound is six times the
// deviation of a sum of that many decisions.
func TestWeightsStayHonest(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	const traces = 4000
	for _, k := range []Keeping{{Share: 0.25}, {Share: 0.1, Errors: true}, {Share: 0.05, Errors: true, Slow: time.Second}} {
		var spans []madeSpan
		for range traces {
			root := madeSpan{trace: rnd.Uint64(), id: 1, name: "x", end: 1}
			switch rnd.IntN(10) {
			case 0:
				root.code = codeError
			case 1:
				root.end = 2e9
			}
			spans = append(spans, root)
		}
		_, weight, kept, _ := keptOf(t, request(madeResource{sdkResource("s"), [][]madeSpan{spans}}), k)
		if bound := 6 * math.Sqrt(traces*(1/k.Share-1)); math.Abs(weight-traces) > bound || kept.Spans == traces {
			t.Errorf("%+v: what goes on stands for %v of %d spans, within %v", k, weight, traces, bound)
		}
	}
}

// TestKeepingThatCannotBe is refused.
func TestKeepingThatCannotBe(t *testing.T) {
	for _, k := range []Keeping{{Share: -0.1}, {Share: 1.1}, {Share: math.NaN()}, {Slow: -1}} {
		if k.Check() == nil {
			t.Errorf("%+v was taken", k)
		}
	}
}

// TestTracesThatShareAPlaceAreTwo, however many there are.
func TestTracesThatShareAPlaceAreTwo(t *testing.T) {
	var table traceTable
	for _, n := range []int{3, 1000, 10} {
		table.reset(n)
		for round := range 2 {
			for i := range n {
				if at := table.of(uint64(i%3), uint64(i)); at != i {
					t.Fatalf("round %d: trace %d of %d is at %d", round, i, n, at)
				}
			}
		}
		if len(table.traces) != n {
			t.Fatal(fmt.Sprint(len(table.traces), " traces of ", n))
		}
	}
}
