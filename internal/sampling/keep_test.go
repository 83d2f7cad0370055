package sampling_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/decode/otlp"
	"github.com/spanstatsd/spanstatsd/internal/sampling"
	"github.com/spanstatsd/spanstatsd/internal/sampling/tracestate"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
	"github.com/spanstatsd/spanstatsd/internal/testutil/otlptest"
)

// tally returns a number of traces and a number of spans.
func tally(traces, spans int) sampling.Tally { return sampling.Tally{Traces: traces, Spans: spans} }

// names is empty, because the tests ask for no attributes.
var names = spantable.NewNames([]string{""})

// decoded returns a decoded request, whether or not decoding succeeded.
func decoded(body []byte) *otlp.Request {
	r := &otlp.Request{}
	_ = r.Decode(body, names, names)
	return r
}

// leftOf appends the forwarded part of a body, or returns the body if it is forwarded unchanged.
func leftOf(t testing.TB, dst, body []byte, k *sampling.Policy, isMarked bool) ([]byte, sampling.Selection) {
	t.Helper()
	var s sampling.Sample
	before := bytes.Clone(body)
	left := s.Select(decoded(body), k, isMarked)
	if left.IsUnchanged {
		return body, left
	}
	got := s.AppendSelected(dst)
	if len(got)-len(dst) != left.Size {
		t.Fatalf("%d bytes were measured, %d written", left.Size, len(got)-len(dst))
	}
	if !bytes.Equal(body, before) {
		t.Fatal("the body was written to")
	}
	return got, left
}

// keptOf returns the names and weights of the forwarded spans of a body.
func keptOf(t *testing.T, body []byte, k sampling.Policy) (names string, weight float64, kept,
	sampledOut sampling.Tally,
) {
	t.Helper()
	prefix := []byte("what was there")
	got, left := leftOf(t, bytes.Clone(prefix), body, &k, false)
	if len(got) == 0 || &got[0] != &body[0] {
		if !bytes.HasPrefix(got, prefix) {
			t.Fatalf("it is not appended: %q", got)
		}
		got = got[len(prefix):]
		if len(got) > sampling.SelectionBytes(len(body)) {
			t.Fatalf("%d bytes of %d, %d promised", len(got), len(body), sampling.SelectionBytes(len(body)))
		}
	}
	all, r := len(decoded(body).Spans), decoded(got)
	for i := range r.Spans {
		state := tracestate.Read(r.Bytes(r.Extras[i].State))
		names += r.String(r.Spans[i].Name)
		weight += state.Weight()
	}
	if kept, sampledOut = left.Sampled, left.SampledOut; kept.Spans != len(r.Spans) || kept.Spans+sampledOut.Spans != all {
		t.Fatalf("%d spans are forwarded, reported %+v and %+v of %d", len(r.Spans), kept, sampledOut, all)
	}
	return names, weight, kept, sampledOut
}

