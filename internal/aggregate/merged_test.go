package aggregate

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/DataDog/sketches-go/ddsketch/mapping"
	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// someMappings are those of tracers: ours, dd-trace-java's, that of Python and Node,
// and a cubic one.
var someMappings = func() []sketch.Mapping {
	cubic, err := mapping.NewCubicallyInterpolatedMapping(.01)
	if err != nil {
		panic(err)
	}
	python, err := mapping.NewLogarithmicMapping(.00775)
	if err != nil {
		panic(err)
	}
	return []sketch.Mapping{
		sketch.AgentMapping,
		{Gamma: 1.0108892860517005, Interpolation: 1},
		{Gamma: python.ToProto().Gamma},
		{Gamma: cubic.ToProto().Gamma, Offset: cubic.ToProto().IndexOffset, Interpolation: 3},
	}
}()

// mergingCycle is a cycle of one second past a bucket's boundary that groups can be
// added to.
func mergingCycle(chunks int) *Cycle {
	config := testConfig(func(s *Sealed) { s.Release() })
	config.Merge, config.SketchBytes = true, chunks*sketch.ChunkBytes
	c := &Cycle{
		merged:   newMerged(&config, sketch.NewMemory(config.SketchBytes, config.Grid), new(atomic.Uint64)),
		registry: registry.NewIntervals(&config.Config).Registry(), setKeyCount: func(int) {},
	}
	c.merged.begin(time.Unix(1003, 0))
	c.AdmitOrigin(span.Origin{})
	return c
}

// view is the cycle as the flush would see it, without handing it over.
func (c *Cycle) view() *Sealed {
	origins, keys := c.registry.Contents()
	s := NewSealed(0, time.Unix(1003, 0), time.Unix(1010, 0), 10*time.Second, origins, keys)
	s.merged = c.merged
	return s
}

// rowOf identifies a row.
type rowOf struct {
	resource string
	bucket   int64
	mapping  sketch.Mapping
}

// counted contains the counts of a row by bin; bin -1 contains the zeros.
type counted struct {
	Counts
	OK, Errors map[int]uint64
}

func (c *counted) add(counts *Counts, ok, failed *sketch.Bins) {
	c.Add(counts)
	for to, from := range map[*map[int]uint64]*sketch.Bins{&c.OK: ok, &c.Errors: failed} {
		if *to == nil {
			*to = map[int]uint64{}
		}
		if from.Zeros > 0 {
			(*to)[-1] += from.Zeros
		}
		for _, bin := range from.List {
			(*to)[int(bin.Index)] += bin.Spans
		}
	}
}

func contents(s *Sealed) map[rowOf]*counted {
	all := map[rowOf]*counted{}
	var added sketch.Sketch
	for part := range s.Parts {
		at := rowOf{s.Keys[part.Key].Key.Resource, part.Bucket, s.Mappings()[part.Mapping]}
		c := all[at]
		if c == nil {
			c = &counted{}
			all[at] = c
		}
		var bins [2]sketch.Bins
		for i, read := range []func(*Part, sketch.Sum){(*Part).ReadOK, (*Part).ReadErrors} {
			added.Reset()
			read(&part, &added)
			bins[i].Zeros = uint64(added.Zeros())
			for _, run := range added.Runs(nil, part.Mapping) {
				for n, spans := range added.Counts(run) {
					bins[i].List = append(bins[i].List,
						sketch.Bin{Index: uint16(int(run.First) + n), Spans: spans})
				}
			}
		}
		counts := part.Counts()
		c.add(&counts, &bins[0], &bins[1])
	}
	return all
}

func someBins(rnd *rand.Rand, mapping sketch.Mapping) (b sketch.Bins) {
	b.Zeros = rnd.Uint64N(3)
	_, last, err := mapping.Range()
	if err != nil {
		panic(err)
	}
	for range rnd.IntN(40) {
		b.List = append(b.List, sketch.Bin{
			Index: uint16(rnd.Int64N(last + 1)),
			Spans: 1 + rnd.Uint64N(1<<(1+rnd.IntN(40))),
		})
	}
	return b
}

