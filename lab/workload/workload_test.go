package workload

import (
	"math"
	"reflect"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// sample holds properties of the first spans of a workload.
type sample struct {
	spans                                         int
	keys, services, operations, resources, hosts  map[string]int
	kinds                                         map[string]int
	errors, topLevel                              int
	shortest, longest                             uint64
	duration                                      float64
	peerTags                                      map[int]int
	byIndex                                       map[int]int
	endsWrong, keysWrong, unknownFlags, notNormal int
}

func take(t *testing.T, name string, spans int) *sample {
	t.Helper()
	g, err := New(name, 7)
	if err != nil {
		t.Fatal(err)
	}
	s := &sample{
		spans: spans, shortest: math.MaxUint64,
		keys:       map[string]int{},
		services:   map[string]int{},
		operations: map[string]int{},
		resources:  map[string]int{},
		hosts:      map[string]int{},
		kinds:      map[string]int{},
		peerTags:   map[int]int{},
		byIndex:    map[int]int{},
	}
	batch := make([]Snapshot, 64)
	for spans > 0 {
		batch = batch[:min(len(batch), spans)]
		g.Fill(batch, int64(spans))
		for i := range batch {
			s.add(g, &batch[i], int64(spans))
		}
		spans -= len(batch)
	}
	if s.endsWrong+s.keysWrong+s.unknownFlags+s.notNormal != 0 {
		t.Errorf("%s: %d wrong ends, %d keys that are not those of their index, %d unknown flags, %d keys that normalizing changes",
			name, s.endsWrong, s.keysWrong, s.unknownFlags, s.notNormal)
	}
	return s
}

func (s *sample) add(g *Generator, one *Snapshot, end int64) {
	k := one.Key
	s.keys[string(wire.AppendKey(nil, k))]++
	s.services[k.Service]++
	s.operations[k.Operation]++
	s.resources[k.Resource]++
	s.kinds[k.Kind]++
	s.peerTags[len(k.PeerTags)]++
	s.byIndex[one.Index]++
	if len(k.PeerTags) == 1 {
		s.hosts[k.PeerTags[0]]++
	}
	if one.Flags&span.Error != 0 {
		s.errors++
	}
	if one.Flags&span.TopLevel != 0 {
		s.topLevel++
	}
	s.shortest, s.longest = min(s.shortest, one.Duration), max(s.longest, one.Duration)
	s.duration += float64(one.Duration)
	if one.End != end {
		s.endsWrong++
	}
	if keys := g.Keys(); keys != nil && k != &keys[one.Index] {
		s.keysWrong++
	}
	if one.Flags&^span.KnownFlags != 0 {
		s.unknownFlags++
	}
	normal := *k
	if normal.Normalize("go") {
		s.notNormal++
	}
}

// near checks a random share, with a relative tolerance of a tenth.
func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > want/10 {
		t.Errorf("%s: %.4g, want about %.4g", what, got, want)
	}
}

