package main

import (
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/spanstatsd/spanstatsd/lab/bench/measure"
	"github.com/spanstatsd/spanstatsd/lab/bench/recorded"
	"golang.org/x/sys/unix"
)

// system is an implementation that counts requests.
type system struct {
	name  string
	count func(*recorded.Request) error
	end   func() error
}

// sample is the cost per span in one turn: CPU time of all threads, and of the thread that
// counts. In our daemon the latter ends at the rings.
type sample struct{ cpu, own, allocs float64 }

func cpuOf(s sample) float64    { return s.cpu }
func ownOf(s sample) float64    { return s.own }
func allocsOf(s sample) float64 { return s.allocs }

// newSystems returns all compared systems, ours first.
func newSystems() (all []system, err error) {
	for _, r := range readings {
		o, err := newOurs(r)
		if err != nil {
			return nil, err
		}
		all = append(all, system{"spanstatsd, `" + r.name + "`", o.count, o.end})
	}
	nothing := func() error { return nil }
	plain, err := newSpanMetrics(asItComes)
	if err != nil {
		return nil, err
	}
	labels, err := newSpanMetrics(withOurLabels)
	if err != nil {
		return nil, err
	}
	signals, err := newSignalToMetrics()
	if err != nil {
		return nil, err
	}
	return append(all, system{"spanmetrics connector, as it comes", plain, nothing},
		system{"spanmetrics connector, our labels", labels, nothing},
		system{"signal_to_metrics connector, our labels without name, kind, status", signals, nothing}), nil
}

// compareCounting prints one row per request and system.
func compareCounting(out io.Writer, o options, requests []*recorded.Request) error {
	fmt.Fprintln(out, "| request | spans | bytes a span | counted by | CPU ns a span | to the rings | "+
		"allocations | times ours |\n| --- | --- | --- | --- | --- | --- | --- | --- |")
	for _, r := range requests {
		systems, err := newSystems()
		if err != nil {
			return err
		}
		samples := make([][]sample, len(systems))
		for round := range o.rounds + 1 {
			for i, s := range systems {
				one, err := countFor(s, r, o.least)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", r.Name, s.name, err)
				}
				if round > 0 { // the first round is excluded, because its keys and memory are new
					samples[i] = append(samples[i], one)
				}
			}
		}
		ours := measure.Median(samples[0], cpuOf)
		for i, s := range systems {
			if err := s.end(); err != nil {
				return err
			}
			cpu, own := measure.Median(samples[i], cpuOf), ""
			if i < len(readings) {
				own = fmt.Sprintf("%.0f", measure.Median(samples[i], ownOf))
			}
			fmt.Fprintf(out, "| `%s` | %d | %d | %s | %.0f | %s | %.2f | %.1f |\n", r.Name, r.Spans,
				len(r.Body)/r.Spans, s.name,
				cpu, own, measure.Median(samples[i], allocsOf), cpu/ours)
		}
	}
	return nil
}

// countFor counts a request repeatedly for at least the given duration.
func countFor(s system, r *recorded.Request, least time.Duration) (sample, error) {
	runtime.GC() // collect the garbage of the previous system
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	spans, own := 0, time.Duration(0)
	cost, err := measure.Of(func() error {
		before, err := threadCPU()
		if err != nil {
			return err
		}
		for begun := time.Now(); spans == 0 || time.Since(begun) < least; spans += r.Spans {
			if err := s.count(r); err != nil {
				return err
			}
		}
		after, err := threadCPU()
		own = after - before
		return err
	})
	each := float64(spans)
	return sample{
		cpu: float64(cost.CPU) / each, own: float64(own) / each,
		allocs: float64(cost.Allocs) / each,
	}, err
}

// threadCPU returns the CPU time of the current thread.
func threadCPU() (time.Duration, error) {
	var now unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now)
	return time.Duration(now.Nano()), err
}