// TestSelect_ByRandomness: in each case, the randomness of traces is in their IDs or tracestates, and
// half of all traces should be forwarded.
func TestSelect_ByRandomness(t *testing.T) {
	const low, high = 0x00_7f_ff_ff_ff_ff_ff_ff, 0x00_80_00_00_00_00_00_00
	for name, test := range map[string]struct {
		keeping       sampling.Policy
		spans         []otlptest.Span
		want          string
		weight        float64
		kept, dropped sampling.Tally
	}{
		"by the lowest 56 bits of the id": {
			sampling.Policy{Share: 0.5},
			[]otlptest.Span{
				{Trace: low, Name: "a"},
				{Trace: high, Name: "b"},
				{Trace: 0xff<<56 | low, Name: "c"},
				{Trace: 0xff<<56 | high, Name: "d"},
			},
			"bd", 4,
			tally(2, 2),
			tally(2, 2),
		},
		"by the explicit randomness": {
			sampling.Policy{Share: 0.5},
			[]otlptest.Span{
				{Trace: low, State: "ot=rv:80000000000000", Name: "a"},
				{Trace: high, State: "ot=rv:7fffffffffffff", Name: "b"},
			},
			"a", 2,
			tally(1, 1),
			tally(1, 1),
		},
		"a higher threshold is honored, a lower one raised": {
			sampling.Policy{Share: 0.5},
			[]otlptest.Span{
				{Trace: low, State: "ot=th:c", Name: "a"},
				{Trace: high, State: "ot=th:c", Name: "b"},
				{Trace: high + 1, State: "ot=th:4", Name: "c"},
				{Trace: 1, State: "ot=th:4", Name: "d"},
				{Trace: 2, State: "ot=th:8", Name: "e"},
			},
			"abce", 4 + 4 + 2 + 2,
			tally(4, 4),
			tally(1, 1),
		},
		"complete traces": {
			sampling.Policy{Share: 0.5},
			[]otlptest.Span{
				{Trace: low, Name: "a"},
				{Trace: high, Name: "b", Parent: 1},
				{Trace: low, Name: "c", Parent: 1},
				{Trace: high, Name: "d"},
			},
			"bd", 4,
			tally(1, 2),
			tally(1, 2),
		},
		"a trace with an error, whatever its randomness, with its weight": {
			sampling.Policy{Share: 0.5, Errors: true},
			[]otlptest.Span{
				{Trace: low, Name: "a"},
				{Trace: low, Name: "b", Parent: 1, Code: otlptest.Error},
				{Trace: low, Name: "c", State: "ot=th:4"},
				{Trace: high, Name: "d", Code: otlptest.Error},
				{Trace: high + 1, Name: "e"},
				{Trace: 3, Name: "f"},
			},
			"abcde", 1 + 1 + 4./3 + 1 + 2,
			tally(3, 5),
			tally(1, 1),
		},
		"errors are as others where they are not asked for": {
			sampling.Policy{Share: 0.5, Slow: time.Second},
			[]otlptest.Span{{Trace: low, Name: "a", Code: otlptest.Error}},
			"", 0, tally(0, 0), tally(1, 1),
		},
		"a trace with a slow root": {
			sampling.Policy{Share: 0.5, Slow: time.Second},
			[]otlptest.Span{
				{Trace: 1, Name: "a", Start: 5, End: 5 + 1e9},
				{Trace: 2, Name: "b", Start: 5, End: 4 + 1e9},
				{Trace: 1, Name: "c", Parent: 1},
				{Trace: 3, Name: "d", Parent: 1, End: 1 << 40},
			},
			"ac", 2,
			tally(1, 2),
			tally(2, 2),
		},
		"no share, but errors": {
			sampling.Policy{Errors: true},
			[]otlptest.Span{{Trace: math.MaxUint64, Name: "a"}, {Trace: 1, Name: "b", Code: otlptest.Error}},
			"b", 1, tally(1, 1), tally(1, 1),
		},
		"nothing": {
			sampling.Policy{},
			[]otlptest.Span{{Trace: math.MaxUint64, Name: "a"}},
			"", 0,
			tally(0, 0), tally(1, 1),
		},
		"a tracestate that is malformed": {
			sampling.Policy{Share: 0.5},
			[]otlptest.Span{
				{Trace: low, Name: "a", State: "what"},
				{Trace: high, Name: "b", State: "ot=th:8;th:8"},
			},
			"b", 2, tally(1, 1), tally(1, 1),
		},
		"a trace that is forwarded in part": {
			sampling.Policy{Share: 0.5},
			[]otlptest.Span{{Trace: low, Name: "a"}, {Trace: low, Name: "b", State: "ot=th:c"}},
			"b", 4, tally(1, 1), tally(0, 1),
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, body := range [][]byte{
				otlptest.Request(otlptest.Resource{
					Attributes: otlptest.SDK("s"),
					Scopes:     [][]otlptest.Span{test.spans},
				}),
				otlptest.Request(apart(test.spans)...),
			} {
				names, weight, kept, dropped := keptOf(t, body, test.keeping)
				if names != test.want || math.Abs(weight-test.weight) > 1e-9 || kept != test.kept ||
					dropped != test.dropped {
					t.Errorf("%q is forwarded, %v in all, kept %+v, dropped %+v; want %q, %v", names, weight, kept,
						dropped, test.want, test.weight)
				}
			}
		})
	}
}

