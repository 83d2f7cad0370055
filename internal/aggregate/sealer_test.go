package aggregate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// TestSealer_24Hours runs the cycles for 24 hours of an injected clock: 8640 seals, each
// at a multiple of ten seconds, and nothing that grows.
func TestSealer_24Hours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seals, spans := 0, uint64(0)
		var keys int
		config := testConfig(func(s *Sealed) {
			seals++
			spans += s.Spans()
			keys = max(keys, len(s.Keys))
			if late := s.End.UnixNano() % 10e9; late != 0 && seals <= 8640 {
				t.Errorf("seal %d is %d ns off its boundary", seals, late)
			}
			s.Delivery.Resolve(nil)
			s.Release()
		})
		a, err := New(config)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second) // start off the boundary
		a.Start()
		synctest.Wait()
		started, goroutines := time.Now(), runtime.NumGoroutine()
		r := a.NewGuard()
		sent := uint64(0)
		for time.Since(started) < 24*time.Hour-97*time.Second {
			time.Sleep(97 * time.Second)
			publish(a, r, span.Origin{Service: "shop"}, span.Key{Resource: time.Now().String()},
				Slot{Duration: 5, End: time.Now().UnixNano(), Weight: 1})
			sent++
			synctest.Wait()
		}
		time.Sleep(time.Until(started.Add(24 * time.Hour)))
		synctest.Wait()
		if seals != 8640 {
			t.Errorf("%d seals in 24 hours, want 8640", seals)
		}
		if n := runtime.NumGoroutine(); n > goroutines {
			t.Errorf("%d goroutines, %d at the start", n, goroutines)
		}
		r.Close()
		a.Stop()
		if spans != sent || keys != 1 {
			t.Errorf("%d spans sealed of %d, at most %d keys in a cycle", spans, sent, keys)
		}
	})
}

// TestReport_Spacing asks for many reports and expects them to share seals: one a
// second, three an interval, and the rest at its end.
func TestReport_Spacing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seals atomic.Int64
		a, err := New(testConfig(func(s *Sealed) {
			seals.Add(1)
			s.Delivery.Resolve(nil)
			s.Release()
		}))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		a.Start()
		for range 50 {
			go a.RequestFlush(t.Context())
			time.Sleep(100 * time.Millisecond)
		}
		synctest.Wait()
		if n := seals.Load(); n != maxFlushes {
			t.Errorf("%d seals for 50 requests in 5 seconds, want %d", n, maxFlushes)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if n := seals.Load(); n != maxFlushes+1 {
			t.Errorf("%d seals at the end of the interval, want one more", n)
		}
		a.Stop()
		if _, err := a.RequestFlush(context.Background()); !errors.Is(err, ErrStopped) {
			t.Errorf("a report after the stop gave %v", err)
		}
	})
}

// TestReport_SealedAcrossBoundary requests a flush just before the end of an interval, and lets the exporters
// take so long that the interval ends meanwhile. The spans after the flush are exported at the end of
// that interval, instead of the next one.
func TestReport_SealedAcrossBoundary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seals []time.Time
		a, err := New(testConfig(func(s *Sealed) {
			seals = append(seals, s.End)
			if len(seals) == 1 {
				time.Sleep(20 * time.Millisecond)
			}
			s.Delivery.Resolve(nil)
			s.Release()
		}))
		if err != nil {
			t.Fatal(err)
		}
		a.Start()
		boundary := time.Now().Truncate(10 * time.Second).Add(10 * time.Second)
		time.Sleep(time.Until(boundary.Add(-10 * time.Millisecond)))
		if _, err := a.RequestFlush(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if len(seals) != 2 || seals[1].Before(boundary) {
			t.Errorf("sealed at %v, want the second seal right after %v", seals, boundary)
		}
		a.Stop()
	})
}

