package prometheus

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// counted contains every duration of a series in the model.
type counted struct {
	calls     uint64
	durations []float64 // truncated, seconds
}

// model contains the counted series by labels.
type model map[string]*counted

func (m model) calls() (sum uint64) {
	for _, c := range m {
		sum += c.calls
	}
	return sum
}

// randomCycle counts random spans of some names in a cycle and in the model.
func randomCycle(t testing.TB, rnd *rand.Rand, into model) (sealed func(x *Exporter) uint64) {
	t.Helper()
	c := newCycle(t)
	for o := range 1 + rnd.IntN(3) {
		service := fmt.Sprint("service", o%2) // two processes of one service share a series
		origin := c.Origin(span.Origin{Service: service, RuntimeID: fmt.Sprint(o)})
		for range rnd.IntN(6) {
			name := fmt.Sprint("op", rnd.IntN(5))
			key := c.Key(origin,
				span.Key{Service: service, Operation: name, Resource: fmt.Sprint("r", rnd.IntN(3))})
			for range rnd.IntN(20) {
				flags, ns := span.Flags(0), rnd.Uint64()>>(25+rnd.IntN(39))
				status := "STATUS_CODE_UNSET"
				if rnd.IntN(4) == 0 {
					flags, status = span.Error, "STATUS_CODE_ERROR"
				}
				c.Add(rnd.IntN(2), key, time.Duration(rnd.IntN(30)-15)*time.Second, ns, flags, 1)
				labels := fmt.Sprintf("service_name=%s span_name=%s span_kind=SPAN_KIND_UNSPECIFIED status_code=%s",
					service, name, status)
				if into[labels] == nil {
					into[labels] = &counted{}
				}
				into[labels].calls++
				into[labels].durations = append(into[labels].durations, sketch.Truncate(ns)/1e9)
			}
		}
	}
	cycle := c.Seal()
	return func(x *Exporter) uint64 {
		spans, _ := publish(x, recent(cycle))
		return spans
	}
}

// After many random cycles each series contains all counted spans, each in the classic and native
// bucket of its duration.
func TestTotals_AgainstModel(t *testing.T) {
	for seed := range uint64(12) {
		rnd, x, want := rand.New(rand.NewPCG(seed, 1)), exporterWith(t, nil), model{}
		for range 12 {
			before := want.calls()
			if spans := randomCycle(t, rnd, want)(x); spans != want.calls()-before {
				t.Fatalf("seed %d: a payload of %d spans, want %d", seed, spans, want.calls()-before)
			}
		}
		all := scraped(t, x)
		calls, durations := seriesOf(t, all[callsName]), seriesOf(t, all[durationsName])
		if len(calls) != len(want) || len(durations) != len(want) {
			t.Fatalf("seed %d: %d and %d series, want %d", seed, len(calls), len(durations), len(want))
		}
		for labels, c := range want {
			if got := calls[labels].GetCounter().GetValue(); got != float64(c.calls) {
				t.Fatalf("seed %d: %v calls of %s, want %d", seed, got, labels, c.calls)
			}
			checkHistogram(t, durations[labels].GetHistogram(), c.durations)
		}
		checkText(t, x, want)
	}
}

// checkText compares the classic text with the model.
func checkText(t *testing.T, x *Exporter, want model) {
	t.Helper()
	body, _ := ask(t, x, "text/plain", "")
	all := readText(t, body)
	calls, durations := seriesOf(t, all[callsName]), seriesOf(t, all[durationsName])
	for labels, c := range want {
		h := durations[labels].GetHistogram()
		if calls[labels].GetCounter().GetValue() != float64(c.calls) ||
			h.GetSampleCount() != uint64(len(c.durations)) {
			t.Fatalf("in text %s has %v calls and %d durations, want %d", labels, calls[labels],
				h.GetSampleCount(), c.calls)
		}
		checkClassic(t, h, c.durations)
	}
}

func checkHistogram(t *testing.T, h *dto.Histogram, durations []float64) {
	t.Helper()
	sum := 0.
	for _, d := range durations {
		sum += d
	}
	if h.GetSampleCount() != uint64(len(durations)) || math.Abs(h.GetSampleSum()-sum) > .002*sum+1e-8 {
		t.Fatalf("%d durations with a sum of %v, want %d with %v", h.GetSampleCount(), h.GetSampleSum(),
			len(durations), sum)
	}
	checkClassic(t, h, durations)
	checkNative(t, h, durations)
}

