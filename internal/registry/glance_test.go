package registry

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// glancer admits keys as a connection does: at a glance, and else the long way.
type glancer struct {
	registry *Registry
	glance   Glance
	origin   OriginID
	outline  span.Outline
	at       int // keys that a glance was enough for
}

func newGlancer(r *Registry, origin OriginID) *glancer {
	g := &glancer{}
	g.begin(r, origin)
	return g
}

func (g *glancer) begin(r *Registry, origin OriginID) {
	g.registry, g.origin = r, origin
	g.glance.Begin(r, origin)
}

const testMaxResource = 220

func (g *glancer) admit(raw []byte) Admission {
	if wire.OutlineKey(&g.outline, raw) {
		if a, ok := g.glance.Admit(raw, &g.outline, testMaxResource); ok {
			g.at++
			return a
		}
	}
	return g.registry.Admit(g.origin, longWay(raw))
}

func longWay(raw []byte) *span.Key {
	key, err := wire.DecodeKey(raw)
	if err != nil {
		panic(err)
	}
	key.Normalize("go")
	key.Resource = span.Text(key.Resource, testMaxResource)
	return &key
}

// anyKey is of few labels, of which some are not as they should be.
func anyKey(rnd *rand.Rand) span.Key {
	text := func(n int) string {
		switch rnd.IntN(30) {
		case 0:
			return ""
		case 1:
			return span.Blocked
		case 2:
			return strings.Repeat("long", 10+rnd.IntN(45))
		case 3:
			return []string{"Größe", "bad\xff", "Upper Case", "two__of.them_", "_", "a_.b", "ends_"}[rnd.IntN(7)]
		}
		return fmt.Sprint("label.", rnd.IntN(n))
	}
	k := span.Key{
		Service: text(9), Operation: text(9), Resource: text(60), Type: text(3), Kind: text(3),
		TraceRoot: span.TraceRoot(rnd.IntN(3)), HTTPStatus: uint32(rnd.IntN(2) * 200), Synthetics: rnd.IntN(10) == 0,
	}
	if rnd.IntN(3) == 0 {
		k.HTTPMethod, k.HTTPEndpoint, k.GRPCStatus, k.ServiceSource = text(2), text(9), text(2), text(2)
	}
	for range rnd.IntN(4) {
		tag := text(90)
		if rnd.IntN(10) > 0 {
			tag = fmt.Sprintf("name%d:%s", rnd.IntN(3), text(9))
		}
		k.PeerTags = append(k.PeerTags, tag)
	}
	// Admit looks at tags in order and stops at the first that finds no room. A glance
	// looks at them as they come, and would find another first.
	slices.Sort(k.PeerTags)
	if rnd.IntN(20) == 0 {
		k.AdditionalTags = []string{text(9)}
	}
	return k
}

// flood makes keys of which each is like the one before, but for labels that count on.
type flood struct {
	rnd    *rand.Rand
	key    span.Key
	labels []*string // that count on, of the key
	begins []string
}

func newFlood(rnd *rand.Rand) *flood {
	f := &flood{rnd: rnd, key: anyKey(rnd)}
	f.key.AdditionalTags = nil
	for _, label := range []*string{&f.key.Service, &f.key.Operation, &f.key.Resource} {
		if rnd.IntN(2) == 0 {
			f.countOn(label, []string{"label.", "", "a/long-one/"}[rnd.IntN(3)])
		}
	}
	for i := range f.key.PeerTags {
		f.countOn(&f.key.PeerTags[i], []string{"name1:", "name2:a-long-one-", "", ":"}[rnd.IntN(4)])
	}
	return f
}

func (f *flood) countOn(label *string, begins string) {
	f.labels, f.begins = append(f.labels, label), append(f.begins, begins)
}

