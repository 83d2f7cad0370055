package registry

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// mending admits keys of which each may be the last, as they came.
type mending struct {
	publisher
	mender span.Mender
}

func newMending(r *Registry) *mending {
	origin, _ := r.AdmitOrigin(span.Origin{})
	m := &mending{}
	m.begin(r, origin)
	m.lookup.MendWith(&m.mender, "go")
	return m
}

func (m *mending) admit(key span.Key) Admission {
	m.mender.Begin(&key)
	a, ok := m.lookup.AdmitOnce(&key, 0)
	if !ok {
		a = m.registry.Admit(m.origin, normalized(&key), false)
	}
	return a
}

// toMend are keys with a label of each kind that is not normal.
func toMend(value string) map[span.Label]span.Key {
	return map[span.Label]span.Key{
		span.LabelService:       {Service: "Shop " + value, Operation: "o", Resource: "r"},
		span.LabelResource:      {Service: "s", Operation: "o", Resource: "gr\xfc\xdfe " + value},
		span.LabelPeerTag:       {Service: "s", Operation: "o", Resource: "r", PeerTags: []string{"key:gr\xfc\xdfe " + value}},
		span.LabelAdditionalTag: {Service: "s", Operation: "o", Resource: "r", AdditionalTags: []string{"key:gr\xfc\xdfe " + value}},
	}
}

// TestWhatIsMendedKeepsItsName holds the promise of docs/architecture.md where values must be
// mended, and each comes in keys that come once.
func TestWhatIsMendedKeepsItsName(t *testing.T) {
	for l := range toMend("") {
		for seed := range uint64(8) {
			rnd := rand.New(rand.NewPCG(seed, 23))
			config := testConfig()
			limit := 32 + rnd.IntN(100)
			config.Budgets[l] = limit
			honest := 1 + rnd.IntN(limit*7/8-2)
			intervals := NewIntervals(&config)
			kept := map[string]int{}
			for interval := range 6 {
				p := newMending(intervals.Registry())
				named := map[string]int{}
				for _, value := range traffic(rnd, honest, 1, interval) {
					a := p.admit(toMend(value)[l])
					switch isHonest := value[0] == 'h'; {
					case !a.Collapsed.Has(l):
						named[value]++
					case interval > 1 && isHonest, kept[value] > 1:
						t.Fatalf("label %s, seed %d, interval %d: %s, one of %d for a budget of %d, lost a span", l, seed, interval, value, honest, limit)
					}
				}
				kept = named
				intervals.Begin()
			}
		}
	}
}

// TestWhatComesOnceIsNotMended: behind a gate that asks whether it came before.
func TestWhatComesOnceIsNotMended(t *testing.T) {
	for l := range toMend("") {
		config := testConfig()
		config.Budgets[l] = 8
		r := New(&config)
		p := newMending(r)
		for i := range 6 {
			p.admit(toMend(fmt.Sprint("first ", i))[l])
		}
		for i, want := range []bool{false, true, true} {
			a := p.admit(toMend("comes again")[l])
			if p.lookup.AnyMended() != want || a.Collapsed.Has(l) != (i < 2) {
				t.Errorf("label %s: coming %d is mended: %t, and lost %b", l, i, p.lookup.AnyMended(), a.Collapsed)
			}
		}
	}
}

// TestANewSpellingIsFoundBehindAShutGate: after some comings in keys that come once, at once in
// a key that comes again. What else comes there is seldom mended.
func TestANewSpellingIsFoundBehindAShutGate(t *testing.T) {
	config := testConfig()
	config.Budgets[span.LabelService] = 2
	intervals := NewIntervals(&config)
	for range 2 {
		p := newMending(intervals.Registry())
		for range 3 {
			p.admit(span.Key{Service: "one shop", Operation: "o", Resource: "r"})
			p.admit(span.Key{Service: "another shop", Operation: "o", Resource: "r"})
		}
		intervals.Begin()
	}
	p := newMending(intervals.Registry())
	p.admit(span.Key{Service: "one_shop", Operation: "o", Resource: "r"})
	p.admit(span.Key{Service: "another_shop", Operation: "o", Resource: "r"})
	key, mended := span.Key{Service: "ONE!!shop", Operation: "o", Resource: "r"}, 0
	if a, ok := p.lookup.Admit(&key, 0, false); !ok || a.Collapsed != 0 {
		t.Errorf("a key that comes again lost %b", a.Collapsed)
	}
	for i := range 1600 {
		if p.admit(span.Key{Service: fmt.Sprint("Flood No ", i), Operation: "o", Resource: "r"}); p.lookup.AnyMended() {
			mended++
		}
	}
	if mended == 0 || mended > 200 {
		t.Errorf("of 1600 services that come once %d were mended", mended)
	}
	key.Service, mended = "ONE??shop", 0
	for range 1600 {
		if a := p.admit(key); a.Collapsed == 0 {
			mended++
		} else if mended > 0 {
			t.Fatal("a spelling that was found is not known the next time")
		}
	}
	if mended < 1200 {
		t.Errorf("a new spelling that came 1600 times was found %d times", mended)
	}
}

// TestATagKeyIsMendedBeforeItIsJudged: there is no room for one more, and it is one of those
// that are there.
func TestATagKeyIsMendedBeforeItIsJudged(t *testing.T) {
	config := testConfig()
	p := newMending(New(&config))
	tagged := func(tag string) span.Key {
		return span.Key{Service: "s", Operation: "o", Resource: "r", PeerTags: []string{tag}}
	}
	p.admit(tagged("gr\uFFFDn:1"))
	for i := range 2 * MaxTagKeys {
		p.admit(tagged(fmt.Sprintf("key%d:1", i)))
	}
	if a := p.admit(tagged("gr\xfcn:1")); a.Collapsed != 0 {
		t.Errorf("it lost %b", a.Collapsed)
	}
}

// TestASpellingStaysKnown: what had its number when the gate was open keeps it in keys that come
// once when the gate rises, and has it at once in the next interval.
func TestASpellingStaysKnown(t *testing.T) {
	config := testConfig()
	config.Budgets[span.LabelService] = 16
	intervals := NewIntervals(&config)
	shop := span.Key{Service: "One Shop", Operation: "o", Resource: "r"}
	for interval := range 3 {
		p := newMending(intervals.Registry())
		for step := range 40 {
			if step%10 < 2 && (interval == 0 || step >= 10) {
				if a := p.admit(shop); a.Collapsed != 0 {
					t.Errorf("interval %d, step %d: it lost %b", interval, step, a.Collapsed)
				}
			} else {
				p.admit(span.Key{Service: fmt.Sprintf("Flood %d.%d", interval, step), Operation: "o", Resource: "r"})
			}
		}
		intervals.Begin()
	}
}