// TestReport_CoversPublishedSpans publishes and reports, and finds the span in
// the seal that the report's promise stands for.
func TestReport_CoversPublishedSpans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		total := uint64(0)
		a, err := New(testConfig(func(s *Sealed) {
			total += s.Spans()
			s.Delivery.Resolve(errors.New("the agent refused"))
			s.Release()
		}))
		if err != nil {
			t.Fatal(err)
		}
		a.Start()
		r := a.NewGuard()
		for i := range uint64(5) {
			publish(a, r, span.Origin{}, span.Key{Resource: "r"}, Slot{End: time.Now().UnixNano(), Weight: 1})
			reported, err := a.RequestFlush(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := reported.Wait(t.Context()); err == nil || err.Error() != "the agent refused" {
				t.Errorf("the promise was resolved with %v", err)
			}
			if total != i+1 {
				t.Errorf("%d spans sealed after report %d", total, i)
			}
		}
		r.Close()
		a.Stop()
	})
}

// TestReport_NotAnsweredByEarlierSeal has a seal wait for a publisher that is still
// inside its cycle, while another publishes into the next one and asks for a report: that
// is answered when the next one is delivered, and not by the seal in progress.
func TestReport_NotAnsweredByEarlierSeal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		total := uint64(0)
		a, err := New(testConfig(func(s *Sealed) {
			total += s.Spans()
			s.Delivery.Resolve(nil)
			s.Release()
		}))
		if err != nil {
			t.Fatal(err)
		}
		a.Start()
		slow, quick := a.NewGuard(), a.NewGuard()
		first := slow.Enter().Number()
		for a.cycles.current.Load() == first {
			time.Sleep(time.Second)
		}
		publish(a, quick, span.Origin{}, span.Key{Resource: "r"}, Slot{End: time.Now().UnixNano(), Weight: 1})
		time.AfterFunc(time.Millisecond, slow.Exit)
		reported, err := a.RequestFlush(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := reported.Wait(t.Context()); err != nil || total != 1 {
			t.Errorf("the report is answered with %d spans delivered: %v", total, err)
		}
		slow.Close()
		quick.Close()
		a.Stop()
	})
}

// TestReport_WaitsForEarlierCycle publishes at the end of an interval and asks for a
// report in the next one: its promise is kept when the first cycle's is, too.
func TestReport_WaitsForEarlierCycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var spans []uint64
		var deliveries []*Delivery
		a, err := New(testConfig(func(s *Sealed) {
			spans, deliveries = append(spans, s.Spans()), append(deliveries, s.Delivery)
			s.Release()
		}))
		if err != nil {
			t.Fatal(err)
		}
		a.Start()
		r := a.NewGuard()
		publish(a, r, span.Origin{}, span.Key{Resource: "r"}, Slot{End: time.Now().UnixNano(), Weight: 1})
		time.Sleep(time.Until(nextBoundary(time.Now(), 10*time.Second)) + time.Millisecond)
		reported, err := a.RequestFlush(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		reports := make(chan error, 1)
		go func() { reports <- reported.Wait(t.Context()) }()
		if !slices.Equal(spans, []uint64{1, 0}) {
			t.Errorf("%d spans were sealed", spans)
		}
		deliveries[1].Resolve(nil)
		synctest.Wait()
		if len(reports) != 0 {
			t.Error("a report was called delivered while the span before it was on its way")
		}
		deliveries[0].Resolve(errors.New("the agent refused"))
		if err := <-reports; err == nil {
			t.Error("a report was called delivered though the agent refused the span before it")
		}
		if reported, err = a.RequestFlush(t.Context()); err != nil || len(reported) != 1 {
			t.Errorf("a later report waits for %d cycles, %v", len(reported), err)
		}
		r.Close()
		a.Stop()
	})
}

