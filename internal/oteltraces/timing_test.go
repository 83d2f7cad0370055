package oteltraces

import (
	"syscall"
	"testing"
	"time"
)

// cpuTime is the processor's time that this process has used, since the clock on the
// wall tells little on a busy machine.
func cpuTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// measured reports what a span costs where each round has that many.
func measured(b *testing.B, spans, bytes int, round func()) {
	b.SetBytes(int64(bytes))
	b.ReportAllocs()
	before := cpuTime(b)
	for b.Loop() {
		round()
	}
	b.ReportMetric(float64(cpuTime(b)-before)/float64(spans*b.N), "cpu-ns/span")
	b.ReportMetric(float64(bytes)/float64(spans), "B/span")
}

// BenchmarkCount is counting alone, from a body to the batches that a ring would take.
func BenchmarkCount(b *testing.B) {
	const traces = 128 // 512 spans, which is what an SDK sends at once
	c, policy, body := NewCounter(), standard(), webRequest(traces)
	measured(b, 4*traces, len(body), func() {
		if err := c.Count(body, policy); err != nil {
			b.Fatal(err)
		}
	})
}

// BenchmarkKeep is what comes to it where one trace in twenty goes on.
func BenchmarkKeep(b *testing.B) {
	const traces = 128
	c, policy, body := NewCounter(), standard(), webRequest(traces)
	if err := c.Count(body, policy); err != nil {
		b.Fatal(err)
	}
	var left []byte
	measured(b, 4*traces, len(body), func() {
		left, _, _ = leftOf(&c.walked, left[:0], &Keeping{Share: 0.05, Errors: true, Slow: time.Second})
	})
}
