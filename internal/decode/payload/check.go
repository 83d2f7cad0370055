package payload

import (
	"fmt"
	"slices"

	"github.com/DataDog/sketches-go/ddsketch"
)

// aggregationKey returns a string that is equal for two groups of a bucket if and only if the Datadog
// agent would merge them. Like the agent, it ignores the field Type and the order of tags.
func (g *Group) aggregationKey() string {
	labels := []string{
		g.Service, g.Name, g.Resource, g.SpanKind, g.GRPCStatusCode, g.HTTPMethod, g.HTTPEndpoint,
		g.ServiceSource,
	}
	peerTags := slices.Sorted(slices.Values(g.PeerTags))
	additionalTags := slices.Sorted(slices.Values(g.AdditionalMetricTags))
	return fmt.Sprintf("%q %q %q %d %d %t", labels, peerTags, additionalTags, g.HTTPStatusCode, g.IsTraceRoot,
		g.Synthetics)
}

// reportFunc reports a problem of a payload. Its parameters are those of fmt.Sprintf.
type reportFunc = func(format string, args ...any)

// Check calls report for each part of the payload that the Datadog agent would accept but display
// wrongly. It calls visit for each group and passes two sketches: that of the successful spans, and that of the failed
// spans. An invalid sketch is nil. If weighted is true, a sampled span can stand for several hits, so the hits of a group
// can differ from the spans in its sketches.
func (p *Payload) Check(weighted bool, report reportFunc, visit func(*Group, ...*ddsketch.DDSketch)) {
	for i := range p.Stats {
		p.Stats[i].check(report)
		for j := range p.Stats[i].Stats {
			group := &p.Stats[i].Stats[j]
			ok, failed := group.check(weighted, report)
			visit(group, ok, failed)
		}
	}
}

// check calls report for each problem of a bucket: a duration of 0, a start time that is not a multiple
// of the duration, no groups, or two groups that the Datadog agent would merge. It does not check the
// groups one by one.
func (b *Bucket) check(report reportFunc) {
	if b.Duration == 0 {
		report("a bucket of no duration")
	} else if b.Start%b.Duration != 0 {
		report("a bucket starts at %d, which is no multiple of its duration %d", b.Start, b.Duration)
	}
	if len(b.Stats) == 0 {
		report("a bucket without groups")
	}
	seen := make(map[string]struct{}, len(b.Stats))
	for i := range b.Stats {
		key := b.Stats[i].aggregationKey()
		if _, isDuplicate := seen[key]; isDuplicate {
			report("two groups of one bucket that the agent folds: %s", b.Stats[i].describe())
		}
		seen[key] = struct{}{}
	}
}

func (g *Group) describe() string {
	return fmt.Sprintf("service %q, name %q, resource %q, type %q", g.Service, g.Name, g.Resource, g.Type)
}

// check calls reportProblem for each problem of a group, such as a missing service. It returns the
// histograms of the durations of successful spans (ok) and of failed spans (failed), nil if invalid. If
// weighted is true, check does not compare the numbers of hits and of spans.
func (g *Group) check(weighted bool, reportProblem reportFunc) (ok, failed *ddsketch.DDSketch) {
	report := func(format string, args ...any) {
		reportProblem("%s: %s", g.describe(), fmt.Sprintf(format, args...))
	}
	g.checkFields(weighted, report)
	ok, okErr := decodeSketch(g.OkSummary)
	if okErr != nil {
		report("ok summary: %v", okErr)
	}
	failed, failedErr := decodeSketch(g.ErrorSummary)
	if failedErr != nil {
		report("error summary: %v", failedErr)
	}
	areSketchesValid := ok != nil && failed != nil
	if areSketchesValid && !weighted {
		g.compareCounts(ok, failed, report)
	}
	return ok, failed
}

// checkFields calls report for each problem of the labels and the counts of a group.
func (g *Group) checkFields(weighted bool, report reportFunc) {
	if g.Service == "" || g.Name == "" {
		report("no service or no name")
	}
	if g.IsTraceRoot < 0 || g.IsTraceRoot > 2 {
		report("trace root %d", g.IsTraceRoot)
	}
	exceedsHits := g.Errors > g.Hits || g.TopLevelHits > g.Hits
	if exceedsHits && !weighted { // each weighted count is rounded separately
		report("%d errors and %d top-level hits of %d hits", g.Errors, g.TopLevelHits, g.Hits)
	}
}

// compareCounts calls report if the hits or the errors of a group differ from the number of spans in
// its sketches. ok is the histogram of its successful spans, and failed that of its failed spans.
func (g *Group) compareCounts(ok, failed *ddsketch.DDSketch, report reportFunc) {
	failedSpans := failed.GetCount()
	spans := ok.GetCount() + failedSpans
	if spans != float64(g.Hits) {
		report("%d hits, but its sketches count %v", g.Hits, spans)
	}
	if failedSpans != float64(g.Errors) {
		report("%d errors, but its error sketch counts %v", g.Errors, failedSpans)
	}
}
