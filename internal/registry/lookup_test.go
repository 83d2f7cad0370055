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
)

// publisher admits keys as a connection does: without the lock, or else the long way.
type publisher struct {
	registry *Registry
	lookup   Lookup
	origin   OriginID
	isRetry  bool
	last     span.Key // that was looked up
	mender   span.Mender
	once     bool // the last was looked up as one that comes once
	lookups  int  // keys that a lookup was enough for
}

func newPublisher(r *Registry, origin OriginID) *publisher {
	p := &publisher{}
	p.begin(r, origin)
	return p
}

func (p *publisher) begin(r *Registry, origin OriginID) {
	p.registry, p.origin = r, origin
	p.lookup.Begin(r, origin)
	p.lookup.MendWith(&p.mender, "go")
}

func (p *publisher) admit(key *span.Key) Admission {
	key = normalized(key)
	if a, ok := p.lookUp(key); ok {
		p.lookups++
		return a
	}
	return p.registry.Admit(p.origin, key, p.isRetry)
}

// lookUp looks a key up, with what it has of the last one.
func (p *publisher) lookUp(key *span.Key) (a Admission, ok bool) {
	again := span.Labels(0)
	for l := range span.FirstList {
		if p.lookup.Numbered().Has(l) && *key.Text(l) == *p.last.Text(l) {
			again = again.With(l)
		}
	}
	p.last = *key
	if p.once = !p.once && !p.isRetry; p.once {
		return p.lookup.AdmitOnce(key, again)
	}
	return p.lookup.Admit(key, again, p.isRetry)
}

const testMaxResource = 220