func exactly(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestWorkload_FixedKeys(t *testing.T) {
	const spans = 1 << 16 // multiple of every number of keys below
	for _, test := range []struct {
		name string
		keys int
	}{{Stable, 64}, {Burst, 64}, {Pool, 4096}} {
		t.Run(test.name, func(t *testing.T) {
			s := take(t, test.name, spans)
			exactly(t, "keys", len(s.keys), test.keys)
			exactly(t, "services", len(s.services), 4)
			exactly(t, "operations", len(s.operations), 16)
			exactly(t, "resources", len(s.resources), 64)
			exactly(t, "kinds", s.kinds,
				map[string]int{"server": spans / 2, "client": spans / 4, "internal": spans / 4})
			exactly(t, "peer tags", s.peerTags, map[int]int{0: spans * 3 / 4, 3: spans / 4})
			for key, n := range s.keys {
				if n != spans/test.keys {
					t.Fatalf("key %q has %d spans in rotation, want %d", key, n, spans/test.keys)
				}
			}
			ordinarySpans(t, s)
		})
	}
}

func ordinarySpans(t *testing.T, s *sample) {
	t.Helper()
	near(t, "share of errors", float64(s.errors)/float64(s.spans), 0.05)
	near(t, "mean duration", s.duration/float64(s.spans), 21e6)
	if s.shortest < 1e6 || s.longest < 100e6 {
		t.Errorf("durations from %d to %d ns, want 1 ms and a tail", s.shortest, s.longest)
	}
	exactly(t, "top-level spans", s.topLevel, s.kinds["server"])
}

func TestWorkload_Skewed(t *testing.T) {
	const spans = 90_000
	s := take(t, Skewed, spans)
	exactly(t, "keys", len(s.keys), 100)
	for i := range 100 {
		want := spans / 900
		if i == 0 {
			want = spans * 60 / 100
		} else if i < 10 {
			want = spans * 30 / 100 / 9
		}
		exactly(t, "spans of a key", s.byIndex[i], want)
	}
	ordinarySpans(t, s)
}

func TestWorkload_Adversarial(t *testing.T) {
	const spans = 1 << 16
	s := take(t, Adversarial, spans)
	for what, distinct := range map[string]map[string]int{
		"services":       s.services,
		"operations":     s.operations,
		"resources":      s.resources,
		"peer.hostnames": s.hosts,
	} {
		exactly(t, what, len(distinct), spans)
	}
	exactly(t, "kinds", s.kinds, map[string]int{"client": spans})
	near(t, "share of errors", float64(s.errors)/spans, 1./8)
	near(t, "share of top-level", float64(s.topLevel)/spans, 1./4)
	near(t, "mean duration", s.duration/spans, 1<<29)
	if s.shortest < 1 || s.shortest > 1<<20 || s.longest > 1<<30 || s.longest < 1<<30-1<<20 {
		t.Errorf("durations from %d to %d ns, want 1 to 2^30", s.shortest, s.longest)
	}
}

// TestWorkload_OneUniqueLabel: one label is new with every span, and the others are constant.
func TestWorkload_OneUniqueLabel(t *testing.T) {
	const spans = 1 << 12
	for name, distinct := range map[string][2]int{UniqueResource: {spans, 1}, UniquePeer: {1, spans}} {
		s := take(t, name, spans)
		exactly(t, name+": keys", len(s.keys), spans)
		exactly(t, name+": services and operations", len(s.services)+len(s.operations), 2)
		exactly(t, name+": resources and hosts", [2]int{len(s.resources), len(s.hosts)}, distinct)
	}
}

func TestWorkload_KeyCount(t *testing.T) {
	for _, n := range []int{1, 10, 1000, 100_000} {
		g := NewKeys(n, 1)
		batch, distinct := make([]Snapshot, n), map[string]bool{}
		g.Fill(batch, 1)
		for i := range batch {
			distinct[string(wire.AppendKey(nil, batch[i].Key))] = true
		}
		exactly(t, "keys of one turn", len(distinct), n)
	}
}

// TestAdversarial_LabelsAreNotReused: the generator does not overwrite the strings of earlier
// keys.
func TestAdversarial_LabelsAreNotReused(t *testing.T) {
	g, _ := New(Adversarial, 1)
	batch := make([]Snapshot, 3)
	g.Fill(batch, 0)
	kept := *batch[2].Key
	g.Fill(batch, 0)
	exactly(t, "service", kept.Service, "service-000100000002")
	exactly(t, "service after it", batch[0].Key.Service, "service-000100000003")
}

func TestWorkload_Seeds(t *testing.T) {
	for _, name := range Names() {
		first, same, other := first64(t, name, 1), first64(t, name, 1), first64(t, name, 2)
		if !reflect.DeepEqual(first, same) {
			t.Errorf("%s: one seed made two different batches", name)
		}
		if reflect.DeepEqual(first, other) {
			t.Errorf("%s: two seeds made the same batch", name)
		}
		if name == Adversarial && first[0].Key.Service == other[0].Key.Service {
			t.Errorf("%s: two seeds share the key of %s", name, first[0].Key.Service)
		}
	}
}

func first64(t *testing.T, name string, seed uint64) []Snapshot {
	t.Helper()
	g, err := New(name, seed)
	if err != nil {
		t.Fatal(err)
	}
	batch := make([]Snapshot, 64)
	g.Fill(batch, 1)
	return batch
}

func TestWorkload_UnknownName(t *testing.T) {
	if _, err := New("steady", 1); err == nil {
		t.Error("a workload that does not exist was made")
	}
}
