package prometheus

import (
	"cmp"
	"math"
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/export/points"
)

// maxShownEdges limits the edges of a Graph, which is for display.
const maxShownEdges = 60

// Graph is the service graph at the end of the last interval, for display. All edges are in a scrape.
type Graph struct {
	IntervalSeconds float64 `json:"interval_seconds"`
	Edges           []Edge  `json:"edges"` // most requests first
	NotShown        int     `json:"edges_not_shown"`
}

// Edge is a connection between two nodes of the service graph.
type Edge struct {
	Client         string  `json:"client"`
	Server         string  `json:"server"`
	ConnectionType string  `json:"connection_type"`
	Requests       float64 `json:"requests"` // number of requests in the last interval
	Failed         float64 `json:"failed"`   // number of failed requests in the last interval
	Total          float64 `json:"requests_total"`
	P95            float64 `json:"p95_seconds"` // 95th percentile of the durations of all requests
}

// Graph returns the service graph. It returns nil if there is none.
func (x *Exporter) Graph() *Graph {
	if x.config.Graph == nil {
		return nil
	}
	g := &Graph{Edges: []Edge{}}
	last := x.snapshot.Load()
	if last == nil {
		return g
	}
	g.IntervalSeconds = last.seconds
	for _, r := range last.edges {
		g.Edges = append(g.Edges, newEdge(r, last.cycle))
	}
	slices.SortStableFunc(g.Edges, func(a, b Edge) int { return cmp.Compare(b.Total, a.Total) })
	if len(g.Edges) > maxShownEdges {
		g.NotShown = len(g.Edges) - maxShownEdges
		g.Edges = g.Edges[:maxShownEdges]
	}
	return g
}

// newEdge returns the edge of a record. cycle is the last cycle.
func newEdge(r *record, cycle uint64) Edge {
	e := Edge{Total: r.calls, P95: r.quantile(.95)}
	for name, value := range points.Labels(r.labels) {
		switch name {
		case "client":
			e.Client = value
		case "server":
			e.Server = value
		case "connection_type":
			e.ConnectionType = value
		}
	}
	if r.cycle == cycle {
		e.Requests, e.Failed = r.newCalls, r.newErrors
	}
	return e
}

// quantile returns the duration in seconds that the given fraction of the spans does not exceed, rounded up to the
// upper bound of its bucket. It returns 0 if there are no spans.
func (r *record) quantile(fraction float64) float64 {
	rank := fraction * float64(r.spans)
	cumulative := float64(r.zeros) // spans in all buckets so far
	if cumulative >= rank {
		return 0
	}
	bucket := r.offset
	spansInBucket := int64(0)
	for _, difference := range r.deltas { // to the number of spans in the previous bucket
		spansInBucket += difference
		cumulative += float64(spansInBucket)
		if cumulative >= rank {
			break
		}
		bucket++
	}
	return upperBound(bucket, r.scale)
}

// upperBound returns the upper bound of a native bucket in seconds: 2 to the power of bucket / 2^scale.
func upperBound(bucket, scale int32) float64 {
	return math.Exp2(math.Ldexp(float64(bucket), -int(scale)))
}