// TestMerged_Model adds random groups with random mappings, with all or none of several groups at a time. Whatever memory
// is available, each row must have the same counts as the entry of a map, and no row may collapse.
func TestMerged_Model(t *testing.T) {
	refused := 0
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		c := mergingCycle([]int{4, 400}[seed%2])
		want, spans := map[rowOf]*counted{}, uint64(0)
		for range 40 {
			groups := make([]Group, 1+rnd.IntN(5))
			for i := range groups {
				m := someMappings[rnd.IntN(len(someMappings))]
				groups[i] = Group{
					Key: span.Key{Resource: fmt.Sprint(rnd.IntN(4))}, Mapping: m, OK: someBins(rnd, m),
					Errors: someBins(rnd, m),
					Bucket: []int64{980e9, 1000e9, 1001.5e9, 1003.9e9}[rnd.IntN(4)],
					Counts: Counts{
						Spans: 1 + rnd.Uint64N(9), Hits: float64(rnd.IntN(9)),
						Duration: float64(rnd.IntN(1e9)),
					},
				}
			}
			merging := c.LockGroups()
			err := merging.Reserve(groups, 10e9, time.Unix(1004, 0))
			for i := range groups {
				if err != nil {
					break
				}
				g := &groups[i]
				merging.Add(0, g)
				at := rowOf{g.Key.Resource, map[int64]int64{
					1001.5e9: 1000e9, 1003.9e9: 1002e9, 980e9: 980e9,
					1000e9: 1000e9,
				}[g.Bucket], g.Mapping}
				if want[at] == nil {
					want[at] = &counted{}
				}
				want[at].add(&g.Counts, &g.OK, &g.Errors)
				spans += g.Spans
			}
			merging.End()
			if err != nil {
				refused++
				if !errors.Is(err, ErrNoMergedRoom) {
					t.Fatal(err)
				}
			}
		}
		s := c.view()
		if got := contents(s); !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: %d rows, want %d, or others", seed, len(got), len(want))
		}
		if s.Spans() != spans || c.merged.pending.Load() != spans || c.merged.spans.Load() != spans {
			t.Errorf("seed %d: %d spans in rows, %d held, %d in all, want %d", seed, s.Spans(),
				c.merged.pending.Load(), c.merged.spans.Load(), spans)
		}
		if size := c.merged.memory.Taken(); size > c.merged.maxChunks*sketch.ChunkBytes {
			t.Errorf("seed %d: uses %d bytes", seed, size)
		}
		if c.merged.clear() != spans || len(contents(c.view())) != 0 || c.merged.memory.Taken() != 0 {
			t.Errorf("seed %d: something is left after a clear", seed)
		}
	}
	if refused == 0 {
		t.Error("nothing was refused, so it was not seen that nothing of it is kept")
	}
}

// TestMergedRows_Histograms: a histogram adds the bins of each row according to the row's mapping,
// together with the counts of drainers.
func TestMergedRows_Histograms(t *testing.T) {
	c := mergingCycle(100)
	rnd := rand.New(rand.NewPCG(1, 2))
	var want [2]sketch.Histogram
	for _, m := range someMappings {
		groups := []Group{{
			Bucket: 1000e9, Mapping: m, Counts: Counts{Spans: 1}, OK: someBins(rnd, m),
			Errors: someBins(rnd, m),
		}}
		merging := c.LockGroups()
		if err := merging.Reserve(groups, 10e9, time.Unix(1004, 0)); err != nil {
			t.Fatal(err)
		}
		merging.Add(0, &groups[0])
		merging.End()
		for i, bins := range []*sketch.Bins{&groups[0].OK, &groups[0].Errors} {
			want[i].AddZeros(bins.Zeros)
			want[i].AddBins(m, bins.List)
		}
	}
	var got [2]sketch.Histogram
	for part := range c.view().Parts {
		part.ReadOK(&got[0])
		part.ReadErrors(&got[1])
	}
	for i := range want {
		if a, b := got[i].Buckets(200), want[i].Buckets(200); !reflect.DeepEqual(a, b) || a.Spans == 0 {
			t.Errorf("%v, want %v", a, b)
		}
	}
}

