package datadog

import "github.com/spanstatsd/spanstatsd/internal/spantable"

// The labels of tags that say something of a trace or of its process. Names are given to a Decoder
// with TraceTags first, under these labels.
const (
	LabelKind spantable.Label = iota + 1
	LabelEnv
	LabelVersion
	LabelHostname
	LabelCommit
	LabelOrigin
	LabelPriority
	LabelProcessTags
	LabelTraceHigh    // the upper half of the trace's id
	LabelSpanSampling // the span was sampled for itself
	LabelEventRate    // the span is an event
	labelMisplaced    // no name: the empty string of a v0.5 body that is not the first
	TraceLabels       // how many there are, with spantable.Other
)

// TraceTags are the names of those tags, by label.
var TraceTags = [TraceLabels]string{
	LabelKind: "span.kind", LabelEnv: "env", LabelVersion: "version", LabelHostname: "_dd.hostname",
	LabelCommit: "_dd.git.commit.sha", LabelOrigin: "_dd.origin", LabelPriority: "_sampling_priority_v1",
	LabelProcessTags: "_dd.tags.process", LabelTraceHigh: "_dd.p.tid",
	LabelSpanSampling: "_dd.span_sampling.mechanism", LabelEventRate: "_dd1.sr.eausr",
}