// normalized is the key as its publisher would normalise it.
func normalized(k *span.Key) *span.Key {
	key := *k
	key.PeerTags, key.AdditionalTags = slices.Clone(k.PeerTags), slices.Clone(k.AdditionalTags)
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
	if rnd.IntN(10) == 0 {
		k.AdditionalTags = []string{fmt.Sprint("region:", text(9)), text(9)}
	}
	// Admit finds tags in order, and stops at the first for which there is no room. A
	// lookup finds them as they come, and would find another first.
	slices.Sort(k.PeerTags)
	slices.Sort(k.AdditionalTags)
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

func lookupConfig(rnd *rand.Rand) Config {
	config := DefaultConfig()
	config.MaxOrigins = 4
	config.MaxAggregates = 1 + rnd.IntN(300)
	for f := range config.Budgets {
		config.Budgets[f] = 1 + rnd.IntN(8)
	}
	return config
}

// TestALookupSaysWhatAdmitSays admits the same keys to two registries, to one of them
// the long way only, and compares what became of each key and what was lost.
func TestALookupSaysWhatAdmitSays(t *testing.T) {
	var all said
	for round := range uint64(lookupRounds) {
		rnd := rand.New(rand.NewPCG(3, round))
		all.compare(t, rnd, lookupConfig(rnd), func(int) (span.Key, int) { return anyKey(rnd), rnd.IntN(publishers) })
	}
	if all.lookups < lookupRounds*2000 || all.overflows == 0 {
		t.Errorf("%+v of %d keys", all, lookupRounds*5000)
	}
}

// TestALookupSaysOfFloodsWhatAdmitSays does it with floods, in registries in which most have a row.
func TestALookupSaysOfFloodsWhatAdmitSays(t *testing.T) {
	var all said
	for round := range uint64(lookupRounds) {
		rnd := rand.New(rand.NewPCG(4, round))
		config := lookupConfig(rnd)
		config.MaxAggregates *= 100
		var rising *flood
		all.compare(t, rnd, config, func(step int) (span.Key, int) {
			if step%250 == 0 {
				rising = newFlood(rnd)
			}
			if rnd.IntN(4) == 0 {
				return anyKey(rnd), rnd.IntN(publishers)
			}
			return rising.next(), 0
		})
	}
	if all.lookups < lookupRounds*500 {
		t.Errorf("%+v of %d keys", all, lookupRounds*5000)
	}
}

// publishers is how many share a Registry.
const publishers = 3

// said is how keys were admitted: by a lookup, or for want of a row.
type said struct{ lookups, overflows int }

// compare admits the keys of two Intervals both ways. The next key is said with whose it is.
func (s *said) compare(t *testing.T, rnd *rand.Rand, config Config, next func(step int) (key span.Key, publisher int)) {
	t.Helper()
	past, quick := noPast(), New(&config)
	var all [publishers]publisher
	for interval := range 3 {
		var long *Registry
		quick, long = heir(quick, past), heir(quick, past)
		for i := range all {
			origin, _ := quick.AdmitOrigin(span.Origin{Service: fmt.Sprint(i)})
			long.AdmitOrigin(span.Origin{Service: fmt.Sprint(i)})
			all[i].begin(quick, origin)
		}
		for step := range 1700 {
			key, whose := next(step)
			p := &all[whose]
			got, want := p.admit(&key), long.Admit(p.origin, normalized(&key), false)
			if want.Collapsed.Has(span.WholeKey) && got.Waits {
				want.Waits = true // a lookup hears that the gate of rows rose when its own origin meets it
			}
			if got != want || !reflect.DeepEqual(quick.keys[got.ID], long.keys[want.ID]) {
				t.Fatalf("interval %d, step %d: %+v became %+v of %+v, want %+v of %+v", interval, step,
					key, got, quick.keys[got.ID], want, long.keys[want.ID])
			}
			if got.Collapsed.Has(span.WholeKey) {
				s.overflows++
			}
			if rnd.IntN(30) == 0 {
				p.lookup.Report()
			}
		}
		for i := range all {
			all[i].lookup.Report()
		}
		if got, want := &quick.budgets, &long.budgets; got.lost != want.lost || !slices.Equal(got.tagKeys, want.tagKeys) {
			t.Fatalf("interval %d: lost %v of %+v, want %v of %+v", interval, got.lost, got.tagKeys, want.lost, want.tagKeys)
		}
		past = quick.leave()
	}
	for i := range all {
		s.lookups += all[i].lookups
	}
}

// heir is the registry of the interval after another, with sights of its own.
func heir(of *Registry, past *past) *Registry {
	r := New(of.config)
	r.generation = of.generation.other()
	if left := of.sights.words.Load(); left != nil {
		words := make([]wordPair, len(*left))
		for i := range words {
			words[i][of.generation].Store((*left)[i][of.generation].Load())
		}
		r.sights.words.Store(&words)
	}
	r.Reset(past)
	return r
}

// TestLookupsBesideAdmissions has several publishers of one origin admit keys at once,
// while others grow the tables: what was admitted keeps its name, and no budget holds
// more values than it may.
func TestLookupsBesideAdmissions(t *testing.T) {
	config := lookupConfig(rand.New(rand.NewPCG(1, 1)))
	config.MaxAggregates = 2000
	config.Budgets[span.LabelResource] = 700
	r := New(&config)
	origin, _ := r.AdmitOrigin(span.Origin{})
	named := make([]map[string]KeyID, 4) // by publisher: what keeps all its labels
	var publishers sync.WaitGroup
	for p := range named {
		named[p] = map[string]KeyID{}
		publishers.Go(func() {
			rnd := rand.New(rand.NewPCG(9, uint64(p)))
			publisher := newPublisher(r, origin)
			for range 6_000 {
				key := span.Key{
					Service: "shop", Operation: "op", Resource: fmt.Sprint("GET /", rnd.IntN(1500)),
					PeerTags: []string{fmt.Sprint("name:", rnd.IntN(20))},
				}
				a := publisher.admit(&key)
				raw := key.AppendCanonical(nil)
				id, known := named[p][string(raw)]
				switch {
				case known && (id != a.ID || a.Collapsed != 0):
					t.Errorf("%q was %d, and is %+v", raw, id, a)
					return
				case a.Collapsed == 0:
					named[p][string(raw)] = a.ID
				}
				if rnd.IntN(64) == 0 {
					publisher.lookup.Report()
				}
			}
			publisher.lookup.Report()
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

// TestALookupBeginsBesideNewOrigins: connections come while others begin their interval.
func TestALookupBeginsBesideNewOrigins(t *testing.T) {
	config := testConfig()
	r := New(&config)
	first, _ := r.AdmitOrigin(span.Origin{Service: "first"})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range 100 {
			r.AdmitOrigin(span.Origin{Service: fmt.Sprint(i)})
		}
	})
	for range 100 {
		var l Lookup
		if l.Begin(r, first); l.identity != r.identityOf(first) {
			t.Error("it has the identity of another origin")
		}
	}
	wg.Wait()
}
