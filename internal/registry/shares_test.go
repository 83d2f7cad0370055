package registry_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// sharesHarness admits keys of origins over intervals.
type sharesHarness struct {
	t         *testing.T
	intervals *registry.Intervals
	config    *registry.Config
}

func newSharesHarness(t *testing.T, rows int) *sharesHarness {
	config := registry.DefaultConfig()
	config.MaxAggregates = rows
	config.Budgets[span.LabelResource] = 1 << 20
	return &sharesHarness{t, registry.NewIntervals(&config), &config}
}

// sender sends keys of one origin.
type sender struct {
	registry *registry.Registry
	origin   registry.OriginID
}

func (s sender) admit(key *span.Key) registry.Admission {
	return s.registry.Admit(s.origin, key)
}

// origin joins an origin as a publisher does.
func (h *sharesHarness) origin(name string) sender {
	r := h.intervals.Registry()
	id, ok := r.AdmitOrigin(span.Origin{Service: name})
	if !ok {
		h.t.Fatalf("no room for origin %s", name)
	}
	return sender{r, id}
}

// named returns how many of the given number of keys have their own names, if each key occurs the given number of
// times.
func (h *sharesHarness) named(p sender, prefix string, keys, times int) (named int) {
	for time := range times {
		for i := range keys {
			key := span.Key{Service: "s", Operation: "o", Resource: fmt.Sprint(prefix, i)}
			if a := p.admit(&key); a.Collapsed == 0 && time == times-1 {
				named++
			}
		}
	}
	return named
}

// end ends the interval.
func (h *sharesHarness) end() {
	if _, keys := h.intervals.Size(); keys > h.config.MaxKeys() {
		h.t.Errorf("%d keys, more than the %d that tables have room for", keys, h.config.MaxKeys())
	}
	h.intervals.Begin()
}

// TestNewOrigin_BesideAFlood checks that a new origin gets its fair share immediately, whether it
// begins with the flood or later.
func TestNewOrigin_BesideAFlood(t *testing.T) {
	for begin := range 3 {
		h := newSharesHarness(t, 1024)
		for interval := range begin + 3 {
			flooder := h.origin("flooder")
			h.named(flooder, fmt.Sprint("once", interval, " "), 5000, 1)
			if interval >= begin {
				const want = 512
				quiet := h.origin("quiet")
				if n := h.named(quiet, "r", 512, 3); n < want {
					t.Errorf("interval %d: %d keys have names, want %d", interval, n, want)
				}
				h.named(flooder, fmt.Sprint("more", interval, " "), 5000, 1)
				if n := h.named(quiet, "r", 512, 1); n < want {
					t.Errorf("interval %d: %d keys keep theirs, want %d", interval, n, want)
				}
			}
			h.end()
		}
	}
}

// TestShares_OriginGrowsToFairShare covers an origin that begins when another origin uses all
// rows with recurring keys.
func TestShares_OriginGrowsToFairShare(t *testing.T) {
	h := newSharesHarness(t, 1024)
	for range 2 {
		if n := h.named(h.origin("large"), "r", 1024, 3); n < 1000 {
			t.Fatalf("alone it has %d rows", n)
		}
		h.end()
	}
	for interval, least := range []int{128, 256, 384, 500, 500} {
		large := h.origin("large")
		h.named(large, "r", 1024, 2)
		if n := h.named(h.origin("quiet"), "r", 512, 3); n < least {
			t.Errorf("interval %d: %d of 512 keys have names, want %d", interval, n, least)
		}
		if n := h.named(large, "r", 1024, 1); n < 512 {
			t.Errorf("interval %d: the large one keeps %d rows", interval, n)
		}
		h.end()
	}
}

