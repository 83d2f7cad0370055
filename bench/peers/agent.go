package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	pb "github.com/DataDog/datadog-agent/pkg/proto/pbgo/trace"
	"github.com/DataDog/datadog-agent/pkg/trace/config"
	"github.com/DataDog/datadog-agent/pkg/trace/stats"
	"github.com/DataDog/datadog-agent/pkg/trace/traceutil"
	"github.com/DataDog/datadog-go/v5/statsd"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/workload"
)

// traceSpans is the spans of one trace, as of one batch of ours.
const traceSpans = 64

// agentSpan is a span as the agent decodes it from a tracer. Each is marked as
// measured, so that none is left out of the statistics.
func agentSpan(s *workload.Snapshot) *pb.Span {
	k := s.Key
	p := &pb.Span{
		Service: k.Service, Name: k.Operation, Resource: k.Resource, Type: k.Type, ParentID: 1,
		Start: s.End - int64(s.Duration), Duration: int64(s.Duration),
		Meta: map[string]string{"span.kind": k.Kind}, Metrics: map[string]float64{"_dd.measured": 1},
	}
	if k.TraceRoot == span.TraceRootTrue {
		p.ParentID = 0
	}
	if s.Flags&span.Error != 0 {
		p.Error = 1
	}
	if s.Flags&span.TopLevel != 0 {
		p.Metrics["_top_level"] = 1
	}
	if k.HTTPStatus != 0 {
		p.Meta["http.status_code"] = strconv.Itoa(int(k.HTTPStatus))
		p.Meta["http.method"], p.Meta["http.endpoint"] = k.HTTPMethod, k.HTTPEndpoint
	}
	for _, tag := range k.PeerTags {
		name, value, _ := strings.Cut(tag, ":")
		p.Meta[name] = value
	}
	return p
}

func agentSpans(spans []workload.Snapshot) []*pb.Span {
	made := make([]*pb.Span, len(spans))
	for i := range spans {
		made[i] = agentSpan(&spans[i])
	}
	return made
}

// peerTagsOfAgent is how many peer tags the agent looks for by default.
const peerTagsOfAgent = 44

// newConcentrator is what the agent computes with when no tracer did.
func newConcentrator(spans []workload.Snapshot) (func(), error) {
	conf := config.New()
	conf.PeerTagsAggregation, conf.ComputeStatsBySpanKind = true, true
	conf.Hostname, conf.DefaultEnv = "bench", "bench"
	if keys := len(conf.PeerTagsCache().Keys); keys != peerTagsOfAgent {
		return nil, fmt.Errorf("configure agent: it looks for %d peer tags, not for the %d of the table", keys, peerTagsOfAgent)
	}
	concentrator := stats.NewConcentrator(conf, nil, time.Now(), &statsd.NoOpClient{})
	var inputs []stats.Input
	for made := agentSpans(spans); len(made) > 0; {
		trace := made[:min(traceSpans, len(made))]
		made = made[len(trace):]
		inputs = append(inputs, stats.Input{Traces: []traceutil.ProcessedTrace{{
			TraceChunk: &pb.TraceChunk{Spans: trace}, Root: trace[0], TracerEnv: "bench", TracerHostname: "bench", Lang: "go",
		}}})
	}
	return func() {
		for i := range inputs {
			concentrator.Add(inputs[i])
		}
	}, nil
}

// newSpanConcentrator is what the Go tracer computes with: one peer tag, and the
// limits of cardinality that it sets.
func newSpanConcentrator() *stats.SpanConcentrator {
	return stats.NewSpanConcentrator(&stats.SpanConcentratorConfig{
		ComputeStatsBySpanKind: true, BucketInterval: (10 * time.Second).Nanoseconds(),
		ResourceCardinalityLimit: 1024, HTTPEndpointCardinalityLimit: 512, PeerTagsCardinalityLimit: 512,
		AdditionalMetricTagsCardinalityLimit: 100, OriginCardinalityLimit: 16, WholeKeyCardinalityLimit: 2048,
	}, time.Now())
}

var (
	onePeerTag = []string{"peer.hostname"}
	tracerKey  = stats.PayloadAggregationKey{Env: "bench", Hostname: "bench", Lang: "go"}
)

func newTracerPath(spans []workload.Snapshot) (func(), error) {
	concentrator, made := newSpanConcentrator(), agentSpans(spans)
	return func() {
		for _, s := range made {
			if prepared, ok := concentrator.NewStatSpanFromPB(s, onePeerTag, nil); ok {
				concentrator.AddSpan(prepared, tracerKey, "", nil, "")
			}
		}
	}, nil
}

// newAddSpan is the same without what makes a span ready for it.
func newAddSpan(spans []workload.Snapshot) (func(), error) {
	concentrator := newSpanConcentrator()
	prepared := make([]*stats.StatSpan, len(spans))
	for i, s := range agentSpans(spans) {
		ok := false
		if prepared[i], ok = concentrator.NewStatSpanFromPB(s, onePeerTag, nil); !ok {
			return nil, fmt.Errorf("prepare span %d: the concentrator leaves it out", i)
		}
	}
	return func() {
		for _, s := range prepared {
			concentrator.AddSpan(s, tracerKey, "", nil, "")
		}
	}, nil
}
