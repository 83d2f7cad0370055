package registry_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// naive is a budget with a gate, told with exact sets.
type naive struct {
	limit             int
	isNew             bool            // nothing was there in the last interval
	places            map[string]int  // by value, how often it came since it has one
	masks             map[string]bool // what has a place and came as a mask alone
	waited            map[string]bool // what came and has none
	hadPlace, hadCome map[string]bool // of the last interval
	hadRepeated       map[string]bool
	others            int
}

func newNaive(limit int) *naive {
	return &naive{
		limit: limit, isNew: true, places: map[string]int{}, masks: map[string]bool{},
		waited: map[string]bool{},
	}
}

// next is the budget of the next interval.
func (n *naive) next() *naive {
	next := newNaive(n.limit)
	next.isNew, next.hadPlace, next.hadCome, next.hadRepeated = false, map[string]bool{}, n.waited, map[string]bool{}
	for value, times := range n.places {
		next.hadPlace[value] = true
		if times > 1 && !n.masks[value] {
			next.hadRepeated[value] = true
		}
	}
	return next
}

// comes says whether a value that comes, perhaps as a mask, has its name.
func (n *naive) comes(value string, isMask bool) bool {
	if n.places[value] > 0 {
		n.places[value]++
		n.masks[value] = n.masks[value] && isMask
		return true
	}
	taken := n.others + len(n.hadRepeated)
	isOpen, isHalfOpen, isOneOpen := 2*taken < n.limit ||
		16*n.others < n.limit, taken < n.limit-n.limit/4, taken < n.limit
	cameBefore := n.hadPlace[value] || n.hadCome[value]
	switch {
	case isMask && isOneOpen && (isOpen || isHalfOpen && (cameBefore || n.waited[value])):
	case isMask:
		n.waited[value] = true
		return false
	case n.hadRepeated[value]:
		n.others-- // its place was kept
	case isOneOpen && (isOpen || cameBefore || n.waited[value] && (isHalfOpen || n.isNew)):
	default:
		n.waited[value] = true
		return false
	}
	n.others++
	n.places[value], n.masks[value] = 1, isMask
	return true
}

