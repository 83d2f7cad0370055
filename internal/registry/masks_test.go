package registry_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// TestMasks_Flood: values with an identifier and without a row are counted with their mask,
// which keeps its row like any recurring value. Values without a mask collapse.
func TestMasks_Flood(t *testing.T) {
	for _, l := range []span.Label{span.LabelResource, span.LabelHTTPEndpoint} {
		config := testConfig()
		config.Budgets[l] = 64
		intervals, rnd := registry.NewIntervals(&config), rand.New(rand.NewPCG(1, 20))
		named, masked, blocked, keys := 0, 0, 0, uint64(0)
		for i := range 4 {
			r := intervals.Registry()
			origin, _ := r.AdmitOrigin(span.Origin{Service: "shop"})
			for range 3000 {
				value := unique["uuids"](rnd)
				key := span.Key{Service: "s", Operation: "o", Resource: "r"}
				*key.Text(l) = value
				a := r.Admit(origin, &key)
				switch got := *rowOf(r, a).Text(l); got {
				case value:
					named++
				case "GET /orders/{uuid}":
					if masked++; a.Masked != set(l) || a.Collapsed != 0 || a.IsUnchanged() {
						t.Fatalf("%s was admitted as %+v", value, a)
					}
					keys++
				default:
					blocked++
				}
				*key.Text(l) = "GET /" + letters(rnd)
				if a = r.Admit(origin, &key); a.Masked != 0 {
					t.Fatalf("words became %s", *rowOf(r, a).Text(l))
				}
			}
			if i > 0 && blocked > 1 {
				t.Fatalf("interval %d: %d of a flood collapsed", i, blocked)
			}
			intervals.Begin()
		}
		if named > 4*64 || intervals.Masked()[l.String()] != keys {
			t.Errorf("%d values have their own names, %d are masked, reported %v", named, masked,
				intervals.Masked())
		}
	}
}

// TestMasks_Modes covers the three modes: always masks each resource and endpoint that has an
// identifier, never masks none, and the default masks those over their budget.
func TestMasks_Modes(t *testing.T) {
	const value, maskOf = "GET /users/17", "GET /users/{id}"
	for mode, want := range map[registry.Masking]string{
		registry.MaskAlways:     maskOf,
		registry.MaskOverBudget: value, registry.MaskNever: value,
	} {
		r, origin := one(t, func(c *registry.Config) { c.Masking = mode })
		for range 3 {
			key := span.Key{
				Service: value, Operation: value, Resource: value, HTTPEndpoint: value,
				Type: value,
			}
			a := r.Admit(origin, &key)
			if got := rowOf(r, a); got.Resource != want || got.HTTPEndpoint != want || got.Type != value ||
				got.Service != value || a.IsUnchanged() != (want == value) {
				t.Errorf("%s: it became %+v, %+v", mode, got, a)
			}
		}
	}
	for mode, isMasked := range map[registry.Masking]bool{
		registry.MaskNever:      false,
		registry.MaskOverBudget: true,
	} {
		r, origin := one(t, func(c *registry.Config) {
			c.Masking, c.Budgets[span.LabelResource], c.Budgets[span.LabelType] = mode, 8, 8
		})
		masked := registry.LabelSet(0)
		for i := range 40 {
			key := resource(fmt.Sprint("GET /users/", i))
			key.Type = key.Resource
			masked |= r.Admit(origin, key).Masked
		}
		if want := set(span.LabelResource); isMasked && masked != want || !isMasked && masked != 0 {
			t.Errorf("%s: %b are masked", mode, masked)
		}
	}
}

// TestMasks_NoneOverBudget checks that a value whose mask exceeds the budget counts as collapsed, and not as masked.
func TestMasks_NoneOverBudget(t *testing.T) {
	for _, mode := range []registry.Masking{registry.MaskAlways, registry.MaskOverBudget} {
		config := testConfig()
		config.Masking, config.Budgets[span.LabelResource] = mode, 4
		intervals := registry.NewIntervals(&config)
		r := intervals.Registry()
		origin, _ := r.AdmitOrigin(span.Origin{})
		masked, lost := uint64(0), 0
		for i := range 20 {
			a := r.Admit(origin, resource(fmt.Sprintf("GET /%s/%d", word(i), i)))
			isMasked, isCollapsed := a.Masked != 0, a.Collapsed != 0
			if isMasked && isCollapsed {
				t.Errorf("%s: key %d is masked and collapsed", mode, i)
			}
			if isMasked {
				masked++
			}
			if isCollapsed {
				lost++
			}
		}
		if reported := intervals.Masked()["resource"]; masked == 0 || lost == 0 || reported != masked {
			t.Errorf("%s: %d keys are masked and %d collapsed; %d are reported as masked", mode, masked, lost, reported)
		}
	}
}

// TestMasks_FitTheirLabel checks that a text has no mask if the mask would exceed the limit of the
// label.
func TestMasks_FitTheirLabel(t *testing.T) {
	r, origin := one(t, func(c *registry.Config) { c.Masking = registry.MaskAlways })
	for text, isMasked := range map[string]bool{
		"/a/1": true, "/" + long(196) + "/1": false,
		"/" + long(190) + "/123456": true,
	} {
		key := span.Key{Service: "s", Operation: "o", Resource: "r", HTTPEndpoint: text}
		if a := r.Admit(origin, &key); a.Masked.Has(span.LabelHTTPEndpoint) != isMasked {
			t.Errorf("%s became %s", text, rowOf(r, a).HTTPEndpoint)
		}
	}
}

// TestMasks_StatisticsFromStart: every label that may be masked is there before any is.
func TestMasks_StatisticsFromStart(t *testing.T) {
	config := testConfig()
	if masked := registry.NewIntervals(&config).Masked(); len(masked) != 2 || masked["resource"] != 0 ||
		masked["http_endpoint"] != 0 {
		t.Errorf("they are %v", masked)
	}
	var m registry.Masking
	for _, name := range []string{"always", "never", "over-budget"} {
		if err := m.Set(name); err != nil || m.String() != name {
			t.Errorf("%s is %s, %v", name, m, err)
		}
	}
	if err := m.Set("sometimes"); err == nil {
		t.Error("sometimes is a mode")
	}
}

// TestMasks_NoneForKeyWithoutRow checks that a key without a row does not count as masked, because it
// is counted without any label.
func TestMasks_NoneForKeyWithoutRow(t *testing.T) {
	config := testConfig()
	config.MaxAggregates, config.Budgets[span.LabelResource] = 8, 8
	intervals := registry.NewIntervals(&config)
	r := intervals.Registry()
	origin, _ := r.AdmitOrigin(span.Origin{})
	masked, lost := uint64(0), 0
	for i := range 200 {
		a := r.Admit(origin, &span.Key{
			Service: "s", Operation: "o", Resource: fmt.Sprint("GET /a/", i), Type: fmt.Sprint("t", i%20),
		})
		if a.Masked != 0 {
			masked++
		}
		if a.Collapsed.Has(span.WholeKey) {
			lost++
		}
	}
	if reported := intervals.Masked()["resource"]; masked == 0 || lost == 0 || reported != masked {
		t.Errorf("%d keys are masked and %d have no row; %d are reported as masked", masked, lost, reported)
	}
}
