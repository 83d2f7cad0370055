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

// Arrival is the result of AskPrometheus.
type Arrival struct {
	Has   bool // whether Prometheus has series with calls of the last five minutes
	Calls float64
	At    time.Time // time by the clock of Prometheus
}

// AskPrometheus queries the calls that have arrived at a Prometheus.
func AskPrometheus(ctx context.Context, base *url.URL) (a Arrival, err error) {
	query := base.JoinPath("api/v1/query")
	query.RawQuery = url.Values{"query": {CallsQuery}}.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, query.String(), nil)
	if err != nil {
		return a, fmt.Errorf("query Prometheus: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return a, fmt.Errorf("query Prometheus: %w", err)
	}
	defer response.Body.Close()
	var answer struct {
		Status, Error string
		Data          struct {
			Result []struct{ Value [2]any }
		}
	}
	err = json.NewDecoder(io.LimitReader(response.Body, maxPrometheusAnswer)).Decode(&answer)
	if err != nil || answer.Status != "success" {
		return a, fmt.Errorf("query Prometheus: %s responded with %s %s", base.Redacted(), response.Status, answer.Error)
	}
	if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		a.At = date
	}
	for _, sum := range answer.Data.Result {
		text, _ := sum.Value[1].(string)
		a.Calls, err = strconv.ParseFloat(text, 64)
		a.Has = err == nil
	}
	return a, nil
}

// Arrived compares the calls in Prometheus with the spans exported by the daemon. Prometheus can
// have more calls, because it scrapes other daemons as well, and because a span can represent
// several calls. It can have fewer because of spans counted since the last scrape, and of series
// that have ended.
func (f *Findings) Arrived(s *status.Status, a Arrival) {
	const subject = PrometheusSubject
	flushed := uint64(0)
	for i := range s.Destinations {
		d := &s.Destinations[i]
		if d.Scraped != nil || d.Name == "otlp" && setting(s, "otlp-dialect") == "spanmetrics" {
			flushed = max(flushed, d.Accounting.Flushed)
		}
	}
	switch {
	case !a.Has && flushed > 0:
		f.add(Wrong, subject, "look for an error on the page of targets in Prometheus, and for relabeling that drops series",
			"%d spans were exported, but Prometheus has no calls", flushed)
	case !a.Has:
		f.add(Notice, subject, "send a span, and run the doctor again after the next scrape",
			"no span was exported yet, and Prometheus has no calls")
	case a.Calls < float64(flushed):
		f.add(Notice, subject, "run the doctor again in a minute; if the difference stays, look for relabeling that drops series",
			"Prometheus has %.0f calls of all daemons, but this daemon alone has exported %d spans", a.Calls, flushed)
	default:
		f.ok(subject, "Prometheus has %.0f calls of all daemons; this daemon has exported %d spans", a.Calls, flushed)
	}
	if ahead := a.At.Sub(s.At); !a.At.IsZero() && ahead.Abs() > maxClockDiff {
		f.add(Wrong, subject, "synchronize both clocks, for example with NTP",
			"the clock of Prometheus differs by %.0f s from the clock of the daemon", ahead.Seconds())
	}
}
