// Package clientstats reads the statistics that a tracer computes itself: a body of
// /v0.6/stats, as groups that can be added to our own.
//
// A Payload reads one body in place, with package payload, and checks it whole before
// anything is made of it.
// It accepts what can be added up exactly and nothing else: whole counts, one bucket
// width, sketches of a mapping that the agent accepts, no field that we have no place
// for. What it does not accept goes on to the agent as it came; the error says for
// which of three reasons.
//
// # Bounds
//
// What one body can make a Payload hold is bounded in groups, tags and bins, in
// proportion to the body and in all (Bytes). A sketch has bins that
// stand for durations, each once, and counts that stay exact when a million of them are
// added.
//
// # Threading
//
// One goroutine at a time uses a Payload. Its memory is used again by the next Read. The
// labels of its groups and its origin are parts of the body, so whoever keeps one bounds
// it first and copies then. Next lets go of the body.
package clientstats

import (
	"cmp"
	"errors"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
	"github.com/spanstatsd/spanstatsd/internal/decode/payload"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Payload is what a tracer that computes its own statistics sends in one request.
type Payload struct {
	groups
	Width  uint64      // of all buckets, in nanoseconds
	Origin span.Origin // as long as its tracer likes, and part of the body too

	buckets int // that were read
	first   int // group of the one that is being read
}

// Read reads a body. said is what the request's headers say of the origin: what the
// body says of the same comes before it.
func (p *Payload) Read(body []byte, said span.Origin) error {
	p.forget()
	p.limits = limitsOf(len(body))
	read, err := payload.Walk{MaxTags: p.limits.tags, Group: p.add, Bucket: p.endBucket}.Decode(body)
	switch {
	case errors.Is(err, ErrMapping):
		return ErrMapping
	case errors.Is(err, ErrIncompatible), errors.Is(err, payload.ErrLossy):
		return ErrIncompatible
	case err != nil:
		return ErrUnparsable
	case len(p.Groups) == 0: // a probe is the agent's to answer
		return ErrIncompatible
	case read.AgentAggregation != "" || read.ImageTag != "": // we have no place for them
		return ErrIncompatible
	}
	p.Origin = said
	p.setOrigin(read)
	return nil
}

// setOrigin has what the body says. Of the rest of it (the sequence, the container's id, the
// tags of DD_TAGS that some tracers write) the agent makes nothing.
func (p *Payload) setOrigin(read *payload.Payload) {
	o := &p.Origin
	o.Host, o.Env, o.Version, o.Service = read.Hostname, read.Env, read.Version, read.Service
	o.RuntimeID, o.GitCommitSHA, o.ProcessTags = read.RuntimeID, read.GitCommitSha, read.ProcessTags
	o.Lang, o.TracerVersion = cmp.Or(read.Lang, o.Lang), cmp.Or(read.TracerVersion, o.TracerVersion)
}

// endBucket is called behind the groups of a bucket.
func (p *Payload) endBucket(b *payload.Bucket) error {
	if b.AgentTimeShift != 0 || b.Start >= 1<<62 || p.buckets > 0 && b.Duration != p.Width {
		return ErrIncompatible
	}
	p.buckets++
	p.Width = b.Duration
	for i := range p.Groups[p.first:] {
		p.Groups[p.first+i].Bucket = int64(b.Start)
	}
	p.first = len(p.Groups)
	return nil
}

// forget lets go of the body and of all that was read of it.
func (p *Payload) forget() {
	clear(p.Groups)
	*p = Payload{groups: groups{Groups: p.Groups[:0], bins: p.bins[:0]}}
}

// Next is the Payload for the next body. It holds nothing of the last one, nor the memory
// that only a very large one needed.
func (p *Payload) Next() *Payload {
	if cap(p.bins) > maxBins/8 || cap(p.Groups) > maxGroups/4 {
		return &Payload{}
	}
	p.forget()
	return p
}

// limits is how much a body may make a Payload hold, by its length: several times what
// a tracer counts in ten seconds.
type limits struct{ groups, tags, bins int }

// The limits for the longest bodies: 8, 4 and 8 MB.
const (
	maxGroups = 1 << 14
	maxTags   = 1 << 18
	maxBins   = 1 << 19
)

func limitsOf(body int) limits {
	return limits{
		groups: min(maxGroups, 64+body/128),
		tags:   min(maxTags, 1<<10+body/16),
		bins:   min(maxBins, 1<<12+body/8),
	}
}

// Bytes is the most memory that a Payload takes for bodies of that length.
func Bytes(body int) int {
	const grown = 1.5 // a slice grows by a quarter, and out of one that is still there
	l := limitsOf(body)
	groups, bins := l.groups*int(unsafe.Sizeof(aggregate.Group{})), l.bins*int(unsafe.Sizeof(sketch.Bin{}))
	tags := 2 * l.tags * int(unsafe.Sizeof("")) // short lists double
	return int(grown*float64(groups+bins)) + tags
}

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
		return ErrIncompatible
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
		err = ErrIncompatible
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
		err = ErrIncompatible
	}
	*to = sketch.Bins{Zeros: s.zeros, List: all.bins[first:len(all.bins):len(all.bins)]}
	return s.mapping, err
}
