package demo

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Names of the metrics that the daemon exposes for scraping.
const (
	callsName    = "traces_span_metrics_calls_total"
	durationName = "traces_span_metrics_duration_seconds"
	failedStatus = "STATUS_CODE_ERROR"
)

const answerGrace = 30 * time.Second // for a busy machine

// get returns the body of a successful response.
func get(address string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), answerGrace)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", address, err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err //nolint:wrapcheck // it says what was asked
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("get %s: %s, %w", address, answer.Status, err)
	}
	return body, nil
}

// scrapedPage reads the daemon's metrics directly if no Prometheus is installed. Its rates
// cover the time between the last two totals; those of a Prometheus cover the last 20 seconds.
type scrapedPage struct {
	url    string
	now    map[[2]string]*route
	before map[[2]string]*route
	at     time.Time // time of before
}

// route is the sum of all series of one route.
type route struct {
	calls, failed float64
	buckets       map[float64]float64 // cumulative count by upper bound in seconds
}

func newScrapedPage(url string) *scrapedPage { return &scrapedPage{url: url, at: time.Now()} }

func (*scrapedPage) Close() error { return nil }

func (s *scrapedPage) total() (total Sent, err error) {
	body, err := get(s.url)
	if err != nil {
		return total, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(body))
	if err != nil {
		return total, fmt.Errorf("read %s: %w", s.url, err)
	}
	s.now = map[[2]string]*route{}
	for _, metric := range families[callsName].GetMetric() {
		one, of := metric.GetCounter().GetValue(), s.route(metric)
		of.calls += one
		total.Spans += uint64(one)
		if label(metric, "status_code") == failedStatus {
			of.failed += one
			total.Errors += uint64(one)
		}
	}
	for _, metric := range families[durationName].GetMetric() {
		histogram, of := metric.GetHistogram(), s.route(metric)
		total.Duration += uint64(math.Round(histogram.GetSampleSum() * 1e9))
		for _, bucket := range histogram.GetBucket() {
			of.buckets[bucket.GetUpperBound()] += float64(bucket.GetCumulativeCount())
		}
	}
	return total, nil
}

// route returns the route that a series belongs to.
func (s *scrapedPage) route(metric *dto.Metric) *route {
	name := [2]string{label(metric, "service_name"), label(metric, "http_route")}
	if s.now[name] == nil {
		s.now[name] = &route{buckets: map[float64]float64{}}
	}
	return s.now[name]
}

func label(metric *dto.Metric, name string) string {
	for _, pair := range metric.GetLabel() {
		if pair.GetName() == name {
			return pair.GetValue()
		}
	}
	return ""
}

func (s *scrapedPage) rates() (list []Rate, err error) {
	seconds := time.Since(s.at).Seconds()
	for name, one := range s.now {
		was := s.before[name]
		if was == nil {
			was = &route{}
		}
		if name[1] == "" || one.calls == was.calls {
			continue
		}
		list = append(list, Rate{
			Service: name[0], Route: name[1], Rate: (one.calls - was.calls) / seconds,
			Errors: (one.failed - was.failed) / seconds, P95: milliseconds(one.since(was, 0.95) * 1e9),
		})
	}
	s.before, s.at = s.now, time.Now()
	return list, nil
}

// since returns a quantile in seconds of the spans counted since an earlier reading. As in
// PromQL, it assumes that the spans of a bucket are evenly distributed between its bounds.
func (r *route) since(earlier *route, q float64) float64 {
	bounds := slices.Sorted(maps.Keys(r.buckets))
	if len(bounds) == 0 {
		return 0
	}
	rank := q * (r.buckets[bounds[len(bounds)-1]] - earlier.buckets[bounds[len(bounds)-1]])
	below, belowCount := 0.0, 0.0
	for _, bound := range bounds {
		count := r.buckets[bound] - earlier.buckets[bound]
		switch {
		case count < rank:
			below, belowCount = bound, count
		case math.IsInf(bound, 1):
			return below
		default:
			return below + (bound-below)*(rank-belowCount)/(count-belowCount)
		}
	}
	return below
}