// TestShares_FollowActiveOrigins checks that many origins that occur once take no rows from lasting
// ones.
func TestShares_FollowActiveOrigins(t *testing.T) {
	h := newSharesHarness(t, 2048)
	h.config.MaxOrigins = 512
	h.intervals = registry.NewIntervals(h.config)
	for interval := range 4 {
		for o := range 64 {
			p := h.origin(fmt.Sprint("stays ", o))
			if n := h.named(p, "r", 24, 3); n != 24 {
				t.Errorf("interval %d: origin %d has names for %d of 24 keys", interval, o, n)
			}
		}
		for o := range 256 {
			h.named(h.origin(fmt.Sprint("once ", interval, " ", o)), "r", 20, 1)
		}
		h.end()
	}
}

// TestRows_AreBounded has any number of origins do anything, and expects no more rows than the tables
// have room for. An origin keeps the keys that had rows and recurred in the last two intervals, up to
// its fair share.
func TestRows_AreBounded(t *testing.T) {
	for seed := range uint64(30) {
		rnd := rand.New(rand.NewPCG(seed, 23))
		config := registry.DefaultConfig()
		config.MaxAggregates, config.LabelBytes, config.MaxOrigins = 1+rnd.IntN(400), 1<<20, 1+rnd.IntN(40)
		config.Budgets[span.LabelResource] = 1 << 20
		h := &sharesHarness{t, registry.NewIntervals(&config), &config}
		// keys of an origin that had rows and came twice, in the last interval and the one before
		repeated, before := map[string]map[string]bool{}, map[string]map[string]bool{}
		for range 5 {
			now, present := map[string]map[string]int{}, 0
			for _, keys := range repeated {
				if len(keys) > 0 {
					present++
				}
			}
			for range 60 {
				name := fmt.Sprint(min(rnd.IntN(config.MaxOrigins), rnd.IntN(20)))
				p := h.origin(name)
				if now[name] == nil {
					now[name] = map[string]int{}
				}
				for range rnd.IntN(40) {
					text := fmt.Sprint(rnd.IntN(20 + rnd.IntN(400)))
					a := p.admit(&span.Key{Service: "s", Operation: "o", Resource: text})
					if a.Collapsed == 0 {
						now[name][text]++
					} else if had := repeated[name]; had[text] && before[name][text] &&
						len(had) <= config.MaxAggregates*15/16/present {
						t.Fatalf("seed %d: origin %s lost a key that repeated", seed, name)
					}
				}
			}
			if origins, keys := h.intervals.Size(); keys > config.MaxAggregates*5/4+1+origins {
				t.Fatalf("seed %d: %d rows for %d aggregates of %d origins", seed, keys, config.MaxAggregates,
					origins)
			}
			repeated, before = map[string]map[string]bool{}, repeated
			for name, keys := range now {
				repeated[name] = map[string]bool{}
				for text, times := range keys {
					if times > 1 {
						repeated[name][text] = true
					}
				}
			}
			h.end()
		}
	}
}

// TestShares_ReserveIsSplitEvenly: two new origins get equal parts, in either order.
func TestShares_ReserveIsSplitEvenly(t *testing.T) {
	h := newSharesHarness(t, 1024)
	for range 2 {
		h.named(h.origin("large"), "r", 1024, 3)
		h.end()
	}
	h.named(h.origin("large"), "r", 1024, 2)
	first, second := h.origin("first"), h.origin("second")
	h.named(first, "r", 300, 3)
	if n := h.named(second, "r", 80, 3); n != 80 {
		t.Errorf("the second newcomer has names for %d of 80 keys", n)
	}
}

// TestLabels_RecurInDifferentKeys: a label that comes twice in two keys has repeated.
func TestLabels_RecurInDifferentKeys(t *testing.T) {
	config := registry.DefaultConfig()
	config.Budgets[span.LabelResource] = 2
	intervals := registry.NewIntervals(&config)
	for _, resources := range [][]string{{"a", "a"}, {"x", "y", "y", "y", "a"}} {
		r := intervals.Registry()
		origin, _ := r.AdmitOrigin(span.Origin{})
		for i, resource := range resources {
			a := r.Admit(origin, &span.Key{Service: "s", Resource: resource, Kind: fmt.Sprint(i % 2)})
			if resource == "a" && a.Collapsed != 0 {
				t.Errorf("%s of %v lost its name", resource, resources)
			}
		}
		intervals.Begin()
	}
}
