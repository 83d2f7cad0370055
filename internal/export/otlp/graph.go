package otlp

import (
	"github.com/spanstatsd/spanstatsd/internal/aggregate/exemplars"
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/points"
	"github.com/spanstatsd/spanstatsd/internal/export/totals"
)

// graphEncoder encodes the service graph. Its metrics are cumulative, as those of the Collector's servicegraph
// connector, even if the metrics of spans are deltas. So a payload that is not delivered loses no call: the next one
// contains all of them.
type graphEncoder struct {
	calls     *writer // number of calls, and durations as the client measured them
	failures  *writer // number of failed calls, and the same durations under the name that Grafana queries
	reader    *points.Reader
	edges     *points.Running
	exemplars *exemplars.Table // nil disables them
	cycles    uint64           // number of encoded cycles
}

// newGraphEncoder returns an encoder for the service graph c.Graph. limits are those of the edges.
func newGraphEncoder(c *Config, limits totals.Limits) *graphEncoder {
	reader := points.NewReader(points.Config{Graph: c.Graph, Bounds: c.Bounds})
	g := &graphEncoder{
		calls:    newGraphWriter(c, points.GraphRequests, points.GraphClientDurations),
		failures: newGraphWriter(c, points.GraphFailures, points.GraphServerDurations),
		reader:   reader,
		edges:    points.NewRunning(reader, limits),

		exemplars: c.Exemplars,
	}
	g.failures.metrics[0].calls.includesZero = true // so that the rate of an edge's first failure is not missing
	return g
}

// newGraphWriter returns a writer of two metrics of the service graph, with the given names.
func newGraphWriter(c *Config, calls, durations string) *writer {
	metric := points.Metric{Calls: calls, Durations: durations, Bounds: c.Bounds}
	return newWriter([]points.Metric{metric}, c.Version, cumulative)
}

// encode adds the calls between services in a cycle, one export interval, to the running totals of the edges. It
// then encodes the totals of all edges as OTLP requests, and passes each request to emit.
func (g *graphEncoder) encode(c *export.Cycle, emit func(*request)) {
	g.calls.begin(c, emit)
	g.failures.begin(c, emit)
	g.addCycle(c)
	for _, resource := range g.edges.Resources() {
		g.calls.beginResource([]byte(resource.Encoded))
		g.failures.beginResource([]byte(resource.Encoded))
		for _, edge := range resource.Series {
			g.encodeEdge(edge)
		}
	}
	g.calls.endRequest()
	g.failures.endRequest()
}

// addCycle adds the calls of a cycle to the edges.
func (g *graphEncoder) addCycle(c *export.Cycle) {
	g.cycles++
	cycle := *c
	// The edges need no accounting of delivered spans, so all earlier cycles count as delivered.
	cycle.Number, cycle.FirstUndelivered = g.cycles, g.cycles
	start, end := int64(g.calls.window.start), int64(g.calls.window.end)
	g.reader.BeginCycle(g.exemplars.Seal(c.Cycle), start, end)
	g.edges.AddCycle(&cycle, start, end)
}

// encodeEdge writes the totals of an edge as two series: the number of all calls, and the number of failed calls. Both
// contain the durations of all calls, under different names, because Grafana queries both names. Both always fit in a
// request, because an edge is much shorter than export.MinPayloadBytes.
func (g *graphEncoder) encodeEdge(edge *totals.Series) {
	point := points.Point{
		Attributes: []byte(edge.Attributes), Calls: edge.Calls, Seconds: edge.Seconds,
		Durations: edge.Buckets, Classic: edge.Classic, Exemplar: g.edges.Slowest[edge],
	}
	start := uint64(edge.Start)
	g.calls.writePoint(&point, start)
	g.calls.endSeries()

	point.Calls = edge.Errors // point.Durations remains that of all calls
	g.failures.writePoint(&point, start)
	g.failures.endSeries()
}

// counts returns the counts of edges.
func (g *graphEncoder) counts() totals.Counts { return g.edges.Counts() }
