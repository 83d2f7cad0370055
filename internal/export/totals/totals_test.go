package totals

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
)

const overflow, common = "overflow", "common"

// The model is a list that is searched linearly, with histograms of unlimited size.
type model struct {
	limits            Limits
	series            []*modelSeries // the most recently counted is the last
	cycle             int
	start, end        int64
	ended, overflowed uint64
}

type modelSeries struct {
	metric               int
	resource, attributes string
	start, end           int64
	cycle                int
	calls                uint64
	seconds              float64
	spans, arrived       uint64
	histogram            sketch.Histogram
	classic              []uint64
}

// isWanted reports whether a series must not end, because it has undelivered spans.
func (s *modelSeries) isWanted() bool { return s.spans > s.arrived }

// overflows returns the number of overflow series.
func (m *model) overflows() (n int) {
	for _, s := range m.series {
		if s.attributes == overflow {
			n++
		}
	}
	return n
}

func (m *model) begin(start, end int64, isSettled bool) {
	for _, one := range m.series {
		if isSettled {
			one.arrived = one.spans
		}
	}
	m.cycle, m.start, m.end = m.cycle+1, start, end
	for len(m.series) > 0 && start-m.series[0].end >= int64(m.limits.Idle) && !m.series[0].isWanted() {
		m.series = m.series[1:]
		m.ended++
	}
}

func (m *model) find(resource string, metric int, attributes string) *modelSeries {
	for _, s := range m.series {
		if s.resource == resource && s.metric == metric && s.attributes == attributes {
			return s
		}
	}
	return nil
}

// fits reports whether another series is within the limits.
func (m *model) fits(resource, attributes string) bool {
	bytes, resources := len(attributes), map[string]bool{resource: true}
	for _, s := range m.series {
		bytes += len(s.attributes)
		resources[s.resource] = true
	}
	for r := range resources {
		bytes += len(r)
	}
	return len(m.series) < m.limits.Series && bytes <= m.limits.Bytes
}

func (m *model) add(resource string, metric int, attributes string, counted Counted, bins []sketch.Bin) {
	s := m.find(resource, metric, attributes)
	if s == nil {
		for !m.fits(resource, attributes) && len(m.series) > 0 && m.series[0].cycle != m.cycle &&
			m.start-m.series[0].end >= int64(m.limits.MinIdle) && !m.series[0].isWanted() {
			m.series = m.series[1:]
			m.ended++
		}
		if !m.fits(resource, attributes) {
			m.overflowed += counted.Spans
			attributes = overflow
			isFull := m.overflows() >= m.limits.Resources || len(resource+overflow) > m.limits.ResourceBytes
			if m.find(resource, metric, overflow) == nil && isFull {
				resource = common
			}
		}
		s = m.find(resource, metric, attributes)
	}
	if s == nil {
		s = &modelSeries{
			metric: metric, resource: resource, attributes: attributes, start: m.start,
			classic: make([]uint64, len(counted.Classic)),
		}
	}
	m.series = append(slices.DeleteFunc(m.series, func(other *modelSeries) bool { return other == s }), s)
	s.cycle, s.end = m.cycle, m.end
	s.spans += counted.Spans
	s.calls += counted.Calls
	s.seconds += counted.Seconds
	for i := range s.classic {
		s.classic[i] += counted.Classic[i]
	}
	s.histogram.AddBins(sketch.AgentMapping, bins)
}

// seen is a series in comparable form.
type seen struct {
	start   int64
	calls   uint64
	seconds float64
	spans   uint64
	buckets string
	classic string
}

// nameOf returns a name for a series.
func nameOf(resource string, metric int, attributes string) string {
	if metric == 0 {
		return resource + " " + attributes
	}
	return fmt.Sprint(resource, " ", attributes, " metric ", metric)
}

func (m *model) all() map[string]seen {
	all := map[string]seen{}
	for _, s := range m.series {
		all[nameOf(s.resource, s.metric, s.attributes)] = seen{
			s.start, s.calls, s.seconds, s.spans,
			fmt.Sprint(s.histogram.Buckets(m.limits.Buckets)), fmt.Sprint(s.classic),
		}
	}
	return all
}

func (t *Totals) all() map[string]seen {
	all := map[string]seen{}
	for _, r := range t.Resources() {
		for _, s := range r.Series {
			all[nameOf(r.Encoded, s.Metric, s.Attributes)] = seen{
				s.Start, s.Calls, s.Seconds, s.Spans,
				fmt.Sprint(s.Buckets), fmt.Sprint(s.Classic),
			}
		}
	}
	return all
}

