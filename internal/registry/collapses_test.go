package registry_test

import (
	"fmt"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// TestCollapses_NamesWorstLabel floods one tag among quieter ones, over a boundary, and then a full
// table.
func TestCollapses_NamesWorstLabel(t *testing.T) {
	config := testConfig()
	config.MaxAggregates = 2048
	a := registry.NewIntervals(&config)
	if label, keys := a.MostCollapsed(); keys != 0 {
		t.Errorf("%d keys of %q before any", keys, label)
	}
	flood := func(n int) {
		r := a.Registry()
		origin, _ := r.AdmitOrigin(span.Origin{})
		for i := range n {
			r.Admit(origin, &span.Key{
				Type: fmt.Sprint(i % 20), PeerTags: []string{fmt.Sprint("host:", i), "zone:a"},
			})
		}
	}
	flood(600) // of which 256 get a place
	a.Begin()
	flood(700) // of which 256 do, too, because none came twice before
	if label, keys := a.MostCollapsed(); label != "peer_tag host" || keys != 600-256+700-256 {
		t.Errorf("%d keys of %q", keys, label)
	}
	if label, keys := a.MostCollapsed(); keys != 0 {
		t.Errorf("%d keys of %q are reported twice", keys, label)
	}
	r := a.Registry()
	for i := range 4200 { // as many combinations of few labels
		r.Admit(0, &span.Key{
			Service:    "s",
			Resource:   fmt.Sprint(i % 100),
			Type:       fmt.Sprint(i % 7),
			Kind:       fmt.Sprint(i % 3),
			Synthetics: i >= 2100,
		})
	}
	for i := range 300 {
		r.Admit(0, &span.Key{Service: "s", Operation: fmt.Sprint(i)})
	}
	if label, keys := a.MostCollapsed(); label != "operation" || keys != 300 {
		t.Errorf("%d keys of %q found the table full", keys, label)
	}
}
