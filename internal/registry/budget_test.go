package registry_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// TestBudget_CollapsesTheLabelAlone: a value without a row becomes tracer_blocked_value, so that
// all such keys are one.
func TestBudget_CollapsesTheLabelAlone(t *testing.T) {
	for f := range span.EndOfLists {
		r, origin := one(t, func(c *registry.Config) { c.Budgets[f], c.Masking = 4, registry.MaskNever })
		ids := map[registry.KeyID]bool{}
		for i := range 20 { // each value twice: two have rows at once, and two at their second use
			key := span.Key{Service: "a", Operation: "b", Resource: "c"}
			with(&key, f, fmt.Sprint("value", i%10))
			a := r.Admit(origin, &key)
			ids[a.ID] = true
			if over := i >= 2 && i < 10 || i >= 14; a.Collapsed.Has(f) != over || (a.Collapsed != 0) != over {
				t.Errorf("%s: value %d collapsed %b", f, i, a.Collapsed)
			}
		}
		if len(ids) != 5 {
			t.Errorf("%s: %d aggregates for a budget of 4, want 5", f, len(ids))
		}
		want := span.Key{Service: "a", Operation: "b", Resource: "c"}
		with(&want, f, span.Blocked)
		if got := rowsOf(r)[2].Key; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: collapsed into %v, want %v", f, got, want)
		}
	}
}

// TestBudget_FitsFortyServices: with the default budgets, the services of a gateway that sends spans of 40 keep their
// names from the first span on.
func TestBudget_FitsFortyServices(t *testing.T) {
	r, origin := one(t, func(*registry.Config) {})
	for i := range 40 {
		key := span.Key{Service: fmt.Sprint("service", i), Operation: "b", Resource: "c"}
		if a := r.Admit(origin, &key); a.Collapsed != 0 {
			t.Errorf("service %d lost its name", i)
		}
	}
}

func TestTags_UnboundedKeyCollapses(t *testing.T) {
	r, origin := one(t, func(*registry.Config) {})
	for i := range 400 {
		a := r.Admit(origin, &span.Key{PeerTags: []string{fmt.Sprintf("key%d:v", i%200)}})
		if over := i >= registry.MaxTagKeys/2 && i < 200 ||
			i >= 200+registry.MaxTagKeys; a.Collapsed.Has(span.LabelPeerTag) != over {
			t.Errorf("tag key %d: collapsed %b", i, a.Collapsed)
		}
	}
	if len(rowsOf(r)) != registry.MaxTagKeys+1 {
		t.Errorf("%d aggregates for 200 tag keys, want %d", len(rowsOf(r)), registry.MaxTagKeys+1)
	}
}

func TestTags_CallersAreUnchanged(t *testing.T) {
	r, origin := one(t, func(c *registry.Config) { c.Budgets[span.LabelPeerTag] = 1 })
	tags := []string{"a:1", "a:2"}
	r.Admit(origin, &span.Key{PeerTags: tags})
	if tags[1] != "a:2" {
		t.Errorf("the caller's tags became %v", tags)
	}
}

func TestTable_Cap(t *testing.T) {
	most := 0
	r, first := one(t, func(c *registry.Config) {
		c.MaxAggregates = 64
		most = c.MaxKeys()
	})
	second, _ := r.AdmitOrigin(span.Origin{Service: "cart"})
	var overflow [2]registry.KeyID
	named := [2]int{}
	for o, origin := range []registry.OriginID{first, second} {
		for i := range 400 {
			a := r.Admit(origin, &span.Key{Resource: fmt.Sprint(o, " ", i%200)})
			switch {
			case a.Collapsed == 0:
				named[o]++
			case a.Collapsed == 1<<span.WholeKey:
				overflow[o] = a.ID
			default:
				t.Fatalf("origin %d key %d: collapsed %b", o, i, a.Collapsed)
			}
		}
	}
	if len(rowsOf(r)) > most || named[0] < 64 || named[1] < 8 || overflow[0] == overflow[1] {
		t.Fatalf("%d aggregates, of which %v have names, overflow rows %v", len(rowsOf(r)), named, overflow)
	}
	if got := rowsOf(r)[overflow[1]]; got.Origin != second || got.Key.Service != span.Blocked {
		t.Errorf("overflow row is %+v", got)
	}
	if a := r.Admit(first, &span.Key{Resource: "0 0"}); a.Collapsed != 0 || a.ID != 0 {
		t.Errorf("a key that was admitted earlier got %+v", a)
	}
}

