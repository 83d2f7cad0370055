package main

import (
	"fmt"
	"io"
	"runtime"

	"github.com/spanstatsd/spanstatsd/internal/rules/otel"
	"github.com/spanstatsd/spanstatsd/internal/span/ignore"
	"github.com/spanstatsd/spanstatsd/lab/bench/measure"
	"github.com/spanstatsd/spanstatsd/lab/bench/recorded"
)

// newLabeledReading parses with labels that an operator can configure: two dimensions, for
// which spans have many values and one value; an attribute filter that matches nothing; and the
// default resource attributes of OTLP statistics.
func newLabeledReading() (func(message []byte) (batches, error), error) {
	list, err := ignore.Parse([]string{"attribute.url.path=~^/static/"})
	if err != nil {
		return nil, fmt.Errorf("make filter: %w", err)
	}
	return readingOf(otel.Labels{
		Attributes: []string{"server.port", "user_agent.original"}, Ignore: list, Resource: otel.Identifying,
	})
}

// pairs is the number of paired turns. A turn is one request, or several small ones. Turns are
// short, so that a temporary slowdown of the machine affects both sides of a pair.
const (
	pairs     = 1000
	turnSpans = 512
)

// newReadingAsSent parses without deriving names of spans.
func newReadingAsSent() (func(message []byte) (batches, error), error) {
	return readingOf(otel.Labels{KeepNames: true})
}

// compareNames prints the cost of names by convention.
func compareNames(out io.Writer, requests []*recorded.Request) error {
	fmt.Fprintln(out, "| request | CPU ns a span, to the rings, names as sent | by convention | times |\n"+
		"| --- | --- | --- | --- |")
	return comparePairs(out, requests, reading{"otel, as sent", true, newReadingAsSent}, reading{"otel", true, newOTelReading})
}

// compareLabels prints the cost of configured labels.
func compareLabels(out io.Writer, requests []*recorded.Request) error {
	fmt.Fprintln(out, "| request | CPU ns a span, to the rings | with labels of one's own | times |\n"+
		"| --- | --- | --- | --- |")
	return comparePairs(out, requests, reading{"otel", true, newOTelReading}, reading{"otel, labeled", true, newLabeledReading})
}

// comparePairs prints the cost of two readings, as the median of paired turns.
func comparePairs(out io.Writer, requests []*recorded.Request, first, second reading) error {
	for _, r := range requests {
		plain, err := newOurs(first)
		if err != nil {
			return err
		}
		labeled, err := newOurs(second)
		if err != nil {
			return err
		}
		var without, with, times []float64
		for n := range pairs + pairs/10 {
			a, err := each(plain, r)
			if err != nil {
				return err
			}
			b, err := each(labeled, r)
			if err != nil {
				return err
			}
			if n >= pairs/10 { // excluded before, because keys and memory are new
				without, with, times = append(without, a), append(with, b), append(times, b/a)
			}
		}
		for _, o := range []*ours{plain, labeled} {
			if err := o.end(); err != nil {
				return err
			}
		}
		is := func(figure float64) float64 { return figure }
		fmt.Fprintf(out, "| `%s` | %.0f | %.0f | %.2f |\n", r.Name, measure.Median(without, is),
			measure.Median(with, is), measure.Median(times, is))
	}
	return nil
}

// each returns the CPU time per span of the thread that counts.
func each(o *ours, r *recorded.Request) (ns float64, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, err := threadCPU()
	if err != nil {
		return 0, err
	}
	spans := 0
	for ; spans < turnSpans; spans += r.Spans {
		if err := o.count(r); err != nil {
			return 0, err
		}
	}
	after, err := threadCPU()
	return float64(after-before) / float64(spans), err
}