// next is a key of which some labels can't stay as they are and become one that was
// admitted, some end as such a one, and some are as long as one that is something else.
func (f *flood) next() span.Key {
	for i, label := range f.labels {
		text := []byte(fmt.Sprintf("%s%08x", f.begins[i], f.rnd.Uint32N(1<<(3+9*f.rnd.IntN(4)))))
		at := max(len(text)-2, 0)
		switch f.rnd.IntN(60) {
		case 0:
			text = append([]byte(f.begins[i]), span.Blocked...)
		case 1:
			text = []byte(span.Blocked)
		case 2:
			text = bytes.Repeat(text[:1], len(span.Blocked))
		case 3:
			text = text[:f.rnd.IntN(len(text))]
		case 4:
			text[f.rnd.IntN(len(text))] = byte(f.rnd.Uint32())
		case 5, 6, 7:
			text[at] = "_!aA\xff\xfe"[f.rnd.IntN(6)]
		}
		*label = string(text)
	}
	key := f.key
	key.PeerTags = slices.Sorted(slices.Values(f.key.PeerTags))
	return key
}

func glanceConfig(rnd *rand.Rand) Config {
	config := DefaultConfig()
	config.MaxOrigins = 4
	config.MaxAggregates = 1 + rnd.IntN(300)
	for f := range config.Budgets {
		config.Budgets[f] = 1 + rnd.IntN(8)
	}
	return config
}

// TestGlanceSaysWhatAdmitSays admits the same keys to two registries, to one of them
// the long way only, and compares what became of each key and what was lost.
func TestGlanceSaysWhatAdmitSays(t *testing.T) {
	var all said
	for round := range uint64(glanceRounds) {
		rnd := rand.New(rand.NewPCG(3, round))
		all.compare(t, rnd, glanceConfig(rnd), func(int) (span.Key, int) { return anyKey(rnd), rnd.IntN(glancers) })
	}
	if all.glances < glanceRounds*2500 || all.overflows == 0 {
		t.Errorf("%+v of %d keys", all, glanceRounds*5000)
	}
}

// TestFloodsSayWhatAdmitSays does it with floods, in registries in which most have a row.
func TestFloodsSayWhatAdmitSays(t *testing.T) {
	var all said
	for round := range uint64(glanceRounds) {
		rnd := rand.New(rand.NewPCG(4, round))
		config := glanceConfig(rnd)
		config.MaxAggregates *= 100
		var rising *flood
		all.compare(t, rnd, config, func(step int) (span.Key, int) {
			if step%250 == 0 {
				rising = newFlood(rnd)
			}
			if rnd.IntN(4) == 0 {
				return anyKey(rnd), rnd.IntN(glancers)
			}
			return rising.next(), 0
		})
	}
	if all.glances < glanceRounds*500 {
		t.Errorf("%+v of %d keys", all, glanceRounds*5000)
	}
}

// glancers is how many share a Registry.
const glancers = 3

// said is how keys were admitted: at a glance, or for want of a row.
type said struct{ glances, overflows int }

// compare admits the keys of two Intervals both ways. The next key is said with whose it is.
func (s *said) compare(t *testing.T, rnd *rand.Rand, config Config, next func(step int) (key span.Key, glancer int)) {
	t.Helper()
	quick, long := New(&config), New(&config)
	var all [glancers]glancer
	for interval := range 2 {
		for i := range all {
			origin, _ := quick.AdmitOrigin(span.Origin{Service: fmt.Sprint(i)})
			long.AdmitOrigin(span.Origin{Service: fmt.Sprint(i)})
			all[i].begin(quick, origin)
		}
		for step := range 2500 {
			key, whose := next(step)
			raw, g := wire.AppendKey(nil, &key), &all[whose]
			got, want := g.admit(raw), long.Admit(g.origin, longWay(raw))
			if got != want || !reflect.DeepEqual(quick.keys[got.ID], long.keys[want.ID]) {
				t.Fatalf("interval %d, step %d: %+v became %+v of %+v, want %+v of %+v", interval, step,
					key, got, quick.keys[got.ID], want, long.keys[want.ID])
			}
			if got.Collapsed.Has(FieldWholeKey) {
				s.overflows++
			}
			if rnd.IntN(30) == 0 {
				g.glance.Settle()
			}
		}
		for i := range all {
			all[i].glance.Settle()
		}
		if quick.lost != long.lost || !reflect.DeepEqual(quick.names, long.names) {
			t.Fatalf("interval %d: lost %v of %+v, want %v of %+v", interval, quick.lost, quick.names, long.lost, long.names)
		}
		quick.Reset()
		long.Reset()
	}
	for i := range all {
		s.glances += all[i].at
	}
}

