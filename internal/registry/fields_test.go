package registry_test

import (
	"fmt"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// floodIn makes a key of a flood in one field.
func floodIn(field string, n int) span.Key {
	key := span.Key{Service: "shop", Operation: "op", Resource: "GET /", Kind: "server"}
	l, isLabel := span.ParseLabel(field)
	switch {
	case field == "http_status":
		key.HTTPStatus = uint32(n)
	case field == "facts":
		key.TraceRoot, key.Synthetics, key.Resource = span.TraceRoot(n%3), n%2 == 0, fmt.Sprint(n/6)
	case field == "tag keys":
		key.PeerTags = []string{fmt.Sprintf("key%d:v", n)}
	case isLabel && l < span.FirstList:
		*key.Text(l) = fmt.Sprint("value-", n)
	case isLabel:
		*key.Tags(l) = []string{fmt.Sprint("key:", n)}
	default: // several fields at once
		key.Resource, key.HTTPStatus, key.PeerTags = fmt.Sprint("r",
			n), uint32(n), []string{fmt.Sprint("key:", n)}
	}
	return key
}

// TestSimulation_FloodInAnyField: one origin sends noise in one field, ten times
// as many spans as the other. The quiet one has a fair share of keys, each of which has its name
// in each interval from its second span on in the first interval, and from its first on later.
func TestSimulation_FloodInAnyField(t *testing.T) {
	for _, field := range append(span.LabelNames(), "facts", "tag keys", "several") {
		config := registry.DefaultConfig()
		config.MaxAggregates = 800
		intervals, serial := registry.NewIntervals(&config), 0
		for interval := range 4 {
			r := intervals.Registry()
			noisy, _ := r.AdmitOrigin(span.Origin{Service: "noisy"})
			quiet, _ := r.AdmitOrigin(span.Origin{Service: "quiet"})
			named := map[string]int{}
			const keys, times = 400, 3
			for time := range times {
				for i := range keys {
					for range 10 {
						serial++
						key := floodIn(field, serial)
						r.Admit(noisy, &key)
					}
					key := span.Key{
						Service: "s", Operation: "o", Resource: fmt.Sprint("GET /", i), Kind: "server",
						HTTPStatus: uint32(200 + i%20), PeerTags: []string{fmt.Sprint("host:", i%40)},
					}
					if a := r.Admit(quiet, &key); a.Collapsed == 0 {
						named[key.Resource]++
					} else if time > 1 || interval > 0 {
						t.Fatalf("a flood in %s: %s lost %b in interval %d, at its span %d", field,
							key.Resource, a.Collapsed, interval, time+1)
					}
				}
			}
			if len(named) != keys {
				t.Errorf("a flood in %s: %d of %d keys have names in interval %d", field, len(named), keys,
					interval)
			}
			intervals.Begin()
		}
	}
}

// TestStatus_HasBudget checks that a key over the budget of statuses has none, which is counted as a
// separate collapsed field, and that a recurring status keeps its place.
func TestStatus_HasBudget(t *testing.T) {
	config := registry.DefaultConfig()
	intervals := registry.NewIntervals(&config)
	for interval := range 3 {
		r := intervals.Registry()
		origin, _ := r.AdmitOrigin(span.Origin{})
		admitted := map[uint32]bool{}
		for i := range 4000 {
			status := uint32(1000*interval + i%1000 + 600)
			if i%2 == 0 {
				status = 200 + uint32(i/2%20)
			}
			key := span.Key{Service: "s", Operation: "o", Resource: "r", HTTPStatus: status}
			a := r.Admit(origin, &key)
			switch got := rowOf(r, a).HTTPStatus; {
			case a.Collapsed == 0 && got == status:
				admitted[status] = true
			case a.Collapsed != set(span.LabelHTTPStatus) || got != 0:
				t.Fatalf("status %d became %d, lost %b", status, got, a.Collapsed)
			case status < 600 && interval > 0:
				t.Fatalf("status %d was lost in interval %d", status, interval)
			}
		}
		if most := span.LabelHTTPStatus.Budget(); len(admitted) > most || len(admitted) < 20 {
			t.Errorf("%d statuses of a budget of %d", len(admitted), most)
		}
		intervals.Begin()
	}
}
