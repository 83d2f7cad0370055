package otlp

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/totals"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
	"github.com/spanstatsd/spanstatsd/internal/testutil/testcycle"
)

// cumulativeTo is an exporter of running totals.
func cumulativeTo(t *testing.T, url string, limits totals.Limits) *Exporter {
	t.Helper()
	x := exporterTo(t, url, func(c *Config) { c.Temporality = Cumulative })
	x.LimitTotals(limits)
	return x
}

// naiveReader is an exporter with a scripted receiver and no network. It records the largest total
// of each series that it has accepted.
type naiveReader struct {
	*Exporter
	t *testing.T

	mu     sync.Mutex
	delay  func() time.Duration // before the response; optional
	answer func() export.Attempt
	totals map[string]uint64 // by series and start
	ends   map[string]uint64 // end of the last window, by series
}

func readerOf(t *testing.T, limits totals.Limits, answer func() export.Attempt) *naiveReader {
	return &naiveReader{
		Exporter: cumulativeTo(t, "http://127.0.0.1:1", limits), t: t, answer: answer,
		totals: map[string]uint64{}, ends: map[string]uint64{},
	}
}

// answers changes the behavior of the receiver.
func (r *naiveReader) answers(a export.Attempt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = func() export.Attempt { return a }
}

func (r *naiveReader) describe() export.Exporter {
	x := r.Describe()
	x.Push, x.Watch = r, func(_ context.Context, link *export.Link) { link.SetReachable() }
	return x
}

// Encode creates several requests even for a few series.
func (r *naiveReader) Encode(c *export.Cycle, emit func(*export.Payload)) export.Encoded {
	short := *c
	short.Limit = 4000
	return r.Exporter.Encode(&short, emit)
}

func (r *naiveReader) Deliver(_ context.Context, p *export.Payload) export.Attempt {
	if r.delay != nil {
		time.Sleep(r.delay())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.answer()
	if a.Outcome == export.OutcomeAccepted {
		r.read(p.Body)
	}
	return a
}

// read decodes a request. It fails the test if a total decreases, or if a window ends before the
// last one.
func (r *naiveReader) read(body []byte) {
	visitPoints(r.t, []sent{{body, 0}}, cumulative, func(series, metric string, p *readPoint) {
		name := fmt.Sprint(series, p.Start)
		if metric == callsName {
			return
		}
		if *p.Count < r.totals[name] || p.End < r.ends[series] || p.Start >= p.End {
			r.t.Errorf("%s falls from %d to %d, or its window ends at %d, before %d", name, r.totals[name],
				*p.Count, p.End, r.ends[series])
		}
		r.totals[name], r.ends[series] = *p.Count, p.End
	})
}

func (r *naiveReader) received() (spans uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range r.totals {
		spans += n
	}
	return spans
}

// someSpans returns a cycle of random spans of a few origins.
func someSpans(rnd *rand.Rand) *aggregate.Sealed {
	c := newCycle()
	for o := range rnd.IntN(4) {
		origin := c.Origin(span.Origin{Service: "web", Host: fmt.Sprint(o)})
		for range 1 + rnd.IntN(8) {
			key := c.Key(origin, testKey(fmt.Sprint("op", rnd.IntN(20))))
			for range 1 + rnd.IntN(9) {
				c.Add(0, key, time.Second, rnd.Uint64()>>(20+rnd.IntN(44)), span.Flags(rnd.IntN(4)), 1)
			}
		}
	}
	return c.Seal()
}

// TestAccounting_RunningTotals sends random cycles to a receiver that fails, refuses and recovers, with
// limits for all series or for a few. At any moment the accounting balances, and no more spans are
// flushed than the largest accepted totals contain. At the end all of these are flushed, also
// with limits that are too small for all series.
func TestAccounting_RunningTotals(t *testing.T) {
	flushed := uint64(0)
	for seed := range uint64(24) {
		synctest.Test(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 5))
			few, slow := seed%3 == 0, seed%4 > 1
			limits := roomForAll
			switch {
			case few && seed%2 == 0:
				limits.Series = 1 + rnd.IntN(40)
			case few:
				limits.Idle = 2 // the windows of these cycles are a nanosecond long
			}
			behavior := rand.New(rand.NewPCG(seed, 6))
			r := readerOf(t, limits, nil)
			r.answer = func() export.Attempt {
				switch behavior.IntN(5) {
				case 0:
					return export.Attempt{Outcome: export.OutcomeNotYet, Silent: true, Err: errLost}
				case 1:
					return export.Attempt{Outcome: export.OutcomeRefused, Err: errors.New("out of order")}
				}
				return export.Attempt{}
			}
			if slow {
				r.delay = func() time.Duration { return time.Duration(behavior.IntN(5000)) * time.Millisecond }
			}
			f, err := export.New(export.Config{}, r.describe())
			if err != nil {
				t.Fatal(err)
			}
			accepted := uint64(0)
			check := func() export.Stats {
				synctest.Wait()
				s := f.Destinations()[0].Stats()
				sum := s.Flushed + s.Pending
				for _, n := range s.Unsent {
					sum += n
				}
				if sum != accepted || s.Flushed > r.received() || !few && sum != s.Flushed+s.Pending {
					t.Fatalf("seed %d: %+v of %d, and the receiver has %d", seed, s, accepted, r.received())
				}
				return s
			}
			for range 40 {
				sealed := someSpans(rnd)
				accepted += sealed.Spans()
				f.Accept(sealed)
				check()
				time.Sleep(time.Duration(rnd.IntN(3000)) * time.Millisecond)
				check()
			}
			for reason, n := range check().Unsent {
				if n > 0 {
					t.Errorf("seed %d: %d are unsent, %s", seed, n, reason)
				}
			}
			r.answers(export.Attempt{})
			f.Accept(newCycle().Seal())
			time.Sleep(time.Minute)
			check()
			f.Close(t.Context())
			if s := f.Destinations()[0].Stats(); s.Pending != 0 || s.Flushed > r.received() || !few &&
				s.Flushed != r.received() {
				t.Errorf("seed %d: at the end %+v, the receiver has %d", seed, s, r.received())
			} else {
				flushed += s.Flushed
			}
		})
	}
	if flushed == 0 {
		t.Error("nothing was flushed")
	}
}

