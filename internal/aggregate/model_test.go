package aggregate

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/ring"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// The naive model: one map, one lock's worth of thought, library sketches.
type modelKey struct {
	origin    span.Origin
	canonical string
	bucket    int64
}

type modelRow struct {
	spans                            uint64
	hits, errors, topLevel, duration float64
	errorDuration                    float64
	ok, err                          *ddsketch.DDSketch
	// buckets of a histogram at its finest scale, zeros under noBucket
	okBuckets, errBuckets map[int]uint64
}

const noBucket = math.MinInt

// exponentialBucket is the definition of OpenTelemetry at that scale, of truncated durations
// in seconds.
func exponentialBucket(nanoseconds uint64) int {
	if nanoseconds == 0 {
		return noBucket
	}
	return int(math.Ceil(math.Log2(truncate(nanoseconds)/1e9)*(1<<sketch.MaxScale))) - 1
}

type model map[modelKey]*modelRow

func (m model) row(k modelKey) *modelRow {
	if m[k] == nil {
		m[k] = &modelRow{
			ok: newLibrarySketch(), err: newLibrarySketch(),
			okBuckets: map[int]uint64{}, errBuckets: map[int]uint64{},
		}
	}
	return m[k]
}

func (m model) add(t *testing.T, k modelKey, duration uint64, flags span.Flags, weight float64) {
	row := m.row(k)
	row.spans++
	row.hits += weight
	row.duration += float64(duration) * weight
	if flags&span.TopLevel != 0 {
		row.topLevel += weight
	}
	sketch, buckets := row.ok, row.okBuckets
	if flags&span.Error != 0 {
		row.errors += weight
		row.errorDuration += float64(duration) * weight
		sketch, buckets = row.err, row.errBuckets
	}
	buckets[exponentialBucket(duration)]++
	if err := sketch.Add(truncate(duration)); err != nil {
		t.Fatal(err)
	}
}

// take adds the rows of a sealed cycle to a model, merged as by the exporters. It ignores
// histograms of the agent's grid, which are not exact.
func (m model) take(t *testing.T, s *Sealed, grid *sketch.Grid) {
	for a := range s.Parts {
		entry := s.Keys[a.Key]
		row := m.row(modelKey{s.Origins[entry.Origin], string(wire.AppendKey(nil, &entry.Key)), a.Bucket})
		row.spans += a.Counts().Spans
		row.hits += a.Counts().Hits
		row.errors += a.Counts().Errors
		row.topLevel += a.Counts().TopLevel
		row.duration += a.Counts().Duration
		row.errorDuration += a.ErrorDuration()
		var ok, failed sketch.Sketch
		a.ReadOK(&ok)
		a.ReadErrors(&failed)
		addTo(t, row.ok, &ok)
		addTo(t, row.err, &failed)
		if grid == sketch.CommonGrid() {
			var ok, failed sketch.Histogram
			a.ReadOK(&ok)
			a.ReadErrors(&failed)
			addBuckets(row.okBuckets, &ok)
			addBuckets(row.errBuckets, &failed)
		}
	}
}

// addBuckets adds a histogram at its finest scale.
func addBuckets(to map[int]uint64, h *sketch.Histogram) {
	b := h.Buckets(math.MaxInt)
	if b.Zeros > 0 {
		to[noBucket] += b.Zeros
	}
	for i, spans := range b.Counts {
		if spans > 0 {
			to[int(b.Offset)+i] += spans
		}
	}
}

// addTo adds what a table has counted to a library sketch, bin by bin.
func addTo(t *testing.T, to *ddsketch.DDSketch, s *sketch.Sketch) {
	for bin, spans := range contentOf(s) {
		if bin != noBin {
			to.GetPositiveValueStore().AddWithCount(bin, spans)
		} else if err := to.AddWithCount(0, spans); err != nil {
			t.Fatal(err)
		}
	}
}

// clamp returns the start of the bucket in which a span is counted, and whether the span is late or early. This is the
// bucket of the span's end, but not earlier than the bucket before that of the cycle, and not later than the current one.
func (m model) clamp(opened, now, end time.Time) (bucket time.Time, late, early uint64) {
	const width = 10 * time.Second
	bucketStart := opened.Truncate(width)
	if now.Before(bucketStart) {
		now = bucketStart
	}
	switch {
	case end.Before(bucketStart.Add(-width)):
		return bucketStart.Add(-width), 1, 0
	case end.Truncate(width).After(now):
		end, early = now, 1
	}
	if bucket = end.Truncate(width); bucket.After(bucketStart.Add(width)) {
		bucket = bucketStart.Add(width)
	}
	return bucket, 0, early
}

