package aggregate

import (
	"fmt"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

func admitter(t *testing.T, change func(*Config)) (*registry, OriginID) {
	t.Helper()
	config := testConfig(func(*Sealed) {})
	change(&config)
	r := newRegistry(&config)
	origin, ok := r.admitOrigin(span.Origin{Service: "shop"})
	if !ok {
		t.Fatal("no room for the first origin")
	}
	return r, origin
}

func TestBudgetsCollapseBeforeTheKeyIsHashed(t *testing.T) {
	set := map[Field]func(*span.Key, string){
		FieldService:       func(k *span.Key, v string) { k.Service = v },
		FieldOperation:     func(k *span.Key, v string) { k.Operation = v },
		FieldResource:      func(k *span.Key, v string) { k.Resource = v },
		FieldType:          func(k *span.Key, v string) { k.Type = v },
		FieldSpanKind:      func(k *span.Key, v string) { k.Kind = v },
		FieldHTTPMethod:    func(k *span.Key, v string) { k.HTTPMethod = v },
		FieldHTTPEndpoint:  func(k *span.Key, v string) { k.HTTPEndpoint = v },
		FieldGRPCStatus:    func(k *span.Key, v string) { k.GRPCStatus = v },
		FieldServiceSource: func(k *span.Key, v string) { k.ServiceSource = v },
		FieldPeerTag:       func(k *span.Key, v string) { k.PeerTags = []string{"peer.service:" + v} },
		FieldAdditionalTag: func(k *span.Key, v string) { k.AdditionalTags = []string{"region:" + v} },
	}
	for f := FieldService; f < FieldWholeKey; f++ {
		r, origin := admitter(t, func(c *Config) { c.Budgets[f] = 3 })
		ids := map[KeyID]bool{}
		for i := range 10 {
			key := span.Key{Service: "a", Operation: "b", Resource: "c"}
			set[f](&key, fmt.Sprint("value", i))
			a := r.admit(origin, &key)
			ids[a.ID] = true
			if over := i >= 3; a.Collapsed.Has(f) != over || (a.Collapsed != 0) != over {
				t.Errorf("%s: value %d collapsed %b", f, i, a.Collapsed)
			}
			if again := r.admit(origin, &key); again != a {
				t.Errorf("%s: value %d got %v, then %v", f, i, a, again)
			}
		}
		if len(ids) != 4 {
			t.Errorf("%s: %d aggregates for a budget of 3, want 4", f, len(ids))
		}
		want := span.Key{Service: "a", Operation: "b", Resource: "c"}
		set[f](&want, span.Blocked)
		if got := r.keys[3].Key; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: collapsed into %v, want %v", f, got, want)
		}
	}
}

func TestTagsOfUnboundedKeysCollapseWhole(t *testing.T) {
	r, origin := admitter(t, func(*Config) {})
	for i := range 200 {
		a := r.admit(origin, &span.Key{PeerTags: []string{fmt.Sprintf("key%d:v", i)}})
		if a.Collapsed.Has(FieldPeerTag) != (i >= maxTagKeys) {
			t.Errorf("tag key %d: collapsed %b", i, a.Collapsed)
		}
	}
	if len(r.keys) != maxTagKeys+1 {
		t.Errorf("%d aggregates for 200 tag keys, want %d", len(r.keys), maxTagKeys+1)
	}
}

func TestCallerKeepsItsTags(t *testing.T) {
	r, origin := admitter(t, func(c *Config) { c.Budgets[FieldPeerTag] = 1 })
	tags := []string{"a:1", "a:2"}
	r.admit(origin, &span.Key{PeerTags: tags})
	if tags[1] != "a:2" {
		t.Errorf("the caller's tags became %v", tags)
	}
}

func TestWholeTableCap(t *testing.T) {
	r, first := admitter(t, func(c *Config) { c.MaxAggregates = 5 })
	second, _ := r.admitOrigin(span.Origin{Service: "cart"})
	var overflow [2]KeyID
	for o, origin := range []OriginID{first, second} {
		for i := range 20 {
			a := r.admit(origin, &span.Key{Resource: fmt.Sprint(o, i)})
			if over := o > 0 || i >= 5; a.Collapsed.Has(FieldWholeKey) != over {
				t.Fatalf("origin %d key %d: collapsed %b", o, i, a.Collapsed)
			} else if over {
				overflow[o] = a.ID
			}
		}
	}
	if len(r.keys) != 7 || overflow[0] == overflow[1] {
		t.Fatalf("%d aggregates, overflow rows %v; want 5 and one for each origin", len(r.keys), overflow)
	}
	if got := r.keys[overflow[1]]; got.Origin != second || got.Key.Service != span.Blocked {
		t.Errorf("overflow row is %+v", got)
	}
	if a := r.admit(first, &span.Key{Resource: "0 0"}); a.Collapsed != 0 || a.ID != 0 {
		t.Errorf("a key that was admitted earlier got %+v", a)
	}
	r.reset()
	if o, ok := r.admitOrigin(span.Origin{Service: "new"}); !ok || o != 0 {
		t.Fatal("a reset registry has no room")
	}
	if a := r.admit(0, &span.Key{Resource: "x"}); a.ID != 0 || a.Collapsed != 0 {
		t.Errorf("a reset registry gave %+v", a)
	}
}

// TestOverflowCostsNoBudget: keys that find the table full remember nothing.
func TestOverflowCostsNoBudget(t *testing.T) {
	r, origin := admitter(t, func(c *Config) { c.MaxAggregates = 3 })
	for i := range 500 {
		r.admit(origin, &span.Key{Resource: fmt.Sprint("r", i), PeerTags: []string{fmt.Sprint("k:", i)}})
	}
	b := r.budgets[origin]
	if resources, tags := len(b.values[FieldResource]), len(b.tags[0]["k"]); resources != 3 || tags != 3 {
		t.Errorf("%d resources and %d tags are remembered of a table of 3", resources, tags)
	}
}

// TestCollapsedTagsAreASet: tags that became alike stand once, in order.
func TestCollapsedTagsAreASet(t *testing.T) {
	r, origin := admitter(t, func(c *Config) { c.Budgets[FieldPeerTag] = 1 })
	r.admit(origin, &span.Key{PeerTags: []string{"a:1", "z:1"}})
	first := r.admit(origin, &span.Key{PeerTags: []string{"a:2", "a:3", "z:2"}})
	second := r.admit(origin, &span.Key{PeerTags: []string{"a:4", "z:5", "z:6"}})
	if first.ID != second.ID {
		t.Errorf("aggregates %v and %v", r.keys[first.ID].Key.PeerTags, r.keys[second.ID].Key.PeerTags)
	}
}

func TestOrigins(t *testing.T) {
	r, first := admitter(t, func(c *Config) { c.MaxOrigins = 2 })
	if same, ok := r.admitOrigin(span.Origin{Service: "shop", RuntimeID: "other process"}); !ok || same != first {
		t.Error("origins that differ only in runtime id were not conflated")
	}
	if _, ok := r.admitOrigin(span.Origin{Service: "b"}); !ok {
		t.Error("no room for a second origin of two")
	}
	if _, ok := r.admitOrigin(span.Origin{Service: "c"}); ok {
		t.Error("room for a third origin of two")
	}
}