// TestTotals_AgainstModel adds random histograms of random series over many cycles, with various
// limits, and compares the totals with the model. Some cycles are settled, and some series
// abandoned, so the undelivered spans are compared as well.
func TestTotals_AgainstModel(t *testing.T) {
	var counts Counts
	restarts, abandoned := 0, 0
	for seed := range uint64(30) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		limits := Limits{
			Series: 1 + rnd.IntN(80), Bytes: 20 + rnd.IntN(2000), Idle: time.Duration(1 + rnd.IntN(100)),
			Buckets:       []int{160, 2, 12}[seed%3],
			Resources:     rnd.IntN(4),
			ResourceBytes: len("resource 1overflow") - int(seed%5/4),
			Classic:       int(seed % 4),
		}
		if seed%3 == 1 {
			limits.MinIdle = limits.Idle / 2
		}
		totals, want := New(limits, []byte(overflow), []byte(common)), &model{limits: limits}
		began := map[string]int64{}
		now := int64(1000)
		firstUndelivered := uint64(1)
		for cycle := range uint64(40) {
			cycle++
			end := now + 1 + rnd.Int64N(20)
			isSettled := rnd.IntN(3) == 0
			if isSettled {
				firstUndelivered = cycle
			}
			totals.BeginCycle(cycle, firstUndelivered, now, end)
			want.begin(now, end, isSettled)
			for range rnd.IntN(1 + rnd.IntN(60)) {
				resource := fmt.Sprint("resource ", rnd.IntN(5))
				attributes := fmt.Sprint("attributes ", rnd.IntN(1+rnd.IntN(30)))
				var bins []sketch.Bin
				for range rnd.IntN(4) {
					bins = append(bins,
						sketch.Bin{Index: uint16(rnd.IntN(1 + rnd.IntN(2000))), Spans: rnd.Uint64N(9)})
				}
				var h sketch.Histogram
				h.AddBins(sketch.AgentMapping, bins)
				b := h.Buckets(limits.Buckets)
				counted := Counted{rnd.Uint64N(9), rnd.Uint64N(10), rnd.Uint64N(3), float64(rnd.IntN(1000)), &b, nil}
				metric := rnd.IntN(1 + int(seed%3))
				for range max(0, limits.Classic-metric) { // each metric has its own bounds
					counted.Classic = append(counted.Classic, rnd.Uint64N(5))
				}
				totals.Add(SeriesID{[]byte(resource), metric, []byte(attributes)}, counted)
				want.add(resource, metric, attributes, counted, bins)
			}
			for _, r := range totals.Resources() {
				for _, one := range r.Series {
					is := want.find(r.Encoded, one.Metric, one.Attributes)
					lacks := is.spans - is.arrived
					if got := totals.Undelivered(one); got != lacks {
						t.Fatalf("seed %d: a reader lacks %d spans of a series, want %d", seed, got, lacks)
					}
					if rnd.IntN(20) == 0 && lacks > 0 {
						if got := totals.Abandon(one); got != lacks || totals.Undelivered(one) != 0 {
							t.Fatalf("seed %d: %d spans are abandoned, want %d", seed, got, lacks)
						}
						is.arrived = is.spans
						abandoned++
					}
				}
			}
			if got, want := totals.all(), want.all(); !maps.Equal(got, want) {
				t.Fatalf("seed %d: %v\nwant %v", seed, got, want)
			}
			for name, s := range want.all() {
				if start, known := began[name]; known && start != s.start {
					restarts++
				}
				began[name] = s.start
			}
			now = end + rnd.Int64N(3)
		}
		if got, want := totals.Counts(), (Counts{
			len(want.series), want.ended,
			want.overflowed,
		}); got != want {
			t.Errorf("seed %d: %+v, want %+v", seed, got, want)
		}
		counts.Ended += totals.Counts().Ended
		counts.Overflowed += totals.Counts().Overflowed
	}
	if counts.Ended < 100 || counts.Overflowed < 100 || restarts < 100 || abandoned < 10 {
		t.Errorf("too little happened: %+v, %d restarts, %d abandoned", counts, restarts, abandoned)
	}
}

