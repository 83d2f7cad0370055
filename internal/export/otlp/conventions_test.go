package otlp

import (
	"fmt"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/points"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/testutil/testcycle"
)

// manyKinds returns a cycle with spans of several metrics, and the number of its spans.
func manyKinds() (c *testcycle.Cycle, spans uint64) {
	c = newCycle()
	origin := c.Origin(span.Origin{Service: "shop", TracerVersion: span.OTLPVersion + "1.40.0"})
	for i := range 40 {
		for _, key := range []span.Key{
			{Kind: "server", HTTPMethod: "GET", HTTPEndpoint: fmt.Sprint("/", i), HTTPStatus: 200},
			{Kind: "client", PeerTags: []string{fmt.Sprint("db.namespace:", i), "db.system.name:redis"}},
			{Kind: "internal", Resource: fmt.Sprint("work ", i)},
		} {
			key.Service, key.Operation = "shop", "op"
			c.Add(0, c.Key(origin, key), 0, uint64(time.Millisecond), span.Error, 1)
			spans++
		}
	}
	return c, spans
}

// countsOf returns the numbers of durations by metric.
func countsOf(t *testing.T, requests []sent) map[string]uint64 {
	t.Helper()
	counts := map[string]uint64{}
	for _, r := range requests {
		for _, resource := range mustRead(t, r.body) {
			for name, m := range resource.Metrics {
				for _, p := range m.Points {
					if p.Count != nil {
						counts[name] += *p.Count
					}
				}
			}
		}
	}
	return counts
}

// TestConventions_RequestsWithinLimit checks that requests of any length contain each span in one metric.
func TestConventions_RequestsWithinLimit(t *testing.T) {
	for limit := 2000; limit < export.DefaultMaxPayloadBytes; limit *= 3 {
		c, spans := manyKinds()
		requests, unencodable := encodeWith(testEncoder(inDialect(points.Conventions, .01, 1), "", nil), c.Seal(), limit)
		for _, r := range requests {
			if len(r.body) > limit {
				t.Errorf("a request has %d bytes, at most %d", len(r.body), limit)
			}
			spans -= r.spans
		}
		if spans != 0 || unencodable != 0 {
			t.Errorf("%d bytes: %d spans are in no request, and %d are unencodable", limit, spans, unencodable)
		}
		want := "map[db.client.operation.duration:40 http.server.request.duration:40 traces.span.metrics.duration:40]"
		if got := fmt.Sprint(countsOf(t, requests)); got != want {
			t.Errorf("%d bytes: %s, want %s", limit, got, want)
		}
	}
}

// TestConventions_RunningTotals checks that the totals of each metric are those of all cycles, and that each metric has an
// overflow series beyond the limit on series.
func TestConventions_RunningTotals(t *testing.T) {
	wide, narrow := roomForAll, roomForAll
	narrow.Series, narrow.Metrics = 10, 9
	overflowing := testEncoder(inDialect(points.Conventions, .01, 1), "", &narrow)
	e := testEncoder(inDialect(points.Conventions, .01, 1), "", &wide)
	for cycle := range uint64(3) {
		c, _ := manyKinds()
		sealed := c.Seal()
		total := 40 * (cycle + 1)
		want := fmt.Sprint(map[string]uint64{
			"http.server.request.duration": total, "db.client.operation.duration": total, "traces.span.metrics.duration": total,
		})
		requests, _ := encodeWith(e, sealed, export.DefaultMaxPayloadBytes)
		if got := fmt.Sprint(countsOf(t, requests)); got != want {
			t.Errorf("after %d cycles: %s, want %s", cycle+1, got, want)
		}
		if cycle > 0 {
			continue // series end to make room for others
		}
		requests, _ = encodeWith(overflowing, sealed, export.DefaultMaxPayloadBytes)
		if got := fmt.Sprint(countsOf(t, requests)); got != want {
			t.Errorf("with an overflow: %s, want %s", got, want)
		}
	}
}