// The receiver is unavailable whenever payloads are created, so the queue evicts a part of each
// copy. Between cycles it accepts the rest. After some cycles it has every series.
func TestRunningTotals_LongCopyStarvesNoSeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unreachable := export.Attempt{Outcome: export.OutcomeNotYet, Silent: true, Err: errLost}
		r := readerOf(t, roomForAll, func() export.Attempt { return unreachable })
		f, err := export.New(export.Config{
			MaxPayloadBytes: export.MinPayloadBytes,
			RetryBytes:      export.MinPayloadBytes,
		}, r.describe())
		if err != nil {
			t.Fatal(err)
		}
		d, c := f.Destinations()[0], newCycle()
		origin := c.Origin(testOrigin)
		const series = 600
		for i := range series {
			c.Add(0, c.Key(origin, testKey(fmt.Sprint("op", i))), 0, uint64(time.Millisecond), 0, 1)
		}
		f.Accept(c.Seal())
		for cycle := range 100 {
			r.answers(export.Attempt{})
			time.Sleep(time.Minute) // longer than any pause
			synctest.Wait()
			if r.received() == series {
				break
			} else if s := d.Stats(); cycle == 0 && r.received() == 0 || s.QueueBytes != 0 ||
				s.Payloads[export.ResultGivenUp] == 0 {
				t.Errorf("in cycle %d: %+v", cycle, s)
			}
			r.answers(unreachable)
			f.Accept(newCycle().Seal())
		}
		if r.received() != series {
			t.Errorf("the receiver has %d of %d spans", r.received(), series)
		}
		if s := d.Stats(); s.Flushed == 0 || s.Flushed+s.Pending != series {
			t.Errorf("%+v", s)
		}
		f.Close(t.Context())
	})
}