// TestMergedRows_ErrorDuration: a tracer sends only the total duration of all spans of a group. If all spans failed,
// this is the duration of the failed spans. Otherwise that is computed from their bins, and is at most the total.
func TestMergedRows_ErrorDuration(t *testing.T) {
	library, err := someMappings[1].Library()
	if err != nil {
		t.Fatal(err)
	}
	failed := sketch.Bins{Zeros: 1, List: []sketch.Bin{{Index: 400, Spans: 2}, {Index: 500, Spans: 1}}}
	mean := (2*library.Value(400) + library.Value(500)) / 4
	for _, test := range []struct {
		counts Counts
		errors sketch.Bins
		want   float64
	}{
		{Counts{Spans: 9, Hits: 9, Duration: 1e9}, sketch.Bins{}, 0},
		{Counts{Spans: 9, Hits: 9, Errors: 4, Duration: 1e9}, failed, 4 * mean},
		{Counts{Spans: 9, Hits: 18, Errors: 8, Duration: 1e9}, failed, 8 * mean},
		{Counts{Spans: 9, Hits: 9, Errors: 4, Duration: 1}, failed, 1},
		{Counts{Spans: 4, Hits: 4, Errors: 4, Duration: 777}, failed, 777},
		{Counts{Spans: 4, Hits: 4, Errors: 1, Duration: 777}, sketch.Bins{}, 0},
	} {
		c := mergingCycle(100)
		groups := []Group{{
			Bucket: 1000e9, Mapping: someMappings[1], Counts: test.counts,
			Errors: test.errors,
		}}
		merging := c.LockGroups()
		if err := merging.Reserve(groups, 10e9, time.Unix(1004, 0)); err != nil {
			t.Fatal(err)
		}
		merging.Add(0, &groups[0])
		merging.End()
		for part := range c.view().Parts {
			if got := part.ErrorDuration(); math.Abs(got-test.want) > 1e-9*test.want {
				t.Errorf("%+v: errors took %v, want %v", test.counts, got, test.want)
			}
		}
	}
}

// TestMappings_LimitPerCycle: a cycle has at most MaxMappings mappings. Groups with an additional mapping are refused,
// together with the other groups of the payload.
func TestMappings_LimitPerCycle(t *testing.T) {
	c := mergingCycle(100)
	group := func(n int) Group {
		return Group{
			Bucket: 1000e9, Mapping: sketch.Mapping{Gamma: 1.01 + float64(n)/1000},
			OK: sketch.Bins{List: []sketch.Bin{{Index: 5, Spans: 1}}},
		}
	}
	merging := c.LockGroups()
	defer merging.End()
	for n := range sketch.MaxMappings - 2 {
		groups := []Group{group(n)}
		if err := merging.Reserve(groups, 10e9, time.Unix(1004, 0)); err != nil {
			t.Fatal(err)
		}
		merging.Add(0, &groups[0])
	}
	for range 2 {
		if err := merging.Reserve([]Group{group(100), group(101)}, 10e9, time.Unix(1004, 0)); !errors.Is(err,
			ErrMappings) {
			t.Errorf("two more: %v", err)
		}
	}
	if err := merging.Reserve([]Group{
		group(102), group(102), group(0),
		{Bucket: 1000e9, Mapping: sketch.AgentMapping},
	}, 10e9, time.Unix(1004, 0)); err != nil {
		t.Errorf("one more: %v", err)
	}
}

// TestMergedRows_AreBounded: a cycle has as many rows for groups as its part of the
// sketches' memory holds with their bins.
func TestMergedRows_AreBounded(t *testing.T) {
	config := testConfig(func(s *Sealed) { s.Release() })
	config.Merge, config.MaxAggregates, config.MaxOrigins, config.SketchBytes = true, 100, 4, 1<<20
	m := newMerged(&config, sketch.NewMemory(config.SketchBytes, config.Grid), new(atomic.Uint64))
	m.begin(time.Unix(1003, 0))
	c := &Cycle{merged: m, registry: registry.NewIntervals(&config.Config).Registry(), setKeyCount: func(int) {}}
	origin, _ := c.AdmitOrigin(span.Origin{})
	bins := sketch.Bins{List: []sketch.Bin{{Index: 100, Spans: 1}, {Index: 200, Spans: 1}}}
	added := 0
	merging := c.LockGroups()
	defer merging.End()
	for n := range 10000 {
		g := []Group{{
			Key: span.Key{Resource: fmt.Sprint(n % 50)}, Bucket: 1000e9 - int64(n/50%7)*10e9,
			Mapping: someMappings[n/350%4], OK: bins,
		}}
		if err := merging.Reserve(g, 10e9, time.Unix(1004, 0)); err != nil {
			break
		}
		merging.Add(origin, &g[0])
		added++
	}
	if most := config.SketchBytes / mergedShare / (mergedRowBytes + 2*mergedBinBytes); added > most ||
		added < most*9/10 {
		t.Errorf("%d rows, want %d, or as many as complete chunks leave of them", added, most)
	}
}

