package apm

import (
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/wire"
)

func countedSpans(t testing.TB, c *Counter) (n int) {
	t.Helper()
	for _, body := range c.Batches {
		w, err := wire.WalkSpans(body)
		if err != nil {
			t.Fatal(err)
		}
		var s wire.Snapshot
		for w.Next(&s) {
			if _, err := wire.DecodeKey(s.Key); err != nil {
				t.Fatal(err)
			}
			n++
		}
		if w.Err() != nil {
			t.Fatal(w.Err())
		}
	}
	return n
}

// TestFormatsAgree: the same traces give the same batches in each format. Of four
// spans each, the inner one is measured in every other trace.
func TestFormatsAgree(t *testing.T) {
	for _, f := range examples {
		c := NewCounter()
		if err := c.Count(f.format, f.body(t, 100), "go", true, wishesOf(t)); err != nil {
			t.Fatalf("%s: %v", f.name, err)
		}
		if n := countedSpans(t, c); n != 350 {
			t.Errorf("%s: %d spans counted, want 350", f.name, n)
		}
		if got := string(c.payload.facts.env.of(c.payload.b)); got != "prod" {
			t.Errorf("%s: env %q", f.name, got)
		}
	}
}

// TestIgnoredResources: a trace is left out by its root's resource.
func TestIgnoredResources(t *testing.T) {
	w, ok := NewWishes(nil, []string{"server", "client"}, []string{"^GET /route/3$"})
	if !ok {
		t.Fatal("refused")
	}
	c := NewCounter()
	if err := c.Count(FormatV04, bodyV04(t, 16), "go", true, w); err != nil {
		t.Fatal(err)
	}
	if n := countedSpans(t, c); n != 15*3+7 {
		t.Errorf("%d spans counted", n)
	}
	if _, ok := NewWishes(nil, nil, []string{"("}); ok {
		t.Error("an expression that can't be read was taken")
	}
}

// TestCountAlloc: once warm, a body allocates nothing.
func TestCountAlloc(t *testing.T) {
	for _, f := range examples {
		for _, topLevel := range []bool{true, false} {
			c, w, body := NewCounter(), wishesOf(t), f.body(t, 200)
			count := func() {
				if err := c.Count(f.format, body, "go", topLevel, w); err != nil {
					t.Fatal(err)
				}
			}
			count()
			if n := testing.AllocsPerRun(20, count); n != 0 {
				t.Errorf("%s, top-level by the tracer %v: %v allocations", f.name, topLevel, n)
			}
		}
	}
}

// FuzzCount: no bytes make a counter panic, or write what our protocol would not
// take.
func FuzzCount(f *testing.F) {
	for _, b := range examples {
		f.Add(uint8(b.format), true, b.body(f, 2))
		f.Add(uint8(b.format), false, b.body(f, 1))
	}
	w := wishesOf(f)
	c := NewCounter()
	f.Fuzz(func(t *testing.T, format uint8, topLevel bool, body []byte) {
		if c.Count(Format(format%4), body, "go", topLevel, w) == nil {
			countedSpans(t, c)
		}
	})
}
