// Package agent has the Datadog agent's own code count spans: as the agent decodes them, and
// as it treats them before and in its Concentrator. It is called as a library.
//
// Path and Whole are one way from a span to the agent's statistics, without a socket: what a
// message of a tracer costs in the agent itself, on one core. A path belongs to one goroutine,
// and keeps what the agent keeps: the keys of two buckets of ten seconds, however many.
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

// TraceSpans is the spans of one trace, as of one batch of ours.
const TraceSpans = 64

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
	for _, tags := range [][]string{k.PeerTags, k.AdditionalTags} {
		for _, tag := range tags {
			name, value, _ := strings.Cut(tag, ":")
			p.Meta[name] = value
		}
	}
	return p
}

// Spans are spans as the agent decodes them.
func Spans(spans []workload.Snapshot) []*pb.Span {
	made := make([]*pb.Span, len(spans))
	for i := range spans {
		made[i] = agentSpan(&spans[i])
	}
	return made
}

// peerTagsOfAgent is how many peer tags the agent looks for by default.
const peerTagsOfAgent = 44

// NewConcentrator prepares what the agent computes with when no tracer did, for spans that
// need nothing before it. What it returns counts them.
func NewConcentrator(spans []workload.Snapshot) (count func(), err error) {
	return newPath(spans, nil, func(*pb.Span) {})
}

// newPath has each span treated before the Concentrator counts it, by the additional tags
// of these names too.
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

// newConcentrator is the agent's, of a configuration as it comes.
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

// inputOf is a trace as the agent hands it to its Concentrator.
func inputOf(trace []*pb.Span) stats.Input {
	return stats.Input{Traces: []traceutil.ProcessedTrace{{
		TraceChunk: &pb.TraceChunk{Spans: trace}, Root: trace[0], TracerEnv: "bench", TracerHostname: "bench",
		Lang: "go",
	}}}
}
