package traces

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	pb "github.com/DataDog/datadog-agent/pkg/proto/pbgo/trace"
	"github.com/DataDog/datadog-agent/pkg/trace/stats"
	"github.com/spanstatsd/spanstatsd/client/rules"
	datadog "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	dd "github.com/spanstatsd/spanstatsd/internal/rules/datadog"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/tinylib/msgp/msgp"
)

var additionalKeys = []string{"region", "tier"}

// linked returns the group that the concentrator makes of a span if used like in dd-trace-go; nil if
// the span is not counted.
func linked(t *testing.T, s *pb.Span) *pb.ClientGroupedStats {
	t.Helper()
	c := stats.NewSpanConcentrator(&stats.SpanConcentratorConfig{
		ComputeStatsBySpanKind: true,
		BucketInterval:         10e9,
	}, time.Now())
	statSpan, ok := c.NewStatSpanWithConfig(stats.StatSpanConfig{
		Service: s.Service, Resource: s.Resource, Name: s.Name, Type: s.Type, ParentID: s.ParentID,
		Start: s.Start, Duration: s.Duration, Error: s.Error, Meta: s.Meta, Metrics: s.Metrics,
		PeerTags: peerKeys, AdditionalMetricTagKeys: additionalKeys, HTTPMethod: s.Meta["http.method"],
		HTTPEndpoint: s.Meta["http.endpoint"],
	})
	if !ok {
		return nil
	}
	c.AddSpan(statSpan, stats.PayloadAggregationKey{Env: "test"}, "", nil, s.Meta["_dd.origin"])
	payloads := c.Flush(time.Now().UnixNano(), true)
	if len(payloads) != 1 || len(payloads[0].Stats) != 1 || len(payloads[0].Stats[0].Stats) != 1 {
		t.Fatalf("one span became %v", payloads)
	}
	return payloads[0].Stats[0].Stats[0]
}

// labelsOf returns the labels of a group, including additional tags.
func labelsOf(g *pb.ClientGroupedStats) string {
	return fmt.Sprintf("%q", []any{
		g.Service, g.Name, g.Resource, g.Type, g.SpanKind, fmt.Sprint(g.HTTPStatusCode),
		fmt.Sprint(g.Synthetics), fmt.Sprint(int(g.IsTraceRoot)),
		g.GRPCStatusCode, g.ServiceSource, g.PeerTags, g.HTTPMethod, g.HTTPEndpoint, g.AdditionalMetricTags,
		fmt.Sprint(g.TopLevelHits, g.Hits),
	})
}

// TestTracerLabels_SameAsConcentrator checks that, with tracer labels, the daemon counts a span of
// dd-trace-go if the tracer's concentrator counts it, and under the same labels.
func TestTracerLabels_SameAsConcentrator(t *testing.T) {
	rnd := rand.New(rand.NewPCG(21, 7))
	policy, ok := dd.NewPolicy(peerKeys, rules.Kinds, nil,
		dd.Labels{OfTracer: true, AdditionalTags: additionalKeys})
	if !ok {
		t.Fatal("refused")
	}
	c := dd.NewCounter()
	counted, added := 0, 0
	for range 20_000 {
		s := randomSpan(rnd)
		s.SpanID, s.TraceID = 7, 9
		for key, of := range map[string][]string{
			"http.method": {"GET", ""}, "http.endpoint": {"/a", ""}, "http.route": {"/b"},
			"_dd.svc_src": {"m"}, "_dd.origin": {"synthetics", "synthetics-browser", "rum"},
			"region": {"eu", "", strings.Repeat("x", 200), strings.Repeat("x", 201)},
			"tier":   {"gold", "silver"},
		} {
			if rnd.IntN(2) == 0 {
				s.Meta[key] = pick(rnd, of...)
			}
		}
		for key := range s.Meta {
			delete(s.Metrics, key) // a tracer writes a tag either as a string or as a number
		}
		body, err := s.MarshalMsg(msgp.AppendArrayHeader(msgp.AppendArrayHeader(nil, 1), 1))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Count(datadog.FormatV04, body, "go", true, policy); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, batch := range c.Batches {
			for i := range batch.Snapshots {
				snapshot := &batch.Snapshots[i]
				got = append(got, labelsOf(groupOf(batch.Labeler.Label(snapshot.Span), snapshot)))
			}
		}
		var want []string
		if g := linked(t, s); g != nil {
			slices.Sort(g.PeerTags)
			want = append(want, labelsOf(g))
			counted, added = counted+1, added+len(g.AdditionalMetricTags)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("counted %s\nwant    %s\nof %v", got, want, s)
		}
	}
	if counted < 3_000 || added < 3_000 {
		t.Errorf("only %d spans were counted, with %d additional tags", counted, added)
	}
}

// groupOf converts a snapshot to a group.
func groupOf(k *span.Key, s *span.Snapshot) *pb.ClientGroupedStats {
	k.Normalize("go")
	g := &pb.ClientGroupedStats{
		Service: k.Service, Name: k.Operation, Resource: k.Resource, Type: k.Type, SpanKind: k.Kind,
		HTTPStatusCode: k.HTTPStatus, Synthetics: k.Synthetics, IsTraceRoot: pb.Trilean(k.TraceRoot),
		GRPCStatusCode: k.GRPCStatus, ServiceSource: k.ServiceSource, PeerTags: k.PeerTags,
		HTTPMethod: k.HTTPMethod, HTTPEndpoint: k.HTTPEndpoint, AdditionalMetricTags: k.AdditionalTags,
		Hits: 1,
	}
	if s.Flags&span.TopLevel != 0 {
		g.TopLevelHits = 1
	}
	return g
}
