package otlp

import (
	"slices"
	"sync/atomic"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/points"
	"github.com/spanstatsd/spanstatsd/internal/export/totals"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/testutil/testcycle"
)

// newCycle returns a cycle whose durations are counted so that histograms are exact.
func newCycle() *testcycle.Cycle { return &testcycle.Cycle{Grid: sketch.CommonGrid()} }

// sent is one decoded request.
type sent struct {
	body  []byte
	spans uint64
}

// tested is an encoder of either kind.
type tested struct {
	*encoding
	encoder
}

// testEncoder returns an encoder of deltas, or of running totals if there are limits.
func testEncoder(d points.Config, version string, limits *totals.Limits) tested {
	c := Config{
		Dialect: d.Dialect, Dimensions: d.Dimensions, Instance: d.Instance, Bounds: d.Bounds,
		Version: version,
	}
	if limits == nil {
		e := newEncoder(&c, totals.Limits{}).(*deltaEncoder)
		return tested{&e.encoding, e}
	}
	c.Temporality = Cumulative
	e := newEncoder(&c, *limits).(*totalsEncoder)
	return tested{&e.encoding, e}
}

// encoded numbers the cycles of encodeWith.
var encoded atomic.Uint64

// encodeWith encodes a cycle. For running totals, all requests of earlier cycles count as
// delivered.
func encodeWith(e encoder, sealed *aggregate.Sealed, limit int) (requests []sent, unencodable uint64) {
	var m export.Merger
	defer m.Forget()
	number := encoded.Add(1)
	c := &export.Cycle{
		Sealed: sealed, Rows: m.Merge(sealed), Limit: limit, Number: number, FirstUndelivered: number,
	}
	made := e.encode(c, func(r *request) {
		spans := r.spans
		for _, n := range r.undelivered {
			spans += n
		}
		requests = append(requests, sent{slices.Clone(r.body), spans})
	})
	return requests, made.Unencodable
}

// encodeAll encodes a cycle, and fails the test if a span does not fit in a request.
func encodeAll(t testing.TB, d points.Config, c *testcycle.Cycle) []byte {
	t.Helper()
	requests, unencodable := encodeWith(testEncoder(d, "1.2.3", nil), c.Seal(), export.DefaultMaxPayloadBytes)
	if len(requests) != 1 || unencodable != 0 {
		t.Fatalf("%d requests, and %d spans in none", len(requests), unencodable)
	}
	return requests[0].body
}

func withAll() points.Config { return ofInstance("") }

// ofInstance has all dimensions, and the instance ID of a daemon.
func ofInstance(instance string) points.Config {
	dimensions, err := points.ParseDimensions(points.AllDimensions)
	if err != nil {
		panic(err)
	}
	return points.Config{Dimensions: dimensions, Instance: instance}
}

// withBounds has all dimensions, and explicit buckets.
func withBounds(bounds ...float64) points.Config {
	c := ofInstance("i-1")
	c.Bounds = bounds
	return c
}

// inDialect is like withBounds, in a dialect.
func inDialect(dialect points.Dialect, bounds ...float64) points.Config {
	c := withBounds(bounds...)
	c.Dialect = dialect
	return c
}

var asDatadog = points.Config{Dialect: points.Datadog}

var testOrigin = span.Origin{Service: "web", Host: "h"}

func testKey(operation string) span.Key {
	return span.Key{Service: "web", Operation: operation, Resource: "r"}
}