// Totals retain no argument, because the caller reuses all of them.
func TestTotals_RetainNoArgument(t *testing.T) {
	totals := New(Limits{Series: 10, Bytes: 100, Idle: time.Hour, Buckets: 160, Classic: 2}, []byte(overflow),
		[]byte(common))
	totals.BeginCycle(1, 1, 1, 2)
	resource, attributes, counts, classic := []byte("r"), []byte("a"), []uint64{7}, []uint64{3, 4}
	totals.Add(SeriesID{resource, 0, attributes},
		Counted{7, 1, 0, 1, &sketch.Buckets{Scale: 5, Counts: counts, Spans: 7}, classic})
	resource[0], attributes[0], counts[0], classic[0] = 'x', 'x', 100, 100
	want := map[string]seen{"r a": {
		1, 1, 1, 7,
		fmt.Sprint(sketch.Buckets{Scale: 5, Counts: []uint64{7}, Spans: 7}), "[3 4]",
	}}
	if got := totals.all(); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// A series does not end in the cycle that counts it. With a limit of two, the third series of a
// cycle overflows. In the next cycle, it can replace one that is not counted.
func TestTotals_SeriesStaysInItsCycle(t *testing.T) {
	totals := New(Limits{
		Series: 2, Bytes: 100, Idle: time.Hour, Buckets: 160, Resources: 1,
		ResourceBytes: 100,
	}, []byte(overflow), []byte(common))
	none := &sketch.Buckets{}
	for cycle, attributes := range [][]string{{"a", "b", "c", "d"}, {"c"}, {"a", "c"}} {
		totals.BeginCycle(uint64(cycle), uint64(cycle), int64(cycle), int64(cycle)+1)
		for _, a := range attributes {
			totals.Add(SeriesID{[]byte("r"), 0, []byte(a)}, Counted{1, 1, 0, 1, none, nil})
		}
		var names []string
		for name := range totals.all() {
			names = append(names, name[2:])
		}
		slices.Sort(names)
		if want := [][]string{{"a", "b", overflow}, {"c", overflow}, {"a", "c"}}[cycle]; !slices.Equal(names,
			want) {
			t.Errorf("in cycle %d there are %v, want %v", cycle, names, want)
		}
	}
}

// A series ends when it has been idle for the limit, exact to the nanosecond.
func TestTotals_SeriesEndsAtIdleLimit(t *testing.T) {
	totals := New(Limits{Series: 2, Bytes: 100, Idle: time.Hour, Buckets: 160}, []byte(overflow),
		[]byte(common))
	totals.BeginCycle(1, 1, 0, 10)
	totals.Add(SeriesID{[]byte("r"), 0, []byte("a")}, Counted{1, 1, 0, 1, &sketch.Buckets{}, nil})
	for i, step := range []struct {
		start int64
		there int
	}{{10, 1}, {10 + int64(time.Hour) - 1, 1}, {10 + int64(time.Hour), 0}, {math.MaxInt64, 0}} {
		if totals.BeginCycle(uint64(2+i), uint64(2+i), step.start, step.start); totals.Counts().Series != step.there {
			t.Errorf("at %d there are %d", step.start, totals.Counts().Series)
		}
	}
}

// A series with spans that no reader has received is neither ended because it is idle nor evicted: new series overflow
// instead, so that no span is lost.
func TestTotals_UndeliveredSeriesStay(t *testing.T) {
	totals := New(Limits{
		Series: 2, Bytes: 100, Idle: time.Hour, Buckets: 160, Resources: 1, ResourceBytes: 100,
	}, []byte(overflow), []byte(common))
	add := func(attributes string) {
		totals.Add(SeriesID{[]byte("r"), 0, []byte(attributes)}, Counted{1, 1, 0, 1, &sketch.Buckets{}, nil})
	}
	expect := func(when, want string) {
		t.Helper()
		var names []string
		for name := range totals.all() {
			names = append(names, name[2:])
		}
		slices.Sort(names)
		if got := fmt.Sprint(names); got != want {
			t.Errorf("%s there are %s, want %s", when, got, want)
		}
	}
	day := int64(24 * time.Hour)
	totals.BeginCycle(1, 1, 0, 1)
	add("a")
	add("b")
	totals.BeginCycle(2, 1, day, day+1)
	add("c")
	expect("before anything is delivered", "[a b overflow]")
	totals.BeginCycle(3, 2, day+1, day+2)
	add("c")
	expect("when the first cycle is delivered", "[c overflow]")
}
