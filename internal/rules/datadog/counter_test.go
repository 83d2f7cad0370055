package datadog_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/sampling/unsampled"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/vmihailenco/msgpack/v5"

	decode "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	"github.com/spanstatsd/spanstatsd/internal/rules/datadog"
)

// TestFormatsAgree: the same traces give the same batches in each format. Of four
// spans each, the inner one is measured in every other trace.
func TestFormatsAgree(t *testing.T) {
	for _, f := range examples {
		c := datadog.NewCounter()
		if err := c.Count(f.format, f.body(t, 100), "go", true, policyOf(t)); err != nil {
			t.Fatalf("%s: %v", f.name, err)
		}
		if n := countedSpans(t, c); n != 350 {
			t.Errorf("%s: %d spans counted, want 350", f.name, n)
		}
		if got := c.Origin(span.Origin{}).Env; got != "prod" {
			t.Errorf("%s: env %q", f.name, got)
		}
	}
}

// TestIgnoredResources: a trace is left out by its root's resource.
func TestIgnoredResources(t *testing.T) {
	w, ok := datadog.NewPolicy(nil, []string{"server", "client"}, []string{"^GET /route/3$"},
		datadog.Labels{})
	if !ok {
		t.Fatal("refused")
	}
	c := datadog.NewCounter()
	if err := c.Count(decode.FormatV04, bodyV04(t, 16), "go", true, w); err != nil {
		t.Fatal(err)
	}
	if n := countedSpans(t, c); n != 15*3+7 {
		t.Errorf("%d spans counted", n)
	}
	if _, ok := datadog.NewPolicy(nil, nil, []string{"("}, datadog.Labels{}); ok {
		t.Error("an expression that can't be read was taken")
	}
}

// TestCut: what is cut out of a body is exactly its unsampled traces, and what is
// left is a body of the same form.
func TestCut(t *testing.T) {
	for _, f := range examples {
		for _, traces := range []int{1, 2, 15, 16, 40} {
			c, w, body := datadog.NewCounter(), policyOf(t), f.body(t, traces)
			whole := len(body)
			if err := c.Count(f.format, body, "go", true, w); err != nil {
				t.Fatal(err)
			}
			left, cutTraces, cutSpans := unsampled.Cut(c.Decoded())
			if len(left) > whole || len(left) == whole && traces > 1 {
				t.Errorf("%s: %d of %d bytes are left of %d traces", f.name, len(left), whole, traces)
			}
			if cutTraces != traces/2 || cutSpans != 4*cutTraces {
				t.Errorf("%s: of %d traces %d were cut, with %d spans", f.name, traces, cutTraces, cutSpans)
			}
			if err := c.Count(f.format, left, "go", true, w); err != nil {
				t.Fatalf("%s: what is left of %d traces: %v", f.name, traces, err)
			}
			if table, _ := c.Decoded(); len(table.Groups) != traces-cutTraces {
				t.Errorf("%s: %d bytes are left, with %d traces", f.name, len(left), len(table.Groups))
			}
			if _, again, _ := unsampled.Cut(c.Decoded()); again != 0 {
				t.Errorf("%s: %d more traces were cut", f.name, again)
			}
		}
	}
}

// TestABodyWithoutAnUnsampledTraceStaysAsItIs: also where a trace without spans stands
// before others, which what is left of a cut body does not have.
func TestABodyWithoutAnUnsampledTraceStaysAsItIs(t *testing.T) {
	type object = map[string]any
	chunk := func(spans ...any) object { return object{"priority": 1, "spans": append([]any{}, spans...)} }
	kept := object{
		"service": "s", "name": "n", "resource": "r", "span_id": 1, "start": 1, "duration": 1,
		"metrics": object{"_sampling_priority_v1": 1.0},
	}
	for format, sent := range map[decode.Format]any{
		decode.FormatV04: []any{[]any{}, []any{kept}, []any{kept}},
		decode.FormatV07: object{"chunks": []any{chunk(), chunk(kept), chunk(kept)}},
	} {
		body, err := msgpack.Marshal(sent)
		if err != nil {
			t.Fatal(err)
		}
		c, before := datadog.NewCounter(), bytes.Clone(body)
		if err := c.Count(format, body, "go", true, policyOf(t)); err != nil {
			t.Fatal(err)
		}
		if left, traces, _ := unsampled.Cut(c.Decoded()); traces != 0 || !bytes.Equal(left, before) {
			t.Errorf("%s: %d traces were cut: %q, want %q", format, traces, left, before)
		}
	}
}