// TestAdmissionsAgainstSets admits random values, of which some come again, over several
// intervals, some of them in batches that are tried again, and expects of each what exact sets
// say.
func TestAdmissionsAgainstSets(t *testing.T) {
	for seed := range uint64(40) {
		err := admitAgainstSets(seed)
		if err != nil {
			t.Log("again, because a sight may be taken for another, by a seed that is another each time:",
				err)
			err = admitAgainstSets(seed)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func admitAgainstSets(seed uint64) error {
	rnd := rand.New(rand.NewPCG(seed, 20))
	config := testConfig()
	limit := 1 + rnd.IntN(100)
	config.Budgets[span.LabelResource], config.Budgets[span.LabelPeerTag] = limit, limit
	intervals := registry.NewIntervals(&config)
	texts, tags := newNaive(limit), newNaive(limit)
	for interval := range 6 {
		r := intervals.Registry()
		origin, _ := r.AdmitOrigin(span.Origin{})
		for range 2000 {
			key := span.Key{Service: "s", Operation: "o", Resource: span.Blocked}
			want, label := false, span.LabelResource
			value := fmt.Sprint("value-", int(float64(limit)*rnd.ExpFloat64()))
			if rnd.IntN(2) == 0 {
				value = fmt.Sprint("once-", rnd.Uint64())
			}
			if rnd.IntN(2) == 0 {
				label = span.LabelPeerTag
				key.PeerTags, want = []string{"key:" + value}, tags.comes(value, false)
			} else {
				key.Resource, want = value, texts.comes(value, false)
			}
			isMasked := !want && label == span.LabelResource &&
				texts.comes(value[:strings.IndexByte(value, '-')+1]+"{id}", true)
			if got := r.Admit(origin, &key, false); got.Collapsed.Has(label) == (want || isMasked) ||
				got.Masked.Has(label) != isMasked {
				return fmt.Errorf("seed %d, interval %d: %s of %d is %+v, named: %t, masked: %t", seed,
					interval, value, limit, got, want, isMasked)
			}
			if rnd.IntN(10) == 0 { // a second try is no second sight
				r.Admit(origin, &key, true)
			}
		}
		texts, tags = texts.next(), tags.next()
		intervals.Begin()
	}
	return nil
}

// TestWhatRepeatsKeepsItsName holds the promise of docs/architecture.md: of values that come
// at least twice in each interval, all have their names from their first span on from
// the third interval on, as long as they are fewer than seven eighths of the
// budget, and from their second span on if they are fewer than half, whatever comes once
// around them. Whatever it is that floods, a value that had its name and came twice with it
// has it at once in the next interval, so that also values which come some times and never
// again only delay the others.
func TestWhatRepeatsKeepsItsName(t *testing.T) {
	for seed := range uint64(24) {
		rnd := rand.New(rand.NewPCG(seed, 21))
		config := testConfig()
		limit, times := 32+rnd.IntN(200), 1+int(seed%3) // how often each value of the flood comes
		config.Budgets[span.LabelResource] = limit
		honest := 1 + rnd.IntN(limit*7/8-2)
		intervals := registry.NewIntervals(&config)
		kept := map[string]bool{}
		for interval := range 12 {
			r := intervals.Registry()
			origin, _ := r.AdmitOrigin(span.Origin{})
			named, lost := map[string]int{}, map[string]int{}
			for _, value := range traffic(rnd, honest, times, interval) {
				key := span.Key{Service: "s", Operation: "o", Resource: value}
				if a := r.Admit(origin, &key, false); a.Whole() {
					named[value]++
				} else {
					lost[value]++
				}
			}
			for value := range kept {
				if lost[value] > 0 && named[value]+lost[value] > 0 {
					t.Fatalf("seed %d, interval %d: %s had a row, came twice, and lost %d spans", seed,
						interval, value, lost[value])
				}
			}
			clear(kept)
			for i := range honest {
				value := fmt.Sprint("honest ", i)
				if lost[value] > 0 &&
					(times == 1 && interval > 1 || lost[value] > 1 && times == 1 && 2*honest < limit ||
						interval > 9) {
					t.Fatalf("seed %d, interval %d: %s, one of %d for a budget of %d, lost %d spans", seed,
						interval, value, honest, limit, lost[value])
				}
				if named[value] > 1 {
					kept[value] = true
				}
			}
			if len(named) > limit {
				t.Fatalf("seed %d: %d names for a budget of %d", seed, len(named), limit)
			}
			intervals.Begin()
		}
	}
}

// TestNamesWinOverMasks: masks that keep coming have no place kept, and a quarter of a budget is never
// theirs. So names that begin when all else is taken get at least that quarter more in each interval, up to
// all of it.
func TestNamesWinOverMasks(t *testing.T) {
	const limit, honest, begin = 128, 100, 3
	config := testConfig()
	config.Budgets[span.LabelResource] = limit
	intervals := registry.NewIntervals(&config)
	rnd := rand.New(rand.NewPCG(7, 23))
	for interval := range begin + 7 {
		r := intervals.Registry()
		origin, _ := r.AdmitOrigin(span.Origin{})
		var values []string
		for i := range 20 * limit { // each mask comes twenty times, what is masked never again
			values = append(values, fmt.Sprintf("GET /%c%c/orders/%d", 'a'+i%16, 'a'+i/16%16, rnd.Uint64()))
		}
		for i := range honest {
			if name := fmt.Sprint("honest ", i); interval >= begin {
				values = append(values, name, name)
			}
		}
		rnd.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
		masked := 0
		for _, value := range values {
			a := r.Admit(origin, &span.Key{Service: "s", Operation: "o", Resource: value}, false)
			if a.Masked != 0 {
				masked++
			}
			if strings.HasPrefix(value, "honest") && interval >= begin+4 && !a.Whole() {
				t.Fatalf("interval %d: %s is %+v", interval, value, a)
			}
		}
		if interval < begin && masked == 0 {
			t.Fatalf("interval %d: nothing is masked", interval)
		}
		intervals.Begin()
	}
}

// TestANameThatWasAMaskIsKept: a text that is the mask of some spans and the name of others, as of a route
// that a framework names itself, is a name.
func TestANameThatWasAMaskIsKept(t *testing.T) {
	const limit = 32
	config := testConfig()
	config.Budgets[span.LabelResource] = limit
	intervals := registry.NewIntervals(&config)
	for interval := range 3 {
		r := intervals.Registry()
		origin, _ := r.AdmitOrigin(span.Origin{})
		admit := func(resource string) registry.Admission {
			return r.Admit(origin, &span.Key{Service: "s", Operation: "o", Resource: resource}, false)
		}
		if interval < 2 {
			for i := range limit { // half of them have places, and their mask has one behind them
				admit(fmt.Sprint("GET /users/", 100*interval+i))
			}
			for range 2 {
				if a := admit("GET /users/{id}"); !a.Whole() {
					t.Fatalf("interval %d: %+v", interval, a)
				}
			}
		}
		for i := range 4 * limit {
			for range 3 {
				admit(fmt.Sprint("other ", i))
			}
		}
		if a := admit("GET /users/{id}"); !a.Whole() {
			t.Errorf("interval %d: the name is %+v", interval, a)
		}
		intervals.Begin()
	}
}

// traffic is one interval: honest values two to four times each, and ten times as many of
// a flood, in any order.
func traffic(rnd *rand.Rand, honest, times, interval int) (values []string) {
	for i := range honest {
		for range 2 + rnd.IntN(3) {
			values = append(values, fmt.Sprint("honest ", i))
		}
	}
	for i := range 30 * honest / times {
		for range times {
			values = append(values, fmt.Sprint("flood ", interval, " ", i))
		}
	}
	rnd.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
	return values
}

// TestRowsThatRepeatKeepTheirNames: combinations of few values are a flood too.
func TestRowsThatRepeatKeepTheirNames(t *testing.T) {
	config := testConfig()
	config.MaxAggregates = 300
	intervals := registry.NewIntervals(&config)
	rnd := rand.New(rand.NewPCG(5, 22))
	for interval := range 5 {
		r := intervals.Registry()
		origin, _ := r.AdmitOrigin(span.Origin{})
		keys := []span.Key{}
		for i := range 200 {
			key := span.Key{
				Service: "s", Operation: "o", Resource: fmt.Sprint("r", i%20),
				Type: fmt.Sprint("t", i/20),
			}
			keys = append(keys, key, key, key)
		}
		for i := range 4000 {
			keys = append(keys, span.Key{
				Service: fmt.Sprint("s", i%16), Operation: fmt.Sprint("o", i/16%32),
				Resource:   fmt.Sprint("r", i/512%20),
				Kind:       fmt.Sprint("k", i/2000),
				HTTPMethod: fmt.Sprint("m", interval),
			})
		}
		rnd.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		for i := range keys {
			if a := r.Admit(origin, &keys[i], false); interval > 1 && a.Collapsed != 0 && keys[i].Kind == "" {
				t.Fatalf("interval %d: %+v lost %b", interval, keys[i], a.Collapsed)
			}
		}
		intervals.Begin()
	}
}

// TestATagKeyRepeatsWithItsTags: what is told of a key that comes again is true of the keys of
// its tags as well, so their places are kept, whatever else fills the budget of tag keys.
func TestATagKeyRepeatsWithItsTags(t *testing.T) {
	config := testConfig()
	intervals := registry.NewIntervals(&config)
	tagged := func(key string) *span.Key {
		return &span.Key{Service: "s", Operation: "o", Resource: "r", PeerTags: []string{key + ":value"}}
	}
	for interval := range 3 {
		r := intervals.Registry()
		origin, _ := r.AdmitOrigin(span.Origin{})
		if interval == 0 {
			r.Repeat(r.Admit(origin, tagged("honest"), false).ID)
		}
		for i := range 2 * registry.MaxTagKeys {
			r.Admit(origin, tagged(fmt.Sprint("other ", i)), false)
		}
		if interval > 0 {
			a := r.Admit(origin, tagged("honest"), false)
			if !a.Whole() {
				t.Errorf("interval %d: the key has lost %b", interval, a.Collapsed)
			}
			r.Repeat(a.ID)
		}
		intervals.Begin()
	}
}
