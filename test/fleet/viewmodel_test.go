package fleet

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/client"
)

// round is a number of equal spans that are published together.
type round struct {
	pod        int
	key        client.Key
	name, kind string
	isError    bool
	took       time.Duration
	times      int
}

// rounds is the traffic for testing views. It contains errors, two services, operations common to both,
// several span kinds, and durations in widely separated buckets.
var rounds = []round{
	{0, cart, "GET /cart", "SPAN_KIND_SERVER", false, 3 * time.Millisecond, 20},
	{0, cart, "GET /cart", "SPAN_KIND_SERVER", false, 30 * time.Millisecond, 8},
	{0, cart, "GET /cart", "SPAN_KIND_SERVER", false, 300 * time.Millisecond, 3},
	{0, orders, "POST /orders", "SPAN_KIND_SERVER", false, 70 * time.Millisecond, 9},
	{0, orders, "POST /orders", "SPAN_KIND_SERVER", true, 1200 * time.Millisecond, 4},
	{0, query, "sql.query", "SPAN_KIND_CLIENT", false, 5 * time.Millisecond, 17},
	{1, cart, "GET /cart", "SPAN_KIND_SERVER", false, 150 * time.Millisecond, 7},
	{1, cart, "GET /cart", "SPAN_KIND_SERVER", true, 3 * time.Second, 2},
	{1, orders, "POST /orders", "SPAN_KIND_SERVER", false, 90 * time.Millisecond, 6},
}

// bounds are the bucket bounds of the spanmetrics connector, in seconds.
var bounds = []float64{.002, .004, .006, .008, .01, .05, .1, .2, .4, .8, 1, 1.4, 2, 5, 10, 15}

// publishRounds publishes the traffic several times and returns the number of spans.
func publishRounds(t *testing.T, d *daemon, times int) (spans int) {
	t.Helper()
	for range times {
		batches := make([][]client.Snapshot, d.origins())
		for _, r := range rounds {
			key := r.key
			key.Service = d.origin(r.pod).Service
			for range r.times {
				batches[r.pod] = append(batches[r.pod], client.Snapshot{
					Key: key, Duration: r.took, End: time.Now(), Error: r.isError, TopLevel: true,
				})
			}
		}
		for pod, batch := range batches {
			if spans += len(batch); !d.clients[pod].Publish(batch) {
				t.Fatalf("the client refused spans: %+v", d.clients[pod].Stats())
			}
		}
	}
	return spans
}

// labels returns the labels of a round's spans, under each name that a view uses.
func (r *round) labels(d *daemon) map[string]string {
	service, status := d.origin(r.pod).Service, "STATUS_CODE_UNSET"
	if r.isError {
		status = "STATUS_CODE_ERROR"
	}
	labels := map[string]string{
		"service": service, "service_name": service, "job": service, "telemetry_sdk_language": "go",
		"span_name": r.name, "span_kind": r.kind, "status_code": status,
	}
	if r.kind == "SPAN_KIND_CLIENT" { // the only spans of the traffic with an edge in the service graph
		labels["client"], labels["server"], labels["connection_type"] = service, "sql", "database"
	}
	return labels
}

// group names a group by the values of its labels.
func group(labels map[string]string, by []string) string {
	values := make([]string, len(by))
	for i, name := range by {
		values[i] = labels[name]
	}
	return strings.Join(values, separator)
}

// counted is the number and duration of one group's spans in the traffic.
type counted struct {
	spans, errors, seconds float64
	buckets                []float64
}

// count groups the spans of the traffic that match the condition.
func count(d *daemon, by []string, where map[string][]string) map[string]*counted {
	groups := map[string]*counted{}
	for _, r := range rounds {
		labels, isIn := r.labels(d), true
		for name, values := range where {
			isIn = isIn && slices.Contains(values, labels[name])
		}
		if !isIn {
			continue
		}
		name := group(labels, by)
		if groups[name] == nil {
			groups[name] = &counted{buckets: make([]float64, len(bounds)+1)}
		}
		g, n := groups[name], float64(r.times)
		g.spans, g.seconds = g.spans+n, g.seconds+n*r.took.Seconds()
		if r.isError {
			g.errors += n
		}
		at, _ := slices.BinarySearch(bounds, r.took.Seconds())
		g.buckets[at] += n
	}
	return groups
}

// quantile returns the quantile computed from the buckets like in PromQL, with linear interpolation.
func (c *counted) quantile(q float64) float64 {
	rank, below, lower := q*c.spans, 0.0, 0.0
	for i, n := range c.buckets {
		if below+n >= rank && n > 0 {
			return lower + (bounds[i]-lower)*(rank-below)/n
		}
		below, lower = below+n, bounds[i]
	}
	return math.NaN()
}