// A payload without a response is retried if it contains running totals, and counts once. Deltas
// are not retried.
func TestRunningTotals_RetriedAfterNoResponse(t *testing.T) {
	for _, temporality := range []Temporality{Delta, Cumulative} {
		var mu sync.Mutex
		tries := 0
		r := started(t, func(http.ResponseWriter, *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			if tries++; tries == 1 {
				panic(http.ErrAbortHandler)
			}
		})
		x := exporterTo(t, r.URL, func(c *Config) { c.Temporality = temporality })
		x.LimitTotals(roomForAll)
		f, d := startFlusher(t, x)
		f.Accept(testcycle.Spans(7))
		if temporality == Delta {
			eventually.True(t, "it is ambiguous", func() bool {
				return d.Stats().Unsent[export.Ambiguous] == 7
			})
			continue
		}
		eventually.True(t, "the second copy is accepted", func() bool { return d.Stats().Flushed == 7 })
		payloads, _ := r.got()
		if len(payloads) != 2 || string(payloads[0].body) != string(payloads[1].body) {
			t.Errorf("%d payloads", len(payloads))
		}
	}
}

// Rejected points are assumed to be those with the most undelivered spans, whatever their totals
// are.
func TestRunningTotals_RejectedPoints(t *testing.T) {
	var mu sync.Mutex
	answer := []byte(nil)
	r := started(t, func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = w.Write(answer)
	})
	f, d := startFlusher(t, cumulativeTo(t, r.URL, roomForAll))
	cycle := func(spans map[string]int) *aggregate.Sealed {
		c := newCycle()
		origin := c.Origin(testOrigin)
		for operation, n := range spans {
			key := c.Key(origin, testKey(operation))
			for range n {
				c.Add(0, key, 0, 1000, 0, 1)
			}
		}
		return c.Seal()
	}
	f.Accept(cycle(map[string]int{"many": 1000}))
	eventually.True(t, "the first cycle has arrived", func() bool { return d.Stats().Flushed == 1000 })
	mu.Lock()
	answer = partialBody(1, "too old")
	mu.Unlock()
	f.Accept(cycle(map[string]int{"many": 2, "four": 4, "nine": 9}))
	eventually.True(t, "the second has its outcome", func() bool { return d.Stats().Pending == 0 })
	if s := d.Stats(); s.Flushed != 1006 || s.Unsent[export.Rejected] != 9 {
		t.Errorf("%d flushed and %v unsent, want 1006 and 9", s.Flushed, s.Unsent)
	}
}

// Totals contain all counted spans, including those that tracers have counted without a bin.
func TestRunningTotals_ContainEverySpan(t *testing.T) {
	now := time.Now()
	sealed := testcycle.Merged(t, now, aggregate.Group{
		Key: testKey("op"), Bucket: now.Truncate(testcycle.Width).UnixNano(), Mapping: sketch.AgentMapping,
		Counts: aggregate.Counts{Spans: 9, Hits: 9, Errors: 2, Duration: 9e6},
		OK:     sketch.Bins{List: []sketch.Bin{{Index: 700, Spans: 4}}},
		Errors: sketch.Bins{List: []sketch.Bin{{Index: 700, Spans: 2}}},
	})
	requests, unencodable := encodeWith(testEncoder(withAll(), "", &roomForAll), sealed, 1<<20)
	if len(requests) != 1 || requests[0].spans != 9 || unencodable != 0 {
		t.Errorf("%d requests for %+v spans, %d in none", len(requests), requests[0].spans, unencodable)
	}
}

// The temporality is read from its variable according to the specification, in upper or lower case.
// Low memory means delta for these instruments.
func TestTemporality_FromVariable(t *testing.T) {
	for text, want := range map[string]Temporality{
		"":           "",
		"cumulative": Cumulative,
		"Cumulative": Cumulative,
		"delta":      Delta,
		" DELTA ":    Delta,
		"LowMemory":  Delta,
	} {
		v, err := ReadVariables(func(name string) string {
			return map[string]string{TemporalityVariable: text}[name]
		})
		if err != nil || v.Preference != want {
			t.Errorf("%q: %q, %v", text, v.Preference, err)
		}
	}
	if _, err := ReadVariables(func(name string) string {
		return map[string]string{TemporalityVariable: "sometimes"}[name]
	}); err == nil {
		t.Error("nonsense was read")
	}
}

// errLost is the error of a payload with an unknown outcome.
var errLost = errors.New("no answer")