// TestReport_RenewsNoBudget asks for reports and floods after each: budgets, rows and
// key ids end with the interval only.
func TestReport_RenewsNoBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		resources := map[string]bool{} // of one interval
		config := testConfig(func(s *Sealed) {
			for _, table := range s.tables {
				for i := range table.Len() {
					resources[s.Keys[table.Part(i).Key].Key.Resource] = true
				}
			}
			s.Delivery.Resolve(nil)
			s.Release()
		})
		config.Budgets[span.LabelResource] = 20 // half of it for values that come once
		config.Masking = registry.MaskNever     // numbers alone would all have one name
		a, err := New(config)
		if err != nil {
			t.Fatal(err)
		}
		a.Start()
		r := a.NewGuard()
		n := 0
		flood := func() (first registry.Admission) {
			for i := range 25 {
				n++
				admission, _, _ := publish(a, r, span.Origin{}, span.Key{Resource: fmt.Sprint(n)},
					Slot{End: time.Now().UnixNano(), Weight: 1})
				if i == 0 {
					first = admission
				}
			}
			return first
		}
		time.Sleep(time.Until(nextBoundary(time.Now(), 10*time.Second)) + time.Millisecond)
		clear(resources)
		if first := flood(); first.Collapsed != 0 {
			t.Errorf("the first key of an interval got %+v", first)
		}
		for range maxFlushes {
			time.Sleep(minFlushSpacing)
			reported, err := a.RequestFlush(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := reported.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			if first := flood(); first.Collapsed != 1<<span.LabelResource {
				t.Errorf("the first key after a report got %+v", first)
			}
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if len(resources) != 10+1 {
			t.Errorf("%d resources of an interval were handed on, for a budget of 20: %v", len(resources),
				resources)
		}
		if first := flood(); first.Collapsed != 0 || first.ID != 0 {
			t.Errorf("the first key of the next interval got %+v", first)
		}
		r.Close()
		a.Stop()
	})
}

// TestSeal_WaitsForGuards holds a guard inside a cycle over its boundary.
func TestSeal_WaitsForGuards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seals atomic.Int64
		a, err := New(testConfig(func(s *Sealed) {
			seals.Add(1)
			s.Release()
		}))
		if err != nil {
			t.Fatal(err)
		}
		a.Start()
		r, other := a.NewGuard(), a.NewGuard()
		cycle := r.Enter()
		time.Sleep(11 * time.Second)
		if seals.Load() != 0 {
			t.Fatal("a cycle was sealed with a guard inside it")
		}
		if next := other.Enter(); next.Number() != cycle.Number()+1 {
			t.Errorf("others entered cycle %d while %d waits to be sealed", next.Number(), cycle.Number())
		}
		other.Exit()
		r.Exit()
		synctest.Wait()
		if n := seals.Load(); n != 1 {
			t.Errorf("%d seals after the guard has left", n)
		}
		r.Close()
		other.Close()
		a.Stop()
		if r.Enter() != nil {
			t.Error("entered a cycle after the last")
		}
	})
}

// TestCycle_WaitsForItsMemory: while the flush still reads a cycle, the next but one does
// not begin in its memory.
func TestCycle_WaitsForItsMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sealed []*Sealed
		a, err := New(testConfig(func(s *Sealed) { sealed = append(sealed, s) }))
		if err != nil {
			t.Fatal(err)
		}
		a.Start()
		time.Sleep(31 * time.Second)
		synctest.Wait()
		if len(sealed) != 1 {
			t.Fatalf("%d cycles were sealed while the first was read", len(sealed))
		}
		sealed[0].Release()
		synctest.Wait()
		if len(sealed) != 2 {
			t.Fatalf("%d cycles were sealed when the first was released", len(sealed))
		}
		sealed[1].Release()
		a.Stop()
	})
}

// TestSettled_FirstUnsettledCycle: cycles settle in any order, with or without an error. Settled
// returns the first unsettled cycle.
func TestSettled_FirstUnsettledCycle(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 9))
	a := &Aggregator{settled: newSettledCycles()}
	had := map[uint64]bool{}
	for _, cycle := range rnd.Perm(200) {
		number := uint64(cycle)
		before, changed := a.Settled()
		delivery := NewDelivery()
		delivery.onSettled = func() { a.settled.add(number) }
		delivery.Resolve(errors.New("refused"))
		had[number] = true
		want := uint64(0)
		for had[want] {
			want++
		}
		got, _ := a.Settled()
		select {
		case <-changed:
			if got == before {
				t.Fatalf("a change was reported, from %d to %d", before, got)
			}
		default:
			if got != before {
				t.Fatalf("changed from %d to %d without a report", before, got)
			}
		}
		if got != want {
			t.Fatalf("settled before %d, want %d", got, want)
		}
	}
	if len(a.settled.settledEarly) != 0 {
		t.Errorf("%d cycles are still remembered", len(a.settled.settledEarly))
	}
}