// TestCountAlloc: once warm, a body allocates nothing.
func TestCountAlloc(t *testing.T) {
	for _, f := range examples {
		for _, topLevel := range []bool{true, false} {
			c, w, body := datadog.NewCounter(), policyOf(t), f.body(t, 200)
			count := func() {
				if err := c.Count(f.format, body, "go", topLevel, w); err != nil {
					t.Fatal(err)
				}
			}
			count()
			if n := testing.AllocsPerRun(20, count); n != 0 {
				t.Errorf("%s, top-level by the tracer %v: %v allocations", f.name, topLevel, n)
			}
			for lang, policy := "go", tracersPolicy(t); lang != ""; lang = map[string]string{
				"go":     "python",
				"python": "nodejs", "nodejs": "java",
			}[lang] {
				count := func() {
					if err := c.Count(f.format, body, lang, topLevel, policy); err != nil {
						t.Fatal(err)
					}
				}
				count()
				if n := testing.AllocsPerRun(20, count); n != 0 {
					t.Errorf("%s of %s with its own labels: %v allocations", f.name, lang, n)
				}
			}
		}
	}
}

// languages are those of tracers that have rules of their own, and any other.
var languages = []string{"", "go", "python", "nodejs", "java"}

// FuzzCount: no bytes make a counter panic, or write what our protocol would not take,
// or something else because of what it has met before.
func FuzzCount(f *testing.F) {
	for _, b := range examples {
		f.Add(uint8(b.format), true, b.body(f, 2))
		f.Add(uint8(b.format), false, b.body(f, 1))
		for i := range uint8(len(languages)) {
			f.Add(uint8(b.format)+4*i, false, b.body(f, 1))
		}
	}
	agents, tracers, keeping := policyOf(f), tracersPolicy(f), keepingPolicy(f)
	c := datadog.NewCounter()
	c.Now = func() time.Time { return time.Unix(1e9, 0) }
	f.Fuzz(func(t *testing.T, format uint8, topLevel bool, body []byte) {
		fresh := datadog.NewCounter()
		fresh.Now = c.Now
		w, lang := agents, languages[format/4%uint8(len(languages))]
		if lang != "" {
			w = tracers
		}
		err, other := c.Count(decode.Format(format%4), body, lang, topLevel,
			w), fresh.Count(decode.Format(format%4), body, lang, topLevel, w)
		if (err == nil) != (other == nil) {
			t.Fatalf("%v, and where nothing was met before %v", err, other)
		}
		if err == nil {
			countedSpans(t, c)
			same(t, c, fresh)
		}
		keeps := datadog.NewCounter()
		keeps.Now = c.Now
		if w == agents && keeps.Count(decode.Format(format%4), body, lang, topLevel, keeping) == nil {
			if err != nil {
				t.Fatalf("%v, and with the ids of traces none", err)
			}
			same(t, c, keeps)
			checkKept(t, keeps)
		}
	})
}

// checkKept: what is kept are spans of the batches, in their order, of traces that have ids.
func checkKept(t *testing.T, c *datadog.Counter) {
	t.Helper()
	var sizes []int32
	for _, batch := range c.Batches {
		sizes = append(sizes, int32(len(batch.Snapshots)))
	}
	next := make([]int32, len(sizes))
	for _, k := range c.Kept() {
		if k.At < next[k.Batch] || k.At >= sizes[k.Batch] {
			t.Fatalf("span %d of batch %d, which has %d, and %d came before", k.At, k.Batch, sizes[k.Batch],
				next[k.Batch])
		}
		next[k.Batch] = k.At + 1
		if _, low, span := c.IDs(k); low == 0 || span == 0 {
			t.Fatalf("span %d of trace %d", span, low)
		}
	}
}