func bins(s *ddsketch.DDSketch) string {
	text := fmt.Sprintf("zero %v", s.GetZeroCount())
	s.GetPositiveValueStore().ForEach(func(index int, count float64) bool {
		text += fmt.Sprintf(" %d:%v", index, count)
		return false
	})
	return text
}

func (m model) equal(t *testing.T, want model, grid *sketch.Grid) {
	t.Helper()
	if len(m) != len(want) {
		t.Errorf("%d rows, want %d", len(m), len(want))
	}
	for k, w := range want {
		g := m[k]
		if g == nil {
			t.Errorf("no row for %q in bucket %d", k.canonical, k.bucket)
			continue
		}
		if g.spans != w.spans || g.hits != w.hits || g.errors != w.errors || g.topLevel != w.topLevel ||
			g.duration != w.duration || g.errorDuration != w.errorDuration {
			t.Errorf("%q: counters %+v, want %+v", k.canonical, *g, *w)
		}
		if bins(g.ok) != bins(w.ok) || bins(g.err) != bins(w.err) {
			t.Errorf("%q: sketches differ:\n%s\n%s\nwant\n%s\n%s", k.canonical, bins(g.ok), bins(g.err),
				bins(w.ok), bins(w.err))
		}
		if grid == sketch.CommonGrid() &&
			!(maps.Equal(g.okBuckets, w.okBuckets) && maps.Equal(g.errBuckets, w.errBuckets)) {
			t.Errorf("%q: histograms differ: %v %v, want %v %v", k.canonical, g.okBuckets, g.errBuckets,
				w.okBuckets, w.errBuckets)
		}
	}
}

func testConfig(deliver func(*Sealed)) Config {
	config := DefaultConfig()
	config.RingSlots = 64
	config.MaxOrigins = 8
	config.Deliver = deliver
	return config
}

// publish admits one snapshot and publishes it, waiting for room. It returns what
// the key got, in which interval, and under which key it is counted.
func publish(a *Aggregator, r *Guard, origin span.Origin, key span.Key, s Slot) (registry.Admission, uint64,
	span.Key,
) {
	for {
		cycle := r.Enter()
		if cycle == nil {
			panic("published after the last cycle")
		}
		id, _ := cycle.AdmitOrigin(origin)
		admission, interval := cycle.Admit(id, &key), cycle.Interval()
		_, keys := cycle.Registry().Contents()
		route := a.NewRoute()
		route.Begin()
		window := cycle.Window()
		s.Key, s.Place = admission.ID, window.Place(s.End)
		claim, result := a.Ring(route.Drainer(admission.Hash)).Claim(1)
		if result == ring.Claimed {
			*claim.Slot(0) = s
			claim.Publish()
		}
		r.Exit()
		if result == ring.Claimed {
			return admission, interval, keys[admission.ID].Key
		}
		time.Sleep(time.Microsecond)
	}
}

// TestModel sends random snapshots of random keys and origins over several
// intervals, with reports in between, through one to four drainers, and expects
// what the naive model counts: sums, counters and sketches, bin for bin, in the right
// buckets, under the keys that the registry says; and every second time, in the common
// grid, histograms too.
func TestModel(t *testing.T) {
	var met [span.WholeKey + 1]int
	for seed := range uint64(16) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { runModel(t, rand.New(rand.NewPCG(seed, 7)), &met) })
		})
	}
	for f, n := range met {
		if n == 0 {
			t.Errorf("no key lost its %s", span.Label(f))
		}
	}
}