// TestGlancesBesideAdmissions has several publishers of one origin admit keys at once,
// while others grow the tables: what was admitted keeps its name, and no budget holds
// more values than it may.
func TestGlancesBesideAdmissions(t *testing.T) {
	config := glanceConfig(rand.New(rand.NewPCG(1, 1)))
	config.MaxAggregates = 2000
	config.Budgets[FieldResource] = 700
	r := New(&config)
	origin, _ := r.AdmitOrigin(span.Origin{})
	named := make([]map[string]KeyID, 4) // by publisher: what keeps all its labels
	var publishers sync.WaitGroup
	for p := range named {
		named[p] = map[string]KeyID{}
		publishers.Go(func() {
			rnd := rand.New(rand.NewPCG(9, uint64(p)))
			g := newGlancer(r, origin)
			for range 6_000 {
				raw := wire.AppendKey(nil, &span.Key{
					Service: "shop", Operation: "op", Resource: fmt.Sprint("GET /", rnd.IntN(1500)),
					PeerTags: []string{fmt.Sprint("name:", rnd.IntN(20))},
				})
				a := g.admit(raw)
				id, known := named[p][string(raw)]
				switch {
				case known && (id != a.ID || a.Collapsed != 0):
					t.Errorf("%q was %d, and is %+v", raw, id, a)
					return
				case a.Collapsed == 0:
					named[p][string(raw)] = a.ID
				}
				if rnd.IntN(64) == 0 {
					g.glance.Settle()
				}
			}
			g.glance.Settle()
		})
	}
	publishers.Wait()
	all := map[string]KeyID{}
	for _, some := range named {
		for raw, id := range some {
			if other, known := all[raw]; known && other != id {
				t.Errorf("%q is %d and %d", raw, id, other)
			}
		}
		maps.Copy(all, some)
	}
	resources := map[string]bool{}
	for _, entry := range r.keys {
		resources[entry.Key.Resource] = true
	}
	delete(resources, span.Blocked)
	if len(all) == 0 || len(resources) != 700 {
		t.Errorf("%d keys keep their labels, %d resources theirs", len(all), len(resources))
	}
}

// TestLastValueOfABudgetKeepsItsName glances at the last resource that a budget holds
// while another publisher admits it. There is a row for what has lost its resource
// already, as its tracer has budgets too, so a glance could find one at once.
func TestLastValueOfABudgetKeepsItsName(t *testing.T) {
	config := DefaultConfig()
	config.MaxOrigins, config.MaxAggregates = 1500, 5000
	config.Budgets[FieldResource] = 2
	key := func(resource string) []byte {
		return wire.AppendKey(nil, &span.Key{Service: "shop", Operation: "op", Resource: resource})
	}
	last := key("last")
	for range 4 {
		r := New(&config)
		admitting, glancing := make([]*glancer, config.MaxOrigins), make([]*glancer, config.MaxOrigins)
		for i := range admitting {
			origin, _ := r.AdmitOrigin(span.Origin{Service: fmt.Sprint(i)})
			admitting[i], glancing[i] = newGlancer(r, origin), newGlancer(r, origin)
			admitting[i].admit(key("first"))
			admitting[i].admit(key(span.Blocked))
		}
		var both sync.WaitGroup
		both.Go(func() {
			for _, g := range admitting {
				g.admit(last)
			}
		})
		both.Go(func() {
			for i, g := range glancing {
				for isKnown := false; !isKnown; {
					var a Admission
					wire.OutlineKey(&g.outline, last)
					a, isKnown = g.glance.Admit(last, &g.outline, testMaxResource)
					if a.Collapsed != 0 {
						t.Errorf("origin %d: the last resource of its budget became %+v", i, a)
						return
					}
				}
			}
		})
		both.Wait()
	}
}