// TestLabelBytes floods with long labels from one origin, and expects the memory
// of labels to be bounded and the others' first keys to keep their names.
func TestLabelBytes(t *testing.T) {
	r, flooder := one(t, func(c *registry.Config) { c.LabelBytes = 1 << 20 })
	long := strings.Repeat("l", span.MaxResource)
	overflew := 0
	for i := range 2000 {
		if r.Admit(flooder, &span.Key{Resource: fmt.Sprint(i%1000, long)[:span.MaxResource]}).Collapsed.Has(span.WholeKey) {
			overflew++
		}
	}
	if fitting := 2000 - overflew; fitting < 150 || fitting > 2*1<<20/span.MaxResource+1 {
		t.Errorf("%d keys of %d bytes have a row in a MiB", fitting, span.MaxResource)
	}
	for o := range 5 {
		origin, _ := r.AdmitOrigin(span.Origin{Service: fmt.Sprint("quiet ", o)})
		for i := range 3 {
			if a := r.Admit(origin, &span.Key{Resource: fmt.Sprint(i)}); a.Collapsed != 0 {
				t.Errorf("origin %d key %d: collapsed %b", o, i, a.Collapsed)
			}
		}
	}
}

// TestBlockedValue_SentByClient: a label that the tracer has collapsed takes no row, and is equal to one
// that is collapsed here.
func TestBlockedValue_SentByClient(t *testing.T) {
	r, origin := one(t, func(c *registry.Config) {
		c.Budgets[span.LabelResource], c.Budgets[span.LabelPeerTag] = 1, 1
	})
	theirs := r.Admit(origin,
		&span.Key{Resource: span.Blocked, PeerTags: []string{"k:" + span.Blocked, span.Blocked}})
	if theirs.Collapsed != 0 {
		t.Errorf("collapsed %b by the tracer is counted as ours", theirs.Collapsed)
	}
	named := r.Admit(origin, &span.Key{Resource: "r", PeerTags: []string{"k:1"}})
	if named.Collapsed != 0 {
		t.Errorf("collapsed %b: the label of the tracer used a budget", named.Collapsed)
	}
	both := r.Admit(origin, &span.Key{Resource: "s", PeerTags: []string{"k:2", "k:3", span.Blocked}})
	if both.ID != theirs.ID || both.Collapsed != 1<<span.LabelResource|1<<span.LabelPeerTag {
		t.Errorf("%v, and the tracer's %v", both, theirs)
	}
}

// TestAdmit_RetainsNothingOfKey scribbles over the buffer that a key was part of.
func TestAdmit_RetainsNothingOfKey(t *testing.T) {
	r, origin := one(t, func(*registry.Config) {})
	buffer := []byte("service operation resource a:peer b:additional")
	part := func(from, to int) string { return unsafe.String(&buffer[from], to-from) }
	key := func() *span.Key {
		return &span.Key{
			Service: part(0, 7), Operation: part(8, 17), Resource: part(18, 26),
			PeerTags: []string{part(27, 33)}, AdditionalTags: []string{part(34, 46)},
		}
	}
	first := r.Admit(origin, key())
	want := fmt.Sprint(*rowOf(r, first))
	kept := bytes.Clone(buffer)
	for i := range buffer {
		buffer[i] = 'x'
	}
	if got := fmt.Sprint(*rowOf(r, first)); got != want {
		t.Errorf("%s became %s", want, got)
	}
	copy(buffer, kept)
	if again := r.Admit(origin, key()); again != first {
		t.Errorf("%v, then %v", first, again)
	}
}

// TestOverflow_CostsNoBudget: keys that find no row take no place of a budget, so that a key that
// finds one has all of its labels.
func TestOverflow_CostsNoBudget(t *testing.T) {
	r, flooder := one(t, func(c *registry.Config) { c.MaxAggregates = 4 })
	flood := func(i int) registry.Admission {
		return r.Admit(flooder,
			&span.Key{
				Resource: fmt.Sprint("r", i),
				PeerTags: []string{fmt.Sprint("k:", i), fmt.Sprint("new", i, ":v")},
			})
	}
	for i := range 2000 {
		flood(i / 2)
	}
	if a := flood(5000); a.Collapsed != set(span.WholeKey) {
		t.Fatalf("there is still a row: %+v", a)
	}
	quiet, _ := r.AdmitOrigin(span.Origin{Service: "quiet"})
	if a := r.Admit(quiet, &span.Key{Resource: "GET /", PeerTags: []string{"k:v"}}); a.Collapsed != 0 {
		t.Errorf("another origin's first key lost %b", a.Collapsed)
	}
	if _, rows := r.Size(); rows > 4+1+3 {
		t.Errorf("%d rows", rows)
	}
}