func runModel(t *testing.T, rnd *rand.Rand, met *[span.WholeKey + 1]int) {
	got, want := model{}, model{}
	grid := []*sketch.Grid{sketch.AgentGrid(), sketch.CommonGrid()}[rnd.IntN(2)]
	config := testConfig(func(s *Sealed) {
		got.take(t, s, grid)
		s.Delivery.Resolve(nil)
		s.Release()
	})
	config.Grid, config.Drainers = grid, 1+rnd.IntN(4)
	config.MaxAggregates = 1 + rnd.IntN(1+rnd.IntN(1200))
	for f := range config.Budgets {
		config.Budgets[f] = 1 + rnd.IntN(1+rnd.IntN(12))
	}
	a, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	a.Start()
	r := a.NewGuard()
	origins := []span.Origin{
		{Service: "shop"},
		{Service: "cart", Env: "prod"},
		{Service: "shop", ContainerID: "c2"},
	}
	intervals := map[uint64]bool{}
	sent, late, early := uint64(0), uint64(0), uint64(0)
	for range 2000 {
		time.Sleep(time.Duration(rnd.IntN(40)) * time.Millisecond)
		if rnd.IntN(200) == 0 {
			if _, err := a.RequestFlush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		// Durations stay below 2^40 so that their sums are exact in any order.
		// Drainers clamp against their own now, so they must have caught up.
		synctest.Wait()
		now := time.Now().UnixNano()
		end := now - int64(rnd.IntN(5e9))
		if rnd.IntN(10) == 0 {
			end = now + int64(rnd.IntN(60e9)) - 30e9
		}
		origin := origins[rnd.IntN(len(origins))]
		if rnd.IntN(3) > 0 {
			origin = origins[0] // the others are its quiet neighbors
		}
		key := randomKey(rnd)
		s := Slot{
			Duration: rnd.Uint64() >> (24 + rnd.IntN(40)), End: end, Weight: float64(1 + rnd.IntN(3)),
			Flags: span.Flags(rnd.IntN(4)),
		}
		admission, interval, counted := publish(a, r, origin, key, s)
		sent++
		intervals[interval] = true
		checkLosses(t, key, counted, admission.Collapsed)
		key = counted
		for f := range met {
			if admission.Collapsed.Has(span.Label(f)) {
				met[f]++
			}
		}
		opened := a.cycles.byNumber(a.cycles.current.Load()).started
		bucket, isLate, isEarly := want.clamp(opened, time.Now(), time.Unix(0, end))
		late, early = late+isLate, early+isEarly
		want.add(t, modelKey{origin, string(wire.AppendKey(nil, &key)), bucket.UnixNano()}, s.Duration,
			s.Flags, s.Weight)
	}
	r.Close()
	a.Stop()
	got.equal(t, want, grid)
	if reports := a.Stats().Sealed - uint64(len(intervals)); len(intervals) < 4 || reports < 2 {
		t.Errorf("the test met %d intervals and %d reports", len(intervals), reports)
	}
	stats := a.Stats()
	if stats.Aggregated() != sent || stats.Pending != 0 {
		t.Errorf("aggregated %d held %d, want %d and 0", stats.Aggregated(), stats.Pending, sent)
	}
	var gotLate, gotEarly uint64
	for _, d := range stats.Drainers {
		gotLate, gotEarly = gotLate+d.Late, gotEarly+d.Early
	}
	if gotLate != late || gotEarly != early || late == 0 || early == 0 {
		t.Errorf("%d late and %d early, want %d and %d", gotLate, gotEarly, late, early)
	}
}

// TestBoundary_UnderLoad has publishers, clock boundaries and reports all at
// once, and expects every span in exactly one sealed cycle.
func TestBoundary_UnderLoad(t *testing.T) {
	var mu sync.Mutex
	var sealed uint64
	seen := map[uint64]bool{}
	config := testConfig(func(s *Sealed) {
		mu.Lock()
		defer mu.Unlock()
		if seen[s.Cycle] {
			t.Errorf("cycle %d was sealed twice", s.Cycle)
		}
		seen[s.Cycle] = true
		sealed += s.Spans()
		s.Delivery.Resolve(nil)
		go func() { // later, from elsewhere, while the interval's next cycle adds to its keys
			for _, entry := range s.Keys {
				if s.Origins[entry.Origin].Service == "" || entry.Key.Resource == "" {
					t.Error("a sealed cycle's key has no name")
				}
			}
			s.Release()
		}()
	})
	config.Drainers, config.FlushInterval = 3, time.Second
	a, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	a.Start()
	const publishers, each = 6, 20000
	var publishing sync.WaitGroup
	for p := range publishers {
		publishing.Go(func() {
			r := a.NewGuard()
			defer r.Close()
			for i := range each {
				publish(a, r, span.Origin{Service: fmt.Sprint(p % 3)},
					span.Key{
						Resource: fmt.Sprint(i % 50), Type: fmt.Sprint(i / 3000),
						Operation: fmt.Sprint(i / 20),
					},
					Slot{Duration: uint64(i), End: time.Now().UnixNano(), Weight: 1})
			}
		})
	}
	ended := make(chan struct{})
	go func() { publishing.Wait(); close(ended) }()
	for {
		select {
		case <-ended:
			a.Stop()
			if stats := a.Stats(); sealed != publishers*each || stats.Aggregated() != publishers*each ||
				stats.Pending != 0 {
				t.Fatalf("sealed %d, aggregated %d, held %d; %d were published", sealed, stats.Aggregated(),
					stats.Pending, publishers*each)
			}
			return
		default:
			a.Stats() // as a scrape would, at any moment
			a.sealer.requests.pendingOrNew()
		}
	}
}
