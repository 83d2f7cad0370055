package datadog_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/rules/datadog"
)

// cpuTime returns the CPU time of this process. Wall-clock time is not reliable on a busy machine.
func cpuTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// BenchmarkCount measures counting a body to batches of snapshots, with the agent's 44 peer tags.
func BenchmarkCount(b *testing.B) {
	for _, f := range examples {
		b.Run(f.name, func(b *testing.B) {
			const traces = 250
			c, w, body := datadog.NewCounter(), policyOf(b), f.body(b, traces)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			before := cpuTime(b)
			for b.Loop() {
				if err := c.Count(f.format, body, "go", true, w); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(cpuTime(b)-before)/float64(4*traces*b.N), "cpu-ns/span")
			b.ReportMetric(float64(len(body))/(4*traces), "B/span")
		})
	}
}
