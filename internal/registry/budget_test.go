package registry

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

func admitter(t *testing.T, change func(*Config)) (*Registry, OriginID) {
	t.Helper()
	config := testConfig()
	change(&config)
	r := New(&config)
	origin, ok := r.AdmitOrigin(span.Origin{Service: "shop"})
	if !ok {
		t.Fatal("no room for the first origin")
	}
	return r, origin
}

func TestBudgetsCollapseBeforeTheKeyIsHashed(t *testing.T) {
	set := func(k *span.Key, l span.Label, value string) {
		if l < span.FirstList {
			*k.Text(l) = value
		} else {
			*k.Tags(l) = []string{"key:" + value}
		}
	}
	for f := range span.EndOfLists {
		r, origin := admitter(t, func(c *Config) { c.Budgets[f] = 4 })
		ids := map[KeyID]bool{}
		for i := range 20 { // each value twice: two pass at once, and two at their second sight
			key := span.Key{Service: "a", Operation: "b", Resource: "c"}
			set(&key, f, fmt.Sprint("value", i%10))
			a := r.Admit(origin, &key, false)
			ids[a.ID] = true
			if over := i >= 2 && i < 10 || i >= 14; a.Collapsed.Has(f) != over || (a.Collapsed != 0) != over {
				t.Errorf("%s: value %d collapsed %b", f, i, a.Collapsed)
			}
			if waits := i >= 2 && i < 10; a.Waits != waits {
				t.Errorf("%s: value %d waits: %t", f, i, a.Waits)
			}
			if again := r.Admit(origin, &key, true); again != a {
				t.Errorf("%s: value %d got %v, then %v", f, i, a, again)
			}
		}
		if len(ids) != 5 {
			t.Errorf("%s: %d aggregates for a budget of 4, want 5", f, len(ids))
		}
		want := span.Key{Service: "a", Operation: "b", Resource: "c"}
		set(&want, f, span.Blocked)
		if got := r.keys[2].Key; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: collapsed into %v, want %v", f, got, want)
		}
	}
}

func TestTagsOfUnboundedKeysCollapseWhole(t *testing.T) {
	r, origin := admitter(t, func(*Config) {})
	for i := range 400 {
		a := r.Admit(origin, &span.Key{PeerTags: []string{fmt.Sprintf("key%d:v", i%200)}}, false)
		if over := i >= MaxTagKeys/2 && i < 200 || i >= 200+MaxTagKeys; a.Collapsed.Has(span.LabelPeerTag) != over {
			t.Errorf("tag key %d: collapsed %b", i, a.Collapsed)
		}
	}
	if len(r.keys) != MaxTagKeys+1 {
		t.Errorf("%d aggregates for 200 tag keys, want %d", len(r.keys), MaxTagKeys+1)
	}
}

func TestCallerKeepsItsTags(t *testing.T) {
	r, origin := admitter(t, func(c *Config) { c.Budgets[span.LabelPeerTag] = 1 })
	tags := []string{"a:1", "a:2"}
	r.Admit(origin, &span.Key{PeerTags: tags}, false)
	if tags[1] != "a:2" {
		t.Errorf("the caller's tags became %v", tags)
	}
}