// apart returns a request with one resource per span.
func apart(spans []otlptest.Span) (all []otlptest.Resource) {
	for _, s := range spans {
		all = append(all, otlptest.Resource{Attributes: otlptest.SDK("s"), Scopes: [][]otlptest.Span{{s}}})
	}
	return all
}

// TestSelect_AllKeptIsUnchanged: the body is forwarded unchanged if all traces are kept, and
// if no span needs another threshold.
func TestSelect_AllKeptIsUnchanged(t *testing.T) {
	for name, test := range map[string]struct {
		k    sampling.Policy
		span otlptest.Span
	}{
		"all":        {sampling.Policy{Share: 1}, otlptest.Span{}},
		"errors":     {sampling.Policy{Share: 0.5, Errors: true}, otlptest.Span{Code: otlptest.Error}},
		"thresholds": {sampling.Policy{Share: 0.5}, otlptest.Span{State: "ot=th:8"}},
	} {
		body := otlptest.Request(otlptest.Resource{
			Attributes: otlptest.SDK("s"),
			Scopes:     [][]otlptest.Span{{test.span}},
		})
		got, left := leftOf(t, nil, body, &test.k, false)
		if &got[0] != &body[0] || len(got) != len(body) || left.Sampled != tally(1, 1) ||
			left.SampledOut != tally(0, 0) {
			t.Errorf("%s: %d bytes of %d", name, len(got), len(body))
		}
	}
	cut := append(otlptest.Request(otlptest.Resource{Scopes: [][]otlptest.Span{{{}}}}), 0x0a)
	if decoded(cut).Err() == nil {
		t.Fatal("it was read")
	}
	if got, left := leftOf(t, nil, cut, &sampling.Policy{}, true); !bytes.Equal(got, cut) ||
		left.Sampled != tally(0, 0) || left.SampledOut != tally(0, 0) {
		t.Errorf("of an unread body %q is forwarded", got)
	}
}

// TestSelect_KeepsUnknownFields: unknown fields are kept at every level, and so is a scope without
// spans. A scope or resource whose spans are all dropped is dropped.
func TestSelect_KeepsUnknownFields(t *testing.T) {
	unknown := func(text string) []byte { return otlptest.Field(nil, 100, []byte(text)) }
	here := otlptest.Span{Trace: 1 << 55, Name: "here", More: unknown("in the span")}.Encode()
	there := otlptest.Span{Trace: 1, Name: "there"}.Encode()
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	scope := func(content ...[]byte) []byte { return otlptest.Field(nil, 2, join(content...)) }
	resource := func(content ...[]byte) []byte { return otlptest.Field(nil, 1, join(content...)) }
	span := func(b []byte) []byte { return otlptest.Field(nil, 2, b) }
	raisedHere := otlptest.Span{Trace: 1 << 55, Name: "here", More: unknown("in the span")}.Encode()
	raisedHere = otlptest.Field(raisedHere, 3, []byte("ot=th:8"))
	body := join(
		unknown("1"),
		resource(unknown("2"),
			scope(unknown("3"), span(there), unknown("4"), span(here), unknown("5"), span(there)),
			unknown("6"), scope(span(there)), scope(), unknown("7")),
		unknown("8"), resource(unknown("gone"), scope(unknown("gone"), span(there))), resource(unknown("9")),
		unknown("10"),
	)
	want := join(
		unknown("1"),
		resource(unknown("2"), scope(unknown("3"), unknown("4"), span(raisedHere), unknown("5")),
			unknown("6"), scope(), unknown("7")),
		unknown("8"), resource(unknown("9")), unknown("10"),
	)
	if got, _ := leftOf(t, nil, body, &sampling.Policy{Share: 0.5}, false); !bytes.Equal(got, want) {
		t.Errorf("%q is forwarded, want\n%q", got, want)
	}
}

