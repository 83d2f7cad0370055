package payload

import (
	"fmt"
	"slices"

	"github.com/DataDog/sketches-go/ddsketch"
)

// key is what the agent compares two groups of one bucket by. Type is not
// part of it: of two groups that differ in nothing else, the agent moves the
// counts of the second to the first. Nor is the order of tags.
func (g *Group) key() string {
	texts := []string{
		g.Service, g.Name, g.Resource, g.SpanKind, g.GRPCStatusCode, g.HTTPMethod, g.HTTPEndpoint,
		g.ServiceSource,
	}
	peerTags := slices.Sorted(slices.Values(g.PeerTags))
	additionalTags := slices.Sorted(slices.Values(g.AdditionalMetricTags))
	return fmt.Sprintf("%q %q %q %d %d %t", texts, peerTags, additionalTags, g.HTTPStatusCode, g.IsTraceRoot,
		g.Synthetics)
}

// Check notes what the agent would take and show wrongly, and calls count for each
// group with its sketches.
func (p *Payload) Check(weighted bool, problem func(format string, args ...any),
	count func(*Group, ...*ddsketch.DDSketch),
) {
	for i := range p.Stats {
		p.Stats[i].check(problem)
		for j := range p.Stats[i].Stats {
			group := &p.Stats[i].Stats[j]
			ok, errs := group.check(weighted, problem)
			count(group, ok, errs)
		}
	}
}

// check notes what the agent would take and show wrongly.
func (b *Bucket) check(problem func(format string, args ...any)) {
	if b.Duration == 0 {
		problem("a bucket of no duration")
	} else if b.Start%b.Duration != 0 {
		problem("a bucket starts at %d, which is no multiple of its duration %d", b.Start, b.Duration)
	}
	if len(b.Stats) == 0 {
		problem("a bucket without groups")
	}
	seen := make(map[string]struct{}, len(b.Stats))
	for i := range b.Stats {
		key := b.Stats[i].key()
		if _, twice := seen[key]; twice {
			problem("two groups of one bucket that the agent folds: %s", b.Stats[i].describe())
		}
		seen[key] = struct{}{}
	}
}

func (g *Group) describe() string {
	return fmt.Sprintf("service %q, name %q, resource %q, type %q", g.Service, g.Name, g.Resource, g.Type)
}

// check decodes the group's sketches, either of which is nil if it cannot be
// decoded, and compares them with its counts. A sketch counts spans and a
// count their weights, so they agree only where every span weighs 1.
func (g *Group) check(weighted bool, problem func(format string, args ...any)) (ok, errs *ddsketch.DDSketch) {
	report := func(format string, args ...any) {
		problem("%s: %s", g.describe(), fmt.Sprintf(format, args...))
	}
	if g.Service == "" || g.Name == "" {
		report("no service or no name")
	}
	if g.IsTraceRoot < 0 || g.IsTraceRoot > 2 {
		report("trace root %d", g.IsTraceRoot)
	}
	// Weighted counts are rounded one by one, each up or down.
	if !weighted && (g.Errors > g.Hits || g.TopLevelHits > g.Hits) {
		report("%d errors and %d top-level hits of %d hits", g.Errors, g.TopLevelHits, g.Hits)
	}
	ok, err := decodeSummary(g.OkSummary)
	if err != nil {
		report("ok summary: %v", err)
	}
	errs, err = decodeSummary(g.ErrorSummary)
	if err != nil {
		report("error summary: %v", err)
	}
	if ok == nil || errs == nil || weighted {
		return ok, errs
	}
	if spans := ok.GetCount() + errs.GetCount(); spans != float64(g.Hits) {
		report("%d hits, but its sketches count %v", g.Hits, spans)
	}
	if failed := errs.GetCount(); failed != float64(g.Errors) {
		report("%d errors, but its error sketch counts %v", g.Errors, failed)
	}
	return ok, errs
}
