// Package agent counts spans with the Datadog agent's own code, called as a library: the
// decoder, the processing before the Concentrator, and the Concentrator.
//
// NewPath and CountWhole measure the way from a span to the agent's statistics, on one core:
// the agent's cost of a tracer's message. A path is not safe for concurrent use. Like the
// agent, it keeps the keys of two buckets of ten seconds, without a limit.
package agent

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
	"github.com/spanstatsd/spanstatsd/lab/workload"
)

// TraceSpans is the number of spans per trace, the same as per batch of our daemon's
// benchmarks.
const TraceSpans = 64

// agentSpan returns a span as the agent decodes it from a tracer. It is marked as measured, so
// that the statistics include it.
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
	for _, tags := range [][]string{k.PeerTags, k.AdditionalTags} {
		for _, tag := range tags {
			name, value, _ := strings.Cut(tag, ":")
			p.Meta[name] = value
		}
	}
	return p
}

// Spans returns spans as the agent decodes them.
func Spans(spans []workload.Snapshot) []*pb.Span {
	made := make([]*pb.Span, len(spans))
	for i := range spans {
		made[i] = agentSpan(&spans[i])
	}
	return made
}

// peerTagsOfAgent is the number of peer tags that the agent looks for by default.
const peerTagsOfAgent = 44

// NewConcentrator returns a function that counts the spans with the agent's Concentrator, for
// spans that need no processing before.
func NewConcentrator(spans []workload.Snapshot) (count func(), err error) {
	return newPath(spans, nil, func(*pb.Span) {})
}

// newPath returns a function that processes each span with treat and then counts it, also by
// the given additional tags.
func newPath(spans []workload.Snapshot, additional []string, treat func(*pb.Span)) (func(), error) {
	concentrator, err := newConcentrator(additional)
	if err != nil {
		return nil, err
	}
	var inputs []stats.Input
	for made := Spans(spans); len(made) > 0; {
		trace := made[:min(TraceSpans, len(made))]
		made = made[len(trace):]
		inputs = append(inputs, inputOf(trace))
	}
	return func() {
		for i := range inputs {
			for _, s := range inputs[i].Traces[0].TraceChunk.Spans {
				treat(s)
			}
			concentrator.Add(inputs[i])
		}
	}, nil
}

// newConcentrator returns the agent's concentrator with default configuration and additional
// tags.
func newConcentrator(additional []string) (*stats.Concentrator, error) {
	conf := config.New()
	conf.SpanDerivedPrimaryTagKeys = additional
	conf.PeerTagsAggregation, conf.ComputeStatsBySpanKind = true, true
	conf.Hostname, conf.DefaultEnv = "bench", "bench"
	if keys := len(conf.PeerTagsCache().Keys); keys != peerTagsOfAgent {
		return nil, fmt.Errorf("configure agent: it looks for %d peer tags, not for the %d of the table",
			keys, peerTagsOfAgent)
	}
	return stats.NewConcentrator(conf, nil, time.Now(), &statsd.NoOpClient{}), nil
}

// inputOf returns a trace in the form that the agent passes to its Concentrator.
func inputOf(trace []*pb.Span) stats.Input {
	return stats.Input{Traces: []traceutil.ProcessedTrace{{
		TraceChunk: &pb.TraceChunk{Spans: trace}, Root: trace[0], TracerEnv: "bench", TracerHostname: "bench",
		Lang: "go",
	}}}
}