func TestWholeTableCap(t *testing.T) {
	r, first := admitter(t, func(c *Config) { c.MaxAggregates = 64 })
	second, _ := r.AdmitOrigin(span.Origin{Service: "cart"})
	var overflow [2]KeyID
	named := [2]int{}
	for o, origin := range []OriginID{first, second} {
		for i := range 400 {
			a := r.Admit(origin, &span.Key{Resource: fmt.Sprint(o, " ", i%200)}, false)
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
	if len(r.keys) > r.config.MaxKeys() || named[0] < 64 || named[1] < 8 || overflow[0] == overflow[1] {
		t.Fatalf("%d aggregates, of which %v have names, overflow rows %v", len(r.keys), named, overflow)
	}
	if got := r.keys[overflow[1]]; got.Origin != second || got.Key.Service != span.Blocked {
		t.Errorf("overflow row is %+v", got)
	}
	if a := r.Admit(first, &span.Key{Resource: "0 0"}, false); a.Collapsed != 0 || a.ID != 0 {
		t.Errorf("a key that was admitted earlier got %+v", a)
	}
	r.Reset(noPast())
	if o, ok := r.AdmitOrigin(span.Origin{Service: "new"}); !ok || o != 0 {
		t.Fatal("a reset Registry has no room")
	}
	if a := r.Admit(0, &span.Key{Resource: "x"}, false); a.ID != 0 || a.Collapsed != 0 {
		t.Errorf("a reset Registry gave %+v", a)
	}
}

// TestLabelBytes floods with long labels from one origin, and expects the memory
// of labels to be bounded and the others' first keys to keep their names.
func TestLabelBytes(t *testing.T) {
	r, flooder := admitter(t, func(c *Config) { c.LabelBytes = 1 << 20 })
	long := strings.Repeat("l", span.MaxResource)
	overflew := 0
	for i := range 2000 {
		if r.Admit(flooder, &span.Key{Resource: fmt.Sprint(i%1000, long)[:span.MaxResource]}, false).Collapsed.Has(span.WholeKey) {
			overflew++
		}
	}
	if fitting := 2000 - overflew; fitting < 150 || fitting > 2*1<<20/span.MaxResource+1 {
		t.Errorf("%d keys of %d bytes have a row in a MiB", fitting, span.MaxResource)
	}
	for o := range 5 {
		origin, _ := r.AdmitOrigin(span.Origin{Service: fmt.Sprint("quiet ", o)})
		for i := range 3 {
			if a := r.Admit(origin, &span.Key{Resource: fmt.Sprint(i)}, false); a.Collapsed != 0 {
				t.Errorf("origin %d key %d: collapsed %b", o, i, a.Collapsed)
			}
		}
	}
	texts := 0
	for _, v := range r.budgets.labels.list.items {
		texts += len(v.text)
	}
	if taken := r.shares.others.bytes + r.shares.reserve.taken.bytes; taken < texts || taken > 1<<20+1<<18+2*span.MaxResource {
		t.Errorf("%d bytes are taken, of which %d of texts", taken, texts)
	}
}

// TestBlockedOfTheTracer: what a tracer has collapsed itself is no value of ours,
// and meets what is collapsed here.
func TestBlockedOfTheTracer(t *testing.T) {
	r, origin := admitter(t, func(c *Config) { c.Budgets[span.LabelResource], c.Budgets[span.LabelPeerTag] = 1, 1 })
	theirs := r.Admit(origin, &span.Key{Resource: span.Blocked, PeerTags: []string{"k:" + span.Blocked, span.Blocked}}, false)
	if theirs.Collapsed != 0 {
		t.Errorf("collapsed %b by the tracer is counted as ours", theirs.Collapsed)
	}
	named := r.Admit(origin, &span.Key{Resource: "r", PeerTags: []string{"k:1"}}, false)
	if named.Collapsed != 0 {
		t.Errorf("collapsed %b: the tracer's own took a budget", named.Collapsed)
	}
	both := r.Admit(origin, &span.Key{Resource: "s", PeerTags: []string{"k:2", "k:3", span.Blocked}}, false)
	if both.ID != theirs.ID || both.Collapsed != 1<<span.LabelResource|1<<span.LabelPeerTag {
		t.Errorf("%v, and the tracer's %v", both, theirs)
	}
}

// TestAdmitKeepsNothingOfTheKey scribbles over the buffer that a key was part of.
func TestAdmitKeepsNothingOfTheKey(t *testing.T) {
	r, origin := admitter(t, func(*Config) {})
	buffer := []byte("service operation resource a:peer b:additional")
	part := func(from, to int) string { return unsafe.String(&buffer[from], to-from) }
	key := func() *span.Key {
		return &span.Key{
			Service: part(0, 7), Operation: part(8, 17), Resource: part(18, 26),
			PeerTags: []string{part(27, 33)}, AdditionalTags: []string{part(34, 46)},
		}
	}
	first := r.Admit(origin, key(), false)
	want := fmt.Sprint(r.keys[first.ID])
	kept := bytes.Clone(buffer)
	for i := range buffer {
		buffer[i] = 'x'
	}
	if got := fmt.Sprint(r.keys[first.ID]); got != want {
		t.Errorf("%s became %s", want, got)
	}
	copy(buffer, kept)
	if again := r.Admit(origin, key(), false); again != first {
		t.Errorf("%v, then %v", first, again)
	}
}

// TestOverflowCostsNoBudget: keys that find no row take no place of a budget.
func TestOverflowCostsNoBudget(t *testing.T) {
	r, origin := admitter(t, func(c *Config) { c.MaxAggregates = 4 })
	const rows = 5 // two at once, two at their second sight, and one of the reserve
	for i := range 1000 {
		r.Admit(origin, &span.Key{Resource: fmt.Sprint("r", i/2), PeerTags: []string{fmt.Sprint("k:", i/2)}}, false)
	}
	resources, tags := r.budgets.used[origin][span.LabelResource].others, r.budgets.tagKeys[0].places.others
	if resources > rows || tags > rows || len(r.budgets.labels.list.items) > int(firstID)+2*rows+1 {
		t.Errorf("%d resources, %d tags and %d values are remembered of a table of %d", resources, tags, len(r.budgets.labels.list.items), rows)
	}
	labels := len(r.budgets.labels.list.items)
	for i := range 100 {
		r.Admit(origin, &span.Key{PeerTags: []string{fmt.Sprint("k:new", i), fmt.Sprint("new", i, ":v")}}, false)
	}
	if len(r.budgets.labels.list.items) != labels || len(r.budgets.tagKeys) != 1 {
		t.Errorf("%d values and %d tag keys are remembered", len(r.budgets.labels.list.items), len(r.budgets.tagKeys))
	}
	r.Reset(noPast())
	if len(r.budgets.labels.list.items) != int(firstID) || len(r.budgets.tagKeys)+len(r.keys)+len(r.rows.list.items)+len(r.budgets.used)+r.shares.others.rows+r.shares.others.bytes != 0 {
		t.Errorf("after a reset: %+v", r)
	}
}

// TestCollapsedTagsAreASet: tags that became alike stand once, in order.
func TestCollapsedTagsAreASet(t *testing.T) {
	r, origin := admitter(t, func(c *Config) { c.Budgets[span.LabelPeerTag] = 1 })
	r.Admit(origin, &span.Key{PeerTags: []string{"a:1", "z:1"}}, false)
	first := r.Admit(origin, &span.Key{PeerTags: []string{"a:2", "a:3", "z:2"}}, false)
	second := r.Admit(origin, &span.Key{PeerTags: []string{"a:4", "z:5", "z:6"}}, false)
	if first.ID != second.ID {
		t.Errorf("aggregates %v and %v", r.keys[first.ID].Key.PeerTags, r.keys[second.ID].Key.PeerTags)
	}
}

func TestOrigins(t *testing.T) {
	r, first := admitter(t, func(c *Config) { c.MaxOrigins = 2 })
	if same, ok := r.AdmitOrigin(span.Origin{Service: "shop", RuntimeID: "other process"}); !ok || same != first {
		t.Error("origins that differ only in runtime id were not conflated")
	}
	if _, ok := r.AdmitOrigin(span.Origin{Service: "b"}); !ok {
		t.Error("no room for a second origin of two")
	}
	if _, ok := r.AdmitOrigin(span.Origin{Service: "c"}); ok {
		t.Error("room for a third origin of two")
	}
}

// TestAKeyBehindAnOverflowIsFoundAgain: the aggregate for an origin's keys that found no row
// has a number too, and the keys that other origins put behind it keep theirs.
func TestAKeyBehindAnOverflowIsFoundAgain(t *testing.T) {
	config := testConfig()
	config.MaxAggregates = 64
	r := New(&config)
	flood, _ := r.AdmitOrigin(span.Origin{Service: "flood"})
	for i := 0; !r.Admit(flood, &span.Key{Resource: fmt.Sprint(i)}, false).Collapsed.Has(span.WholeKey); i++ {
	}
	met := map[KeyID]bool{}
	for i := range 4 {
		origin, _ := r.AdmitOrigin(span.Origin{Service: fmt.Sprint(i)})
		key := &span.Key{Resource: "GET /"}
		first := r.Admit(origin, key, false)
		if again := r.Admit(origin, key, false); again != first || met[first.ID] || first.Collapsed != 0 {
			t.Fatalf("origin %d: a key is %+v and then %+v", i, first, again)
		}
		met[first.ID] = true
	}
}

// TestTheCommonOriginIsTrueOfAllThatHaveIt: it has what all of them have in common, and a
// cycle that was sealed before keeps what was true of those it counted.
func TestTheCommonOriginIsTrueOfAllThatHaveIt(t *testing.T) {
	r, shop := admitter(t, func(c *Config) { c.MaxOrigins = 1 })
	join := func(o span.Origin) OriginID {
		id, isCommon := r.JoinOrigin(o, 0)
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
		joined := []span.Origin{{Service: "cart", Host: "h", ContainerID: "2"}, {Service: "x", Host: "h"}, {Service: "x", Host: "other"}}[i]
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
	if id, isCommon := r.JoinOrigin(span.Origin{Service: "shop"}, 0); isCommon || id != shop {
		t.Error("an origin that is known has lost its place")
	}
	r.Admit(common, &span.Key{Service: "s", Operation: "o", Resource: "r"}, false)
	r.Reset(noPast())
	if id, isCommon := r.JoinOrigin(first, 0); isCommon || id != 0 {
		t.Error("a new interval has no room")
	}
}
