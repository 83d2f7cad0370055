package main

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"

	dto "github.com/prometheus/client_model/go"
)

// compare requests one form from both sides and returns an error if the responses differ. No
// library parses the OpenMetrics text format of such metrics, so for that form only the numbers
// of lines are compared.
func compare(f form, w *work, theirs *theirs) error {
	if f.accept == openMetrics {
		if ours, want := lines(w.exporter, f), lines(theirs.handler, f); ours != want {
			return fmt.Errorf("%d lines of ours, %d of theirs", ours, want)
		}
		f.accept = text // rendered by the same code
	}
	ours, err := seriesOf(families(w.exporter, f))
	if err != nil {
		return err
	}
	want, err := seriesOf(families(theirs.handler, f))
	if err != nil {
		return err
	}
	if len(ours) != 2*allSeries || len(want) != len(ours) {
		return fmt.Errorf("%d series of ours, %d of theirs", len(ours), len(want))
	}
	for name, metric := range want {
		if err := isLike(ours[name], metric); err != nil {
			return fmt.Errorf("series %s: %w", name, err)
		}
	}
	return nil
}

// seriesOf returns the metrics of all families, by name and labels.
func seriesOf(all []*dto.MetricFamily, err error) (map[string]*dto.Metric, error) {
	series := map[string]*dto.Metric{}
	for _, f := range all {
		for _, m := range f.Metric {
			slices.SortFunc(m.Label, func(a, b *dto.LabelPair) int {
				if a.GetName() < b.GetName() {
					return -1
				}
				return 1
			})
			name := f.GetName()
			for _, pair := range m.Label {
				name += fmt.Sprintf(" %s=%q", pair.GetName(), pair.GetValue())
			}
			series[name] = m
		}
	}
	return series, err
}

// lines returns the number of lines of a response.
func lines(handler http.Handler, f form) int {
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, f.request())
	return bytes.Count(answer.Body.Bytes(), []byte("\n"))
}

// isLike returns an error if two metrics differ by more than the rounding of sums that were
// added in another order and of durations that were not truncated.
func isLike(got, want *dto.Metric) error {
	if got == nil {
		return fmt.Errorf("not there")
	}
	if got.GetCounter().GetValue() != want.GetCounter().GetValue() {
		return fmt.Errorf("%v, want %v", got.Counter, want.Counter)
	}
	a, b := got.GetHistogram(), want.GetHistogram()
	const truncation = 1. / 512
	if a.GetSampleCount() != b.GetSampleCount() || a.GetSchema() != b.GetSchema() ||
		math.Abs(a.GetSampleSum()-b.GetSampleSum()) > truncation*b.GetSampleSum() {
		return fmt.Errorf("%v, want %v", a, b)
	}
	if x, y := native(a), native(b); !maps.Equal(x, y) {
		return fmt.Errorf("native buckets %v, want %v", x, y)
	}
	if x, y := classic(a), classic(b); !maps.Equal(x, y) {
		return fmt.Errorf("classic buckets %v, want %v", x, y)
	}
	return nil
}

// native returns the nonempty buckets of a native histogram.
func native(h *dto.Histogram) map[int32]int64 {
	buckets, place, deltas, spans := map[int32]int64{}, int32(0), h.GetPositiveDelta(), int64(0)
	for _, s := range h.GetPositiveSpan() {
		place += s.GetOffset()
		for range s.GetLength() {
			spans, deltas = spans+deltas[0], deltas[1:]
			if spans != 0 {
				buckets[place] = spans
			}
			place++
		}
	}
	return buckets
}

// classic returns the buckets with an upper bound, and the total count as +Inf.
func classic(h *dto.Histogram) map[float64]uint64 {
	buckets := map[float64]uint64{}
	for _, b := range h.GetBucket() {
		if !math.IsInf(b.GetUpperBound(), 1) {
			buckets[b.GetUpperBound()] = b.GetCumulativeCount()
		}
	}
	return buckets
}
