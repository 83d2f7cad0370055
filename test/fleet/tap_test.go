package fleet

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	_ "google.golang.org/grpc/encoding/gzip" // in which the load balancer sends
)

// The metric names of the dialect spanmetrics, in OTLP and in Prometheus.
const (
	calls     = "traces.span.metrics.calls"
	durations = "traces.span.metrics.duration"
)

var prometheusNames = map[string]string{
	calls:     "traces_span_metrics_calls_total",
	durations: "traces_span_metrics_duration_seconds",
}

// tap is a proxy in front of a gateway that records each point with the gateway's response.
type tap struct {
	pmetricotlp.UnimplementedGRPCServer
	to     pmetricotlp.GRPCClient
	server *grpc.Server

	mu       sync.Mutex
	answered map[string]*stream // by metric and series
	requests int                // answered requests
	repeated int                // points that the gateway must have discarded as duplicates
	failed   int                // requests without a response
}

// stream is the sequence of points of a series that a gateway has received.
type stream struct {
	last       pcommon.Timestamp
	sums       []*distribution // running sums of the acknowledged deltas, one per delta
	unanswered []*distribution // unacknowledged deltas, which the gateway can have accepted
	overlaps   int             // points that start before the end of the previous point
}

// startTap listens at an address for a gateway at another address.
func startTap(t *testing.T, address, gateway string) *tap {
	t.Helper()
	conn, err := grpc.NewClient(gateway, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	const longest = 64 << 20
	server := grpc.NewServer(grpc.MaxRecvMsgSize(longest))
	p := &tap{to: pmetricotlp.NewGRPCClient(conn), server: server, answered: map[string]*stream{}}
	pmetricotlp.RegisterGRPCServer(server, p)
	go server.Serve(listener)
	t.Cleanup(func() { server.Stop(); conn.Close() })
	return p
}

// Export forwards a request and returns the gateway's response.
func (p *tap) Export(ctx context.Context, request pmetricotlp.ExportRequest) (pmetricotlp.ExportResponse,
	error,
) {
	// The points are read first, because the gateway has them at the time of its response.
	points := pointsOf(request.Metrics())
	response, err := p.to.Export(ctx, request)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.failed++
	} else {
		p.requests++
	}
	for _, point := range points {
		p.note(point, err == nil)
	}
	return response, err
}

// note records a point by the rule of deltatocumulative: points that don't end after the previous one
// are discarded.
func (p *tap) note(point point, isAnswered bool) {
	s := p.answered[point.stream]
	if s == nil {
		s = &stream{}
		p.answered[point.stream] = s
	}
	switch {
	case !isAnswered:
		s.unanswered = append(s.unanswered, point.delta)
	case point.end <= s.last:
		p.repeated++
	default:
		if point.start < s.last {
			s.overlaps++
		}
		s.last = point.end
		sum := newDistribution()
		if n := len(s.sums); n > 0 {
			sum.add(s.sums[n-1])
		}
		sum.add(point.delta)
		s.sums = append(s.sums, sum)
	}
}

// point is one delta of a stream. A number has a distribution without buckets.
type point struct {
	stream     string
	start, end pcommon.Timestamp
	delta      *distribution
}

// pointsOf returns a request's points of the two span metrics.
func pointsOf(metrics pmetric.Metrics) (points []point) {
	for _, r := range metrics.ResourceMetrics().All() {
		for _, s := range r.ScopeMetrics().All() {
			for _, m := range s.Metrics().All() {
				points = append(points, pointsOfMetric(r.Resource().Attributes(), m)...)
			}
		}
	}
	return points
}

func pointsOfMetric(resource pcommon.Map, m pmetric.Metric) (points []point) {
	add := func(attributes pcommon.Map, start, end pcommon.Timestamp, delta *distribution) {
		name := m.Name() + " " + series(labels(resource, attributes))
		points = append(points, point{name, start, end, delta})
	}
	switch m.Type() {
	case pmetric.MetricTypeSum:
		for _, p := range m.Sum().DataPoints().All() {
			d := newDistribution()
			d.count = uint64(p.IntValue())
			add(p.Attributes(), p.StartTimestamp(), p.Timestamp(), d)
		}
	case pmetric.MetricTypeExponentialHistogram:
		for _, p := range m.ExponentialHistogram().DataPoints().All() {
			add(p.Attributes(), p.StartTimestamp(), p.Timestamp(), fromPoint(p))
		}
	}
	return points
}

// labels returns the labels that Prometheus assigns to an OTLP series, as far as they are needed to
// identify it.
func labels(resource, attributes pcommon.Map) map[string]string {
	all := map[string]string{}
	for _, from := range []pcommon.Map{resource, attributes} {
		for name, value := range from.All() {
			all[strings.ReplaceAll(name, ".", "_")] = value.AsString()
		}
	}
	all["job"] = all["service_name"]
	return all
}