// TestMerged_Bytes fills a cycle with as many rows as it may have, each with other bins, until its bins find no more
// room either: their share of the memory for sketches. A clear gives it all back.
func TestMerged_Bytes(t *testing.T) {
	config := testConfig(func(s *Sealed) { s.Release() })
	config.Merge, config.MaxAggregates, config.SketchBytes = true, 100, 32<<20
	memory := sketch.NewMemory(config.SketchBytes, config.Grid)
	m := newMerged(&config, memory, new(atomic.Uint64))
	m.begin(time.Unix(1003, 0))
	c := &Cycle{merged: m, registry: registry.NewIntervals(&config.Config).Registry(), setKeyCount: func(int) {}}
	origin, _ := c.AdmitOrigin(span.Origin{})
	for _, each := range []int{1, 20, 57, 900} {
		merging := c.LockGroups()
		refused := false
		for n := 0; !refused; n++ {
			g := []Group{{
				Key: span.Key{Resource: fmt.Sprint(n % 90)}, Bucket: 1000e9 - int64(n/90%6)*10e9,
				Mapping: sketch.AgentMapping,
			}}
			for bin := range each {
				g[0].OK.List = append(g[0].OK.List,
					sketch.Bin{Index: uint16((n/540*each + bin) % maxMergedBin), Spans: 1})
			}
			refused = merging.Reserve(g, 10e9, time.Unix(1004, 0)) != nil || n > 540*maxMergedBin/each
			if !refused {
				merging.Add(origin, &g[0])
			}
		}
		merging.End()
		if share := config.SketchBytes / mergedShare; memory.Taken() > share || memory.Taken() == 0 {
			t.Errorf("%d bins a group take %d bytes of %d", each, memory.Taken(), share)
		}
		m.clear()
		if memory.Taken() != 0 {
			t.Errorf("%d bytes are left after a clear", memory.Taken())
		}
	}
}

// maxMergedBin is beyond the bins of the agent's own mapping that the test uses.
const maxMergedBin = 2000

// TestMerge merges from many sides while drainers count the same keys, and cycles
// are sealed and cleared: each span is in one sealed cycle or dropped, its key has
// all of its counts, and the counters agree.
func TestMerge(t *testing.T) {
	var sealed, cleared, hits, binned atomic.Uint64
	config := testConfig(func(s *Sealed) {
		sealed.Add(s.Spans())
		cleared.Add(s.Cleared)
		for _, row := range contents(s) {
			hits.Add(uint64(row.Hits))
			for _, bins := range []map[int]uint64{row.OK, row.Errors} {
				for _, n := range bins {
					binned.Add(n)
				}
			}
		}
		s.Delivery.Resolve(nil)
		s.Release()
	})
	config.Drainers, config.Merge = 2, true
	a, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	a.Start()
	var sent atomic.Uint64
	var sending sync.WaitGroup
	for p := range 4 {
		sending.Go(func() {
			r := a.NewGuard()
			defer r.Close()
			for i := range 1000 {
				key := span.Key{Resource: fmt.Sprint(i % 50)}
				if p == 0 {
					publish(a, r, span.Origin{Service: "shop"}, key,
						Slot{Duration: 5, End: time.Now().UnixNano(), Weight: 1})
					sent.Add(1)
					continue
				}
				cycle := r.Enter()
				origin, _ := cycle.AdmitOrigin(span.Origin{Service: "shop"})
				now := time.Now()
				g := []Group{{
					Key: key, Bucket: now.UnixNano(), Mapping: someMappings[p],
					Counts: Counts{Spans: 7, Hits: 7},
				}}
				g[0].OK, g[0].Errors = sketch.Bins{Zeros: 1, List: []sketch.Bin{{Index: 100, Spans: 4}}},
					sketch.Bins{List: []sketch.Bin{{Index: 200, Spans: 2}}}
				merging := cycle.LockGroups()
				if err := merging.Reserve(g, 10e9, now); err != nil {
					t.Error(err)
				}
				merging.Add(origin, &g[0])
				merging.End()
				r.Exit()
				sent.Add(7)
			}
		})
	}
	done := make(chan struct{})
	go func() { sending.Wait(); close(done) }()
	for over := false; !over; {
		a.Clear()
		select {
		case <-done:
			over = true
		case <-time.After(time.Millisecond):
		}
	}
	a.Stop()
	if got := sealed.Load() + cleared.Load(); got != sent.Load() || hits.Load() != sealed.Load() ||
		binned.Load() != sealed.Load() {
		t.Errorf("%d spans of %d: %d sealed with %d hits and %d in bins, %d cleared", got, sent.Load(),
			sealed.Load(), hits.Load(), binned.Load(), cleared.Load())
	}
	if s := a.Stats(); s.Aggregated() != sent.Load() || s.Pending != 0 {
		t.Errorf("%d of %d spans aggregated, %d held", s.Aggregated(), sent.Load(), s.Pending)
	}
}

