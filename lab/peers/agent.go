package main

import (
	"fmt"
	"time"

	"github.com/DataDog/datadog-agent/pkg/trace/stats"
	"github.com/spanstatsd/spanstatsd/lab/peers/agent"
	"github.com/spanstatsd/spanstatsd/lab/workload"
)

// newSpanConcentrator returns the concentrator of the Go tracer: with one peer tag, and with
// the cardinality limits that the tracer sets.
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
	concentrator, made := newSpanConcentrator(), agent.Spans(spans)
	return func() {
		for _, s := range made {
			if prepared, ok := concentrator.NewStatSpanFromPB(s, onePeerTag, nil); ok {
				concentrator.AddSpan(prepared, tracerKey, "", nil, "")
			}
		}
	}, nil
}

// newAddSpan is like newSpanConcentrator, but does not prepare spans for the concentrator.
func newAddSpan(spans []workload.Snapshot) (func(), error) {
	concentrator := newSpanConcentrator()
	prepared := make([]*stats.StatSpan, len(spans))
	for i, s := range agent.Spans(spans) {
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
