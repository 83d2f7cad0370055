package registry

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// The tests of this file hold the orders of publication that doc.go lists. In most, one
// goroutine writes while another reads the very same thing: each fails within a run or two
// where an order is swapped.

// together calls write and read with each number at the same moment. read must return
// after write has.
func together(n int, write, read func(i int)) {
	var reading atomic.Int64
	var both sync.WaitGroup
	both.Go(func() {
		for i := range n {
			reading.Store(int64(i) + 1)
			read(i)
		}
	})
	both.Go(func() {
		for i := range n {
			for reading.Load() <= int64(i) {
				runtime.Gosched()
			}
			write(i)
		}
	})
	both.Wait()
}

// hashAlone is a hash that looks like no other number's.
func hashAlone(i int) uint64 { return uint64(i+1)<<hashHalf | uint64(uint32(i)*2654435761) }

func TestALabelIsCompleteBeforeItIsFindable(t *testing.T) {
	for range 3 {
		var table labelTable
		table.init()
		together(4_000, func(i int) {
			table.add(label{hash: hashAlone(i), text: fmt.Sprint("text", i)})
		}, func(i int) {
			want := fmt.Sprint("text", i)
			for isFindable := false; !isFindable && !t.Failed(); {
				for id := range table.ids.candidates(hashAlone(i)) {
					if isFindable = true; int(id) >= len(*table.list.published.Load()) || table.at(id).text != want {
						t.Errorf("label %d is findable and not there", i)
					}
				}
			}
		})
	}
}

func TestAKeyIsCompleteBeforeItIsFindable(t *testing.T) {
	for range 3 {
		var table rowTable
		table.init()
		wordsOf := func(i int) []uint32 { return []uint32{1, uint32(i) + 7, uint32(i) + 9} }
		together(4_000, func(i int) {
			table.put(KeyID(i), row{hash: hashAlone(i)}, wordsOf(i))
		}, func(i int) {
			for isFindable := false; !isFindable && !t.Failed(); {
				for id := range table.ids.candidates(hashAlone(i)) {
					isFindable = true
					if int(id) >= len(*table.list.published.Load()) {
						t.Errorf("key %d is findable and not there", i)
						return
					}
					r := table.list.at(id)
					if int(r.to) > len(*table.words.published.Load()) || !slices.Equal(table.words.part(r.from, r.to), wordsOf(i)) {
						t.Errorf("key %d is findable and has no words", i)
					}
				}
			}
		})
	}
}

// TestWhatIsFindableStaysSoWhileTheTableGrows searches while a table twice as large is
// filled, each time that it asks for the hash of a number.
func TestWhatIsFindableStaysSoWhileTheTableGrows(t *testing.T) {
	var table hashTable
	known, growing := uint32(0), 0 // numbers that were put
	table.hashOf = func(number uint32) uint64 {
		growing++
		for n := range known {
			if !isFindable(&table, n) {
				t.Fatalf("number %d can't be found while a table of %d grows", n, known)
			}
		}
		return hashAlone(int(number))
	}
	table.init()
	for ; known < 300; known++ {
		table.put(hashAlone(int(known)), known)
	}
	if growing < 300 {
		t.Errorf("the table grew with %d numbers in all", growing)
	}
}

func isFindable(table *hashTable, number uint32) bool {
	for candidate := range table.candidates(hashAlone(int(number))) {
		if candidate == number {
			return true
		}
	}
	return false
}

// TestALookupBesideTheAdmissionThatUsesUpABudget looks a key up while it is admitted, which
// uses up a budget. There is a row already for what its label would collapse into, so a
// lookup that sees the budget used up too early finds that.
func TestALookupBesideTheAdmissionThatUsesUpABudget(t *testing.T) {
	tagKeys := []span.Key{keyWith("r", span.Blocked)}
	for i := range 2 * (MaxTagKeys - 1) {
		tagKeys = append(tagKeys, keyWith("r", fmt.Sprintf("key%d:v", i%(MaxTagKeys-1))))
	}
	tagKeys = append(tagKeys, keyWith("r", "last:v")) // it waits
	for _, test := range []struct {
		name   string
		change func(*Config)
		before []span.Key
		last   span.Key
		lost   Collapsed
	}{
		{
			name: "the last value of a budget is findable before the budget is used up", last: keyWith("last"),
			change: func(c *Config) { c.Budgets[span.LabelResource] = 1 },
			before: []span.Key{keyWith(span.Blocked)},
		}, {
			name: "the last value of a budget is in the filter before the budget is used up", last: keyWith("GET /the/last"),
			change: func(c *Config) { c.Budgets[span.LabelResource] = 1 },
			before: []span.Key{keyWith(span.Blocked)},
		}, {
			name: "the last tag of a tag key is in the filter before the tag key collapses", last: keyWith("r", "key:the last"),
			change: func(c *Config) { c.Budgets[span.LabelPeerTag] = 1 },
			before: []span.Key{keyWith("r", "key:"+span.Blocked)},
		}, {
			name: "the last tag of a tag key is findable before the tag key collapses", last: keyWith("r", "key:2"),
			change: func(c *Config) { c.Budgets[span.LabelPeerTag] = 1 },
			before: []span.Key{keyWith("r", "key:"+span.Blocked)},
		}, {
			name: "the last tag key is findable before the tag keys are used up", last: keyWith("r", "last:v"),
			change: func(*Config) {}, before: tagKeys,
		}, {
			name: "what keys without a row get is there before there is no row", last: keyWith("r"),
			change: func(c *Config) { c.MaxAggregates = 1 }, lost: setOf(span.WholeKey),
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			for range 3 {
				lookUpBesideAdmissions(t, test.change, test.before, &test.last, test.lost)
			}
		})
	}
}

func keyWith(resource string, peerTags ...string) span.Key {
	return span.Key{Service: "shop", Operation: "op", Resource: resource, PeerTags: peerTags}
}

func lookUpBesideAdmissions(t *testing.T, change func(*Config), before []span.Key, last *span.Key, lost Collapsed) {
	t.Helper()
	config := DefaultConfig()
	config.MaxOrigins, config.MaxAggregates, config.LabelBytes = 400, 1<<17, 1<<29
	change(&config)
	r := New(&config)
	if lost != 0 { // take what rows there are
		for i := range 2 {
			r.AdmitOrigin(span.Origin{Service: fmt.Sprint("first ", i)})
			r.Admit(OriginID(i), last, false)
		}
	}
	var lookups []*Lookup
	for i := range config.MaxOrigins - 2 {
		origin, _ := r.AdmitOrigin(span.Origin{Service: fmt.Sprint(i)})
		for k := range before {
			r.Admit(origin, &before[k], false)
		}
		lookups = append(lookups, &Lookup{})
		lookups[i].Begin(r, origin)
	}
	together(len(lookups), func(i int) {
		r.Admit(lookups[i].origin, last, false)
	}, func(i int) {
		for isKnown := false; !isKnown && !t.Failed(); {
			var got Admission
			if got, isKnown = lookups[i].Admit(last, 0, false); isKnown && (got.Collapsed != lost || got != r.Admit(lookups[i].origin, last, false)) {
				t.Errorf("origin %d: the key became %+v", i, got)
			}
		}
	})
}