func checkClassic(t *testing.T, h *dto.Histogram, durations []float64) {
	t.Helper()
	bounds := append(slices.Clone(testBounds), math.Inf(1))
	if len(h.GetBucket()) != len(bounds) {
		t.Fatalf("%d classic buckets, want %d", len(h.GetBucket()), len(bounds))
	}
	for i, b := range h.GetBucket() {
		want := uint64(0)
		for _, d := range durations {
			if d <= bounds[i] {
				want++
			}
		}
		if b.GetUpperBound() != bounds[i] || b.GetCumulativeCount() != want {
			t.Fatalf("%d spans up to %v s, want %d up to %v s", b.GetCumulativeCount(), b.GetUpperBound(),
				want, bounds[i])
		}
	}
}

// checkNative counts the durations of each native bucket by its bounds as defined by Prometheus:
// bucket i contains durations above 2^((i-1)/2^schema), up to 2^(i/2^schema).
func checkNative(t *testing.T, h *dto.Histogram, durations []float64) {
	t.Helper()
	want, zeros := map[int]int64{}, uint64(0)
	for _, d := range durations {
		if d == 0 {
			zeros++
			continue
		}
		want[int(math.Ceil(math.Log2(d)*math.Exp2(float64(h.GetSchema()))))]++
	}
	got, i, n := map[int]int64{}, 0, int64(0)
	deltas := h.GetPositiveDelta()
	for _, s := range h.GetPositiveSpan() {
		i += int(s.GetOffset())
		for range s.GetLength() {
			if n += deltas[0]; n != 0 {
				got[i] = n
			}
			deltas = deltas[1:]
			i++
		}
	}
	if h.GetZeroCount() != zeros || h.GetZeroThreshold() <= 0 || len(deltas) != 0 || !maps.Equal(got, want) {
		t.Fatalf("at scale %d %d spans took no time and the others are %v, want %d and %v",
			h.GetSchema(), h.GetZeroCount(), got, zeros, want)
	}
}

// While cycles are counted, scrapers read. Each scrape agrees, in both metrics, with the model
// after some cycle. No series decreases, and none is in one metric only.
func TestScrape_WholeNumberOfCycles(t *testing.T) {
	const scrapers, cycles = 3, 60
	x, rnd, want := exporterWith(t, nil), rand.New(rand.NewPCG(3, 3)), model{}
	var mu sync.Mutex
	sums := map[uint64]bool{0: true} // of all calls, after each cycle
	var running sync.WaitGroup
	stop := make(chan struct{})
	scrapes := make([]int, scrapers)
	for i := range scrapers {
		running.Go(func() {
			last := map[string]float64{}
			for {
				select {
				case <-stop:
					return
				default:
				}
				all := scraped(t, x)
				calls, durations := seriesOf(t, all[callsName]), seriesOf(t, all[durationsName])
				sum, spans := uint64(0), uint64(0)
				for labels, m := range calls {
					n := m.GetCounter().GetValue()
					if n < last[labels] {
						t.Errorf("%s fell from %v to %v", labels, last[labels], n)
					}
					last[labels] = n
					sum += uint64(n)
					spans += durations[labels].GetHistogram().GetSampleCount()
				}
				mu.Lock()
				isWhole := sums[sum]
				mu.Unlock()
				if !isWhole || spans != sum || len(calls) != len(durations) || len(calls) < len(last) {
					t.Errorf("%d calls and %d durations in %d and %d series, of %d before: no number of cycles",
						sum, spans, len(calls), len(durations), len(last))
				}
				scrapes[i]++
			}
		})
	}
	for range cycles {
		add := randomCycle(t, rnd, want)
		mu.Lock()
		sums[want.calls()] = true // before a scrape can contain it
		mu.Unlock()
		add(x)
	}
	close(stop)
	running.Wait()
	if sum := want.calls(); uint64(len(sums)) < 10 || sum == 0 {
		t.Errorf("%d cycles of %d spans", len(sums), sum)
	}
	t.Log(scrapes, "scrapes of", cycles, "cycles")
}