// TestBuckets_AcceptedStartTimes: a bucket that starts at a multiple of ten seconds is accepted for a minute, any other
// one for five seconds, and none before it starts.
func TestBuckets_AcceptedStartTimes(t *testing.T) {
	m := mergingCycle(1).merged // opened at 1003
	const none = -1
	for _, test := range []struct{ start, now, want float64 }{
		{930, 1004, none},
		{940, 1004, 940},
		{1000, 1004, 1000},
		{1010, 1011, 1010}, // the cycle is not sealed yet
		{1010, 1009, none},
		{-1000, 1004, none},
		{0, 1004, none},
		{1003.5, 1004, 1002},
		{1004, 1004, 1004},
		{1004.5, 1004, none},
		{1001, 1006, 1000},
		{1000.9, 1006, none},
		{985, 1004, none},
	} {
		start, now := int64(test.start*1e9), int64(test.now*1e9)
		got := m.rounded(start)
		if !m.acceptsStart(start, now) {
			got = none * 1e9
		}
		if got != int64(test.want*1e9) {
			t.Errorf("%v at %v: %v", test.start, test.now, got)
		}
	}
	merging := mergingCycle(1).LockGroups()
	defer merging.End()
	if merging.Reserve([]Group{{Bucket: 1000e9, Mapping: sketch.AgentMapping}}, 5e9,
		time.Unix(1004, 0)) == nil {
		t.Error("a bucket of another width is accepted")
	}
}

// agentsTime returns the start of the agent's bucket for a bucket that began at start and arrives at now. flushed is the
// time of the agent's last flush. The rule is getAggregationBucketTime in the agent.
func agentsTime(start, now, flushed time.Time) time.Time {
	align := func(t time.Time) time.Time { return t.Truncate(2 * time.Second).Add(time.Second) }
	oldest := align(flushed.Add(2*time.Second - 20*time.Second))
	switch {
	case start.Before(oldest):
		return oldest
	case start.After(now):
		return align(now)
	}
	return align(start)
}

// TestBuckets_AgentKeepsSlot: the agent puts a merged bucket into the same slot, although its start has
// changed and it arrives one flush interval later.
func TestBuckets_AgentKeepsSlot(t *testing.T) {
	m := mergingCycle(1).merged
	rnd := rand.New(rand.NewPCG(3, 4))
	merged := 0
	for range 200_000 {
		now := time.Unix(1003, rnd.Int64N(7e9))
		start := now.Add(time.Duration(rnd.Int64N(9e9) - 8e9))
		if !m.acceptsStart(start.UnixNano(), now.UnixNano()) || start.UnixNano()%m.width == 0 {
			continue
		}
		bucket := m.rounded(start.UnixNano())
		merged++
		sent := now.Add(time.Duration(rnd.Int64N(11e9)))
		// It has flushed a little while ago, or not for two seconds.
		direct := agentsTime(start, now, now.Add(-time.Duration(rnd.Int64N(2e9))))
		through := agentsTime(time.Unix(0, bucket), sent, sent.Add(-time.Duration(rnd.Int64N(2e9))))
		if !direct.Equal(through) {
			t.Fatalf("started %v, sent %v: the agent has it at %v; started %v and sent %v, at %v", start, now,
				direct, time.Unix(0, bucket), sent, through)
		}
	}
	if merged < 50_000 {
		t.Errorf("only %d buckets were merged", merged)
	}
}
