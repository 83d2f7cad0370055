package registry

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/template"
)

// TestWhatHadAPlaceIsKnownWhereNothingWaited: the sights say nothing of an interval in which
// every value had its place.
func TestWhatHadAPlaceIsKnownWhereNothingWaited(t *testing.T) {
	config := testConfig()
	config.Budgets[span.LabelResource] = 64
	intervals := NewIntervals(&config)
	for interval := range 2 {
		r := intervals.Registry()
		origin, _ := r.AdmitOrigin(span.Origin{})
		p := newPublisher(r, origin)
		for i := range 64 * interval { // one after the other passes until nothing does that comes once
			p.admit(keyOf(span.LabelResource, fmt.Sprint("new ", i)))
		}
		if a := p.admit(keyOf(span.LabelResource, "had a place")); a.Collapsed != 0 {
			t.Errorf("interval %d: %+v", interval, a)
		}
		if isEmpty := r.sights.isEmpty(); isEmpty != (interval == 0) {
			t.Errorf("interval %d: nothing waited is %t", interval, isEmpty)
		}
		intervals.Begin()
	}
}

// TestAGateIsShutWhenWhatRepeatedIsBack: before, a value that has no number may be one that a
// place is kept for; afterwards none is, and a lookup need not ask.
func TestAGateIsShutWhenWhatRepeatedIsBack(t *testing.T) {
	config := testConfig()
	config.Budgets[span.LabelResource], config.Budgets[span.LabelPeerTag] = 3, 3
	intervals := NewIntervals(&config)
	keep := func(i int) *span.Key {
		return &span.Key{Service: "s", Operation: "o", Resource: fmt.Sprint("r", i), PeerTags: []string{fmt.Sprint("key:", i)}}
	}
	r := intervals.Registry()
	origin, _ := r.AdmitOrigin(span.Origin{})
	for i := range 12 {
		r.Admit(origin, keep(i%3), false)
	}
	intervals.Begin()
	r = intervals.Registry()
	origin, _ = r.AdmitOrigin(span.Origin{})
	p := newPublisher(r, origin)
	for i := range 4 {
		p.admit(keep(100 + i))
		tagKey, _ := r.budgets.labels.lookUp(tagKeyScope(origin, span.LabelPeerTag), "key")
		text, tag := r.budgets.published[origin].load().of(span.LabelResource), r.budgets.labels.at(tagKey).height()
		if want := i == 3; (text == shut) != want || (tag == shut) != want {
			t.Errorf("%d of 3 values are back, and the gates are %b and %b", i, text, tag)
		}
		if a := p.admit(keep(i)); (a.Collapsed == 0) != (i < 3) {
			t.Errorf("value %d of 3 that repeated lost %b", i, a.Collapsed)
		}
	}
}

// TestTagsInAnyOrderCostNoLock: a flood's tags come in another order each time, and are the
// tags of one row once they have collapsed.
func TestTagsInAnyOrderCostNoLock(t *testing.T) {
	config := testConfig()
	config.Budgets[span.LabelPeerTag] = 2
	r := New(&config)
	origin, _ := r.AdmitOrigin(span.Origin{})
	p := newPublisher(r, origin)
	rnd := rand.New(rand.NewPCG(7, 20))
	rows := map[KeyID]bool{}
	for n := range 400 {
		key := span.Key{Service: "s", Operation: "o", Resource: "r"}
		for _, i := range rnd.Perm(20) {
			key.PeerTags = append(key.PeerTags, fmt.Sprintf("key%d:%d", i, n))
		}
		a, ok := p.lookup.Admit(&key, 0, false)
		if !ok {
			a = r.Admit(origin, &key, false)
		}
		if n >= 200 {
			rows[a.ID] = true
			if !ok {
				t.Fatalf("key %d is unknown", n)
			}
		}
	}
	if len(rows) != 1 {
		t.Errorf("they are in %d rows", len(rows))
	}
}

// TestEachLabelOfAKeyTeachesWhatItIs: a resource and an endpoint of one key are both asked for
// before it is decided that neither gets a number.
func TestEachLabelOfAKeyTeachesWhatItIs(t *testing.T) {
	texts := []string{"GET /users/123456", "/orders/123456/lines"}
	teach := func(labels ...int) []template.Sight {
		f := folder{templates: template.New()}
		f.begin()
		for _, i := range labels {
			f.name(1, folded[i], texts[i])
			f.asked(folded[i])
		}
		for _, i := range labels {
			f.sees(folded[i])
		}
		return f.came
	}
	if got := teach(0, 1); !slices.Equal(got, append(teach(0), teach(1)...)) || len(got) != 2 || got[0] == got[1] {
		t.Errorf("together they teach %+v", got)
	}
}

// TestAStatusWithoutAPlaceIsAbsent: its key has the row of keys without a status.
func TestAStatusWithoutAPlaceIsAbsent(t *testing.T) {
	config := testConfig()
	config.Budgets[span.LabelHTTPStatus] = 1
	r := New(&config)
	origin, _ := r.AdmitOrigin(span.Origin{})
	rows := map[KeyID]uint32{}
	for _, status := range []uint32{200, 0, 404, 200, 500} {
		key := span.Key{Service: "s", Operation: "o", Resource: "r", HTTPStatus: status}
		rows[r.Admit(origin, &key, false).ID] |= 1 << (status / 100)
	}
	if len(rows) != 2 {
		t.Errorf("they are in %d rows: %b", len(rows), rows)
	}
}
