package oteltraces

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// TestGoingOn: each span that goes on is found once, where its snapshot is in its batch, and by
// its own ids; those that can't be found by theirs are left out.
func TestGoingOn(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for _, keeping := range []*Keeping{nil, {Share: 0.5}, {Share: 0}} {
		var resources []madeResource
		var want []string
		for range 4 { // two processes, in turns
			r := madeResource{attributes: sdkResource([]string{"a", "b"}[len(resources)%2])}
			var spans []madeSpan
			for range random.IntN(20) {
				s := madeSpan{trace: random.Uint64(), id: random.Uint64N(8), code: -1}
				s.name = fmt.Sprint(s.trace, " ", s.id)
				spans = append(spans, s)
				if s.id != 0 && (keeping == nil || keeping.Share > 0 && s.trace&(never-1) >= never/2) {
					want = append(want, s.name)
				}
			}
			r.scopes = [][]madeSpan{spans}
			resources = append(resources, r)
		}
		c := NewCounter()
		if err := c.Count(request(resources...), standard()); err != nil {
			t.Fatal(err)
		}
		c.Measure(keeping, keeping == nil)
		var names [][]string
		for _, message := range c.Batches {
			w, err := wire.WalkSpans(message)
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, nil)
			for s := (wire.Snapshot{}); w.Next(&s); {
				var key span.Key
				if err := wire.ReadKey(&key, s.Key); err != nil {
					t.Fatal(err)
				}
				names[len(names)-1] = append(names[len(names)-1], key.Resource)
			}
		}
		var got []string
		for g := range c.GoingOn {
			if name := fmt.Sprint(g.TraceLow, " ", g.Span); g.TraceHigh != 0x0123456789abcdef || names[g.Batch][g.At] != name {
				t.Errorf("%+v is %q", g, names[g.Batch][g.At])
			}
			got = append(got, names[g.Batch][g.At])
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("share %+v: %q go on, want %q", keeping, got, want)
		}
		for range c.GoingOn {
			break // who looks no further is asked no further
		}
	}
}