// TestTags_CollapsedAreASet checks that tags that became equal occur once, in order.
func TestTags_CollapsedAreASet(t *testing.T) {
	r, origin := one(t, func(c *registry.Config) { c.Budgets[span.LabelPeerTag] = 1 })
	r.Admit(origin, &span.Key{PeerTags: []string{"a:1", "z:1"}})
	first := r.Admit(origin, &span.Key{PeerTags: []string{"a:2", "a:3", "z:2"}})
	second := r.Admit(origin, &span.Key{PeerTags: []string{"a:4", "z:5", "z:6"}})
	if first.ID != second.ID {
		t.Errorf("aggregates %v and %v", rowOf(r, first).PeerTags, rowOf(r, second).PeerTags)
	}
}

func TestRegistry_Origins(t *testing.T) {
	r, first := one(t, func(c *registry.Config) { c.MaxOrigins = 2 })
	if same, ok := r.AdmitOrigin(span.Origin{Service: "shop", RuntimeID: "other process"}); !ok ||
		same != first {
		t.Error("origins that differ only in runtime id were not conflated")
	}
	if _, ok := r.AdmitOrigin(span.Origin{Service: "b"}); !ok {
		t.Error("no room for a second origin of two")
	}
	if _, ok := r.AdmitOrigin(span.Origin{Service: "c"}); ok {
		t.Error("room for a third origin of two")
	}
}

// TestOverflow_LaterKeyIDsStayValid: the overflow row of an origin has an ID as well, and the
// IDs of later keys remain valid.
func TestOverflow_LaterKeyIDsStayValid(t *testing.T) {
	config := testConfig()
	config.MaxAggregates = 64
	r := registry.NewIntervals(&config).Registry()
	flood, _ := r.AdmitOrigin(span.Origin{Service: "flood"})
	for i := 0; !r.Admit(flood, &span.Key{Resource: fmt.Sprint(i)}).Collapsed.Has(span.WholeKey); i++ {
	}
	met := map[registry.KeyID]bool{}
	for i := range 4 {
		origin, _ := r.AdmitOrigin(span.Origin{Service: fmt.Sprint(i)})
		key := &span.Key{Resource: "GET /"}
		first := r.Admit(origin, key)
		if again := r.Admit(origin, key); again != first || met[first.ID] || first.Collapsed != 0 {
			t.Fatalf("origin %d: a key is %+v and then %+v", i, first, again)
		}
		met[first.ID] = true
	}
}

// TestCommonOrigin_HasFieldsOfAllMembers: the common origin has the fields that are equal in all
// of its members. The names of a cycle that was sealed earlier do not change.
func TestCommonOrigin_HasFieldsOfAllMembers(t *testing.T) {
	r, shop := one(t, func(c *registry.Config) { c.MaxOrigins = 1 })
	join := func(o span.Origin) registry.OriginID {
		id, isCommon := r.AdmitOriginOrShared(o, 0)
		if !isCommon || id == shop {
			t.Fatalf("%+v has origin %d", o, id)
		}
		return id
	}
	first := span.Origin{Service: "cart", Host: "h", ContainerID: "1"}
	common := join(first)
	before, _ := r.Contents()
	for i, want := range []span.Origin{
		{Service: "cart", Host: "h"},
		{Service: span.Blocked, Host: "h"},
		{Service: span.Blocked},
	} {
		joined := []span.Origin{
			{Service: "cart", Host: "h", ContainerID: "2"},
			{Service: "x", Host: "h"},
			{Service: "x", Host: "other"},
		}[i]
		if join(joined) != common {
			t.Error("there are two common origins")
		}
		if origins, _ := r.Contents(); origins[common] != want {
			t.Errorf("with %+v it is %+v, want %+v", joined, origins[common], want)
		}
	}
	if before[common] != first {
		t.Errorf("a sealed cycle's is %+v", before[common])
	}
	if id, isCommon := r.AdmitOriginOrShared(span.Origin{Service: "shop"}, 0); isCommon || id != shop {
		t.Error("an origin that is known has lost its place")
	}
}
