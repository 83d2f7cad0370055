package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/status"
)

// CallsQuery is a PromQL query for the sum of calls of all daemons, with the metric names of both dialects.
const CallsQuery = `sum({__name__=~"traces_span_metrics_calls_total|traces_spanmetrics_calls_total"})`

// maxPrometheusAnswer is the maximum length of a response of Prometheus. The response has only one number.
const maxPrometheusAnswer = 64 << 10

// PrometheusSubject is the subject of findings about Prometheus.
const PrometheusSubject = "prometheus"

// Arrival is the number of calls that Prometheus has stored.
type Arrival struct {
	HasCalls bool // whether Prometheus has series with calls of the last five minutes
	Calls    float64
	At       time.Time // time by the clock of Prometheus; zero if unknown
}

// queryResponse is a response of Prometheus to an instant query.
type queryResponse struct {
	Status, Error string
	Data          struct {
		Result []struct {
			Value [2]any // time, and value as a string
		}
	}
}

// AskPrometheus returns the number of calls, of all daemons, that the Prometheus at base has stored.
func AskPrometheus(ctx context.Context, base *url.URL) (Arrival, error) {
	query := base.JoinPath("api/v1/query")
	query.RawQuery = url.Values{"query": {CallsQuery}}.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, query.String(), nil)
	if err != nil {
		return Arrival{}, fmt.Errorf("query Prometheus: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return Arrival{}, fmt.Errorf("query Prometheus: %w", err)
	}
	defer response.Body.Close()
	var decoded queryResponse
	err = json.NewDecoder(io.LimitReader(response.Body, maxPrometheusAnswer)).Decode(&decoded)
	if err != nil || decoded.Status != "success" {
		return Arrival{}, fmt.Errorf("query Prometheus: %s responded with %s %s", base.Redacted(), response.Status, decoded.Error)
	}
	arrival := decoded.arrival()
	arrival.At, _ = http.ParseTime(response.Header.Get("Date"))
	return arrival, nil
}

// arrival returns the number of calls in a response to CallsQuery, which has at most one result.
func (r *queryResponse) arrival() Arrival {
	if len(r.Data.Result) == 0 {
		return Arrival{}
	}
	text, _ := r.Data.Result[0].Value[1].(string)
	calls, err := strconv.ParseFloat(text, 64)
	return Arrival{HasCalls: err == nil, Calls: calls}
}

// CheckArrival adds findings about whether exported spans have arrived at Prometheus. It compares their number with
// arrival.Calls, the sum of the calls metric in Prometheus. A larger sum is normal, because it includes the
// calls of all daemons. A smaller one is normal until the next scrape.
func (f *Findings) CheckArrival(s *status.Status, arrival Arrival) {
	const subject = PrometheusSubject
	exported := exportedToPrometheus(s)
	switch {
	case setting(s, "prometheus-dialect") == "conventions":
		f.ok(subject, "Prometheus responds; spans are not compared in the dialect conventions, because SDKs can send the "+
			"same metrics")
	case !arrival.HasCalls && exported > 0:
		f.add(Wrong, subject, "look for an error on the page of targets in Prometheus, and for relabeling that drops series",
			"%d spans were exported, but Prometheus has no calls", exported)
	case !arrival.HasCalls:
		f.add(Notice, subject, "send a span, and run the doctor again after the next scrape",
			"no span was exported yet, and Prometheus has no calls")
	case arrival.Calls < float64(exported):
		f.add(Notice, subject, "run the doctor again in a minute; if the difference stays, look for relabeling that drops series",
			"Prometheus has %.0f calls of all daemons, but this daemon alone has exported %d spans", arrival.Calls, exported)
	default:
		f.ok(subject, "Prometheus has %.0f calls of all daemons; this daemon has exported %d spans", arrival.Calls, exported)
	}
	ahead := arrival.At.Sub(s.At)
	if !arrival.At.IsZero() && ahead.Abs() > maxClockDiff {
		f.add(Wrong, subject, "synchronize both clocks, for example with NTP",
			"the clock of Prometheus differs by %.0f s from the clock of the daemon", ahead.Seconds())
	}
}

// exportedToPrometheus returns the number of exported spans that the calls metric in Prometheus should contain.
// Prometheus can scrape the daemon, or get the metric over OTLP. If both are configured, the result is the larger
// number of the two.
func exportedToPrometheus(s *status.Status) (spans uint64) {
	hasCallsMetric := setting(s, "otlp-dialect") == "spanmetrics" // CallsQuery finds no metric of another dialect
	for i := range s.Destinations {
		d := &s.Destinations[i]
		isScraped := d.Scraped != nil
		sendsCallsMetric := d.Name == "otlp" && hasCallsMetric
		if isScraped || sendsCallsMetric {
			spans = max(spans, d.Accounting.Flushed)
		}
	}
	return spans
}