// TestWeights_AddUp: over many traces, the weights of the forwarded spans add up to the number
// of all spans, and of all errors, even if traces with errors are always kept. The tolerance is six
// standard deviations.
func TestWeights_AddUp(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	const traces = 4000
	for _, k := range []sampling.Policy{
		{Share: 0.25},
		{Share: 0.1, Errors: true},
		{Share: 0.05, Errors: true, Slow: time.Second},
	} {
		var spans []otlptest.Span
		for range traces {
			root := otlptest.Span{Trace: rnd.Uint64(), ID: 1, Name: "x", End: 1}
			switch rnd.IntN(10) {
			case 0:
				root.Code = otlptest.Error
			case 1:
				root.End = 2e9
			}
			spans = append(spans, root)
		}
		_, weight, kept, _ := keptOf(t,
			otlptest.Request(otlptest.Resource{
				Attributes: otlptest.SDK("s"),
				Scopes:     [][]otlptest.Span{spans},
			}), k)
		if bound := 6 * math.Sqrt(traces*(1/k.Share-1)); math.Abs(weight-traces) > bound ||
			kept.Spans == traces {
			t.Errorf("%+v: the forwarded spans represent %v of %d spans, within %v", k, weight, traces, bound)
		}
	}
}

// TestSample_AllocatesNothing: a Sample allocates nothing per span after warm-up.
func TestSample_AllocatesNothing(t *testing.T) {
	r, k, s, left := decoded(otlptest.Web(100)), &sampling.Policy{
		Share:  0.3,
		Errors: true,
	}, &sampling.Sample{}, []byte(nil)
	round := func() {
		if s.Select(r, k, true).IsUnchanged {
			t.Fatal("all spans are forwarded")
		}
		left = s.AppendSelected(left[:0])
		s.Release()
	}
	for range 3 {
		round()
	}
	if n := testing.AllocsPerRun(20, round); n > 0 {
		t.Errorf("%v allocations a body of 400 spans", n)
	}
}

// TestIsSelected_MatchesForwardedBody: IsSelected agrees with the forwarded body, and reports true if
// Select made no decisions.
func TestIsSelected_MatchesForwardedBody(t *testing.T) {
	r := decoded(otlptest.SDKRequest(otlptest.Span{Trace: 1}, otlptest.Span{Trace: 1 << 55}))
	s := &sampling.Sample{}
	for _, test := range []struct {
		k             *sampling.Policy
		first, second bool
	}{{nil, true, true}, {&sampling.Policy{Share: 0.5}, false, true}, {
		&sampling.Policy{}, false,
		false,
	}, {&sampling.Policy{Share: 1}, true, true}} {
		if s.Select(r, test.k, false); s.IsSelected(0) != test.first || s.IsSelected(1) != test.second {
			t.Errorf("%+v: %v, %v", test.k, s.IsSelected(0), s.IsSelected(1))
		}
	}
	s.Select(r, &sampling.Policy{}, false)
	if s.Release(); !s.IsSelected(1) {
		t.Error("the result of the last body applies to the next one")
	}
}

// BenchmarkKeep measures selecting and writing one in twenty traces.
func BenchmarkKeep(b *testing.B) {
	r, s, left := decoded(otlptest.Web(128)), &sampling.Sample{}, []byte(nil)
	for b.Loop() {
		s.Select(r, &sampling.Policy{Share: 0.05, Errors: true, Slow: time.Second}, false)
		left = s.AppendSelected(left[:0])
	}
}
