package clientstats

import (
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/payload"
	"github.com/spanstatsd/spanstatsd/internal/sketch"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// maxDuration is what a float64 holds exactly.
const maxDuration = 1 << 53

// groups are those of a body, within its limits.
type groups struct {
	Groups []aggregate.Group // their labels are parts of the body

	bins   []sketch.Bin // of all their sketches
	limits limits
}

// add takes a group that can be added up exactly.
func (all *groups) add(read *payload.Group) error {
	if len(all.Groups) == all.limits.groups || !isWhole(read) {
		return ErrUnfit
	}
	g := aggregate.Group{Key: keyOf(read), Counts: aggregate.Counts{
		Spans: read.Hits, Hits: float64(read.Hits), Errors: float64(read.Errors),
		TopLevel: float64(read.TopLevelHits), Duration: float64(read.Duration),
	}}
	var err error
	if g.Mapping, err = all.addSketch(&g.OK, read.OkSummary); err != nil {
		return err
	}
	mapping, err := all.addSketch(&g.Errors, read.ErrorSummary)
	if err == nil && g.Mapping != mapping {
		err = ErrUnfit
	}
	all.Groups = append(all.Groups, g)
	return err
}

// isWhole says whether a group has spans, no more than can be added up, and nothing that we
// have no place for: a database's type is for the agent's obfuscation.
func isWhole(g *payload.Group) bool {
	return g.Hits > 0 && max(g.Hits, g.Errors, g.TopLevelHits) <= maxHits && g.Duration <= maxDuration &&
		g.IsTraceRoot >= 0 && g.IsTraceRoot <= int32(span.TraceRootFalse) &&
		g.DBType == "" && len(g.SpanDerivedPrimaryTags) == 0
}

func keyOf(g *payload.Group) span.Key {
	return span.Key{
		Service: g.Service, Operation: g.Name, Resource: g.Resource, Type: g.Type, Kind: g.SpanKind,
		TraceRoot: span.TraceRoot(g.IsTraceRoot), HTTPStatus: g.HTTPStatusCode, PeerTags: g.PeerTags,
		HTTPMethod: g.HTTPMethod, HTTPEndpoint: g.HTTPEndpoint, GRPCStatus: g.GRPCStatusCode,
		ServiceSource: g.ServiceSource, Synthetics: g.Synthetics, AdditionalTags: g.AdditionalMetricTags,
	}
}

// addSketch reads one of a group's two, and returns its mapping.
func (all *groups) addSketch(to *sketch.Bins, encoded []byte) (sketch.Mapping, error) {
	first := len(all.bins)
	s := wholeSketch{bins: all.bins}
	err := s.read(encoded)
	all.bins = s.bins
	if err == nil && len(all.bins) > all.limits.bins {
		err = ErrUnfit
	}
	*to = sketch.Bins{Zeros: s.zeros, List: all.bins[first:len(all.bins):len(all.bins)]}
	return s.mapping, err
}
