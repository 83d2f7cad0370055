package bench_test

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/rules/otel"
	"github.com/spanstatsd/spanstatsd/internal/span/measure"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
	"github.com/spanstatsd/spanstatsd/internal/testutil/otlptest"
)

// ordersRequest returns a request with calls of a few routes, each with two numeric attributes.
func ordersRequest(spans int) []byte {
	var all []otlptest.Span
	now := uint64(time.Now().UnixNano())
	for i := range spans {
		all = append(all, otlptest.Span{
			Trace: uint64(i + 1), ID: uint64(i + 1), Name: "POST /orders", Kind: spantable.KindServer,
			Start: now - uint64(i)*1e6, End: now, Code: -1,
			Attributes: []otlptest.Attribute{
				{"http.request.method", "POST"},
				{"http.route", fmt.Sprint("/orders/", i*7%5)},
				{"url.path", "/orders"},
				{"url.scheme", "https"},
				{"server.address", "shop.example.com"},
				{"http.response.status_code", 201},
				{"network.protocol.version", "1.1"},
				{"thread.name", "http-nio-8080-exec-7"},
				{"order.items", 1 + i*37%90},
				{"http.request.body.size", 10 + i*11%3000},
			},
		})
	}
	return otlptest.SDKRequest(all...)
}

// BenchmarkValues measures the CPU time, of publishers and drainers, for spans without measures, and with two values per
// span. The difference of the figures per span, divided by two, is the cost of a value.
func BenchmarkValues(b *testing.B) {
	for _, measures := range []string{"", "items=order.items size=http.request.body.size,By"} {
		parsed, err := measure.Parse(measures)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprint("values=", len(parsed)), func(b *testing.B) { benchmarkValues(b, parsed) })
	}
}

func benchmarkValues(b *testing.B, measures []measure.Measure) {
	const spans = 512
	config := aggregate.DefaultConfig()
	config.Measures, config.Deliver = len(measures), func(s *aggregate.Sealed) {
		s.Release()
		s.Delivery.Resolve(nil)
	}
	aggregator, err := aggregate.New(config)
	if err != nil {
		b.Fatal(err)
	}
	aggregator.Start()
	defer aggregator.Stop()
	admission := admit.DefaultConfig()
	admission.Aggregator, admission.Measures = aggregator, len(measures)
	publishers, err := admit.New(admission)
	if err != nil {
		b.Fatal(err)
	}
	counter, policy := otel.NewCounter(), otel.NewPolicy(otel.Labels{Measures: slices.Clone(measures)})
	body := ordersRequest(spans)
	var publisher *admit.Publisher
	before := cpuTime(b)
	for b.Loop() {
		if err := counter.Count(body, policy); err != nil {
			b.Fatal(err)
		}
		for origin, batch := range counter.Batches {
			if publisher == nil {
				publisher = publishers.NewPublisher(origin)
				defer publisher.Close()
			}
			isPublished := false
			for !isPublished { // until the ring has enough free slots
				_, isPublished = publishers.PublishTogether(func() {}, admit.BatchPart{Publisher: publisher, Batch: batch})
				if !isPublished {
					time.Sleep(100 * time.Microsecond)
				}
			}
		}
		counter.Release()
	}
	b.ReportMetric(float64(cpuTime(b)-before)/float64(spans*b.N), "cpu-ns/span")
}

// cpuTime returns the CPU time of the process so far.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
