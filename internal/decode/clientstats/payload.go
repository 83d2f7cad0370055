// Package clientstats reads statistics that a tracer has computed itself, the body of a /v0.6/stats
// request, so that they can be merged with the daemon's own.
//
// A Payload validates a body completely before anything is merged. It accepts only statistics that can
// be merged exactly: integer counts, buckets of one width, sketches with a mapping that the agent
// accepts, and no unknown fields. Other payloads must be forwarded to the agent unchanged; the error of
// Read says why.
//
// # Concurrency
//
// A Payload is used by one goroutine at a time. Next returns a Payload for the next body that reuses its
// memory. Labels and the origin are slices of the body, so a caller that keeps them must copy them.
//
// # Limits
//
// Groups, tags and bins are limited in proportion to the length of the body, and absolutely. Bytes
// returns the maximum memory. Counts are limited so that a million of them can be added exactly.
package clientstats

import (
	"cmp"
	"errors"
	"slices"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
	"github.com/spanstatsd/spanstatsd/internal/decode/payload"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Payload contains the statistics of one request, which a tracer has computed from its spans.
type Payload struct {
	Groups []aggregate.Group // labels are slices of the body
	// BucketDuration is the duration of each bucket, in nanoseconds.
	BucketDuration uint64
	Origin         span.Origin // slices of the body, with unlimited length

	limits      limits
	bins        []sketch.Bin // bins of all sketches
	bucketCount int          // number of complete buckets
	bucketStart int          // index of the first group in the current bucket
}

// Read decodes body, a payload of statistics that a tracer has computed from its spans, into p.
// fromHeaders describes the tracer according to the request headers; fields of body take precedence.
// Read returns an error if body is invalid or empty, exceeds a limit, or contains anything that p
// cannot represent. The caller must then forward body to the Datadog agent.
func (p *Payload) Read(body []byte, fromHeaders span.Origin) error {
	p.reset()
	p.limits = limitsOf(len(body))
	visitor := payload.Visitor{MaxTags: p.limits.tags, OnGroup: p.addGroup, OnBucket: p.endBucket}
	decoded, err := visitor.Decode(body)
	if err != nil {
		return readError(err)
	}
	isProbe := len(p.Groups) == 0 // sent to find out whether the endpoint exists; the agent must answer
	hasUnsupportedFields := decoded.AgentAggregation != "" || decoded.ImageTag != ""
	if isProbe || hasUnsupportedFields {
		return ErrIncompatible
	}
	p.Origin = mergeOrigin(fromHeaders, decoded)
	return nil
}

// readError returns the error of Payload.Read for an error of the decoder.
func readError(err error) error {
	switch {
	case errors.Is(err, ErrMapping):
		return ErrMapping
	case errors.Is(err, ErrIncompatible), errors.Is(err, payload.ErrLossy):
		return ErrIncompatible
	}
	return ErrUnparsable
}

// mergeOrigin returns a description of the process that sent a payload: fromHeaders, with the properties
// that are fields of the payload. The language and the tracer version in the headers are used only if the
// payload has none.
func mergeOrigin(fromHeaders span.Origin, decoded *payload.Payload) span.Origin {
	merged := fromHeaders
	merged.Host = decoded.Hostname
	merged.Env = decoded.Env
	merged.Version = decoded.Version
	merged.Service = decoded.Service
	merged.RuntimeID = decoded.RuntimeID
	merged.GitCommitSHA = decoded.GitCommitSha
	merged.ProcessTags = decoded.ProcessTags
	merged.Lang = cmp.Or(decoded.Lang, fromHeaders.Lang)
	merged.TracerVersion = cmp.Or(decoded.TracerVersion, fromHeaders.TracerVersion)
	return merged
}

// addGroup adds a group to the payload. It returns ErrIncompatible if the group cannot be merged exactly.
func (p *Payload) addGroup(decoded *payload.Group) error {
	isFull := len(p.Groups) == p.limits.groups
	if isFull || !isMergeable(decoded) {
		return ErrIncompatible
	}
	g := aggregate.Group{Key: keyOf(decoded), Counts: aggregate.Counts{
		Spans: decoded.Hits, Hits: float64(decoded.Hits), Errors: float64(decoded.Errors),
		TopLevel: float64(decoded.TopLevelHits), Duration: float64(decoded.Duration),
	}}
	var mapping, errorMapping sketch.Mapping
	var err error
	if g.OK, mapping, err = p.readSketch(decoded.OkSummary); err != nil {
		return err
	}
	if g.Errors, errorMapping, err = p.readSketch(decoded.ErrorSummary); err != nil {
		return err
	}
	if errorMapping != mapping {
		return ErrIncompatible
	}
	g.Mapping = mapping
	p.Groups = append(p.Groups, g)
	return nil
}

// readSketch decodes a sketch, a histogram of span durations. It returns its bins, which it stores in p.bins, and the
// mapping from durations to bins. It returns an error if the sketch is invalid or unsupported, or if all sketches of
// the payload together have too many bins.
func (p *Payload) readSketch(encoded []byte) (bins sketch.Bins, mapping sketch.Mapping, err error) {
	oldBins := len(p.bins)
	r := sketchReader{bins: p.bins}
	if err := r.read(encoded); err != nil {
		return bins, mapping, err
	}
	p.bins = r.bins
	if len(p.bins) > p.limits.bins {
		return bins, mapping, ErrIncompatible
	}
	newBins := slices.Clip(p.bins[oldBins:]) // so that nothing can be appended over the bins of the next sketch
	return sketch.Bins{Zeros: r.zeros, List: newBins}, r.mapping, nil
}

// endBucket completes a bucket, the statistics of one time interval, after its groups have been added. It
// sets the start time of these groups. It returns ErrIncompatible if the bucket has a time shift, a start
// time of 1<<62 ns or later, or another duration than the previous bucket.
func (p *Payload) endBucket(bucket *payload.Bucket) error {
	const maxStart = 1<<62 - 1 // in nanoseconds
	isFirst := p.bucketCount == 0
	hasOtherDuration := !isFirst && bucket.Duration != p.BucketDuration
	if bucket.AgentTimeShift != 0 || bucket.Start > maxStart || hasOtherDuration {
		return ErrIncompatible
	}
	p.bucketCount++
	p.BucketDuration = bucket.Duration
	groupsOfBucket := p.Groups[p.bucketStart:]
	for i := range groupsOfBucket {
		groupsOfBucket[i].Bucket = int64(bucket.Start)
	}
	p.bucketStart = len(p.Groups) // of the next bucket
	return nil
}

// maxDuration is the maximum integer up to which a float64 is exact.
const maxDuration = 1 << 53

// isMergeable reports whether a group, the statistics of one label set, can be added to other
// statistics without loss: all its counts are in a range that a float64 represents exactly, and it has
// no fields that the daemon does not support.
func isMergeable(g *payload.Group) bool {
	hasExactCounts := g.Hits > 0 && max(g.Hits, g.Errors, g.TopLevelHits) <= maxHits && g.Duration <= maxDuration
	hasValidTraceRoot := g.IsTraceRoot >= 0 && g.IsTraceRoot <= int32(span.TraceRootFalse)
	hasUnsupportedFields := g.DBType != "" || len(g.SpanDerivedPrimaryTags) > 0
	return hasExactCounts && hasValidTraceRoot && !hasUnsupportedFields
}

func keyOf(g *payload.Group) span.Key {
	return span.Key{
		Service: g.Service, Operation: g.Name, Resource: g.Resource, Type: g.Type, Kind: g.SpanKind,
		TraceRoot: span.TraceRoot(g.IsTraceRoot), HTTPStatus: g.HTTPStatusCode, PeerTags: g.PeerTags,
		HTTPMethod: g.HTTPMethod, HTTPEndpoint: g.HTTPEndpoint, GRPCStatus: g.GRPCStatusCode,
		ServiceSource: g.ServiceSource, Synthetics: g.Synthetics, AdditionalTags: g.AdditionalMetricTags,
	}
}

// reset drops the body and everything read from it, but keeps the memory.
func (p *Payload) reset() {
	clear(p.Groups)
	*p = Payload{Groups: p.Groups[:0], bins: p.bins[:0]}
}

// Next returns an empty Payload, into which the caller can decode the next body. It returns p itself,
// without the previous content, unless p uses unusually much memory.
func (p *Payload) Next() *Payload {
	const manyBins, manyGroups = maxBins / 8, maxGroups / 4
	isLarge := cap(p.bins) > manyBins || cap(p.Groups) > manyGroups
	if isLarge {
		return &Payload{}
	}
	p.reset()
	return p
}

// limits are the maximum numbers of groups, tags and bins in a payload.
type limits struct{ groups, tags, bins int }

// Absolute limits, which take 8, 4 and 8 MB of memory.
const (
	maxGroups = 1 << 14
	maxTags   = 1 << 18
	maxBins   = 1 << 19
)

// Limits for an empty body.
const (
	minGroups = 64
	minTags   = 1 << 10
	minBins   = 1 << 12
)

// limitsOf returns the maximum numbers of groups, tags and histogram bins in a body of bodyLen bytes.
// They are far above the numbers in bodies that tracers send.
func limitsOf(bodyLen int) limits {
	const bytesPerGroup, bytesPerTag, bytesPerBin = 128, 16, 8
	return limits{
		groups: min(maxGroups, minGroups+bodyLen/bytesPerGroup),
		tags:   min(maxTags, minTags+bodyLen/bytesPerTag),
		bins:   min(maxBins, minBins+bodyLen/bytesPerBin),
	}
}

// Bytes returns the maximum memory of a Payload for bodies of bodyLen bytes.
func Bytes(bodyLen int) int {
	const growthFactor = 1.5  // a growing slice adds a quarter, and is copied from the previous one
	const tagGrowthFactor = 2 // short slices double when they grow
	l := limitsOf(bodyLen)
	groupBytes := l.groups * int(unsafe.Sizeof(aggregate.Group{}))
	binBytes := l.bins * int(unsafe.Sizeof(sketch.Bin{}))
	tagBytes := l.tags * int(unsafe.Sizeof(""))
	return int(growthFactor*float64(groupBytes+binBytes)) + tagGrowthFactor*tagBytes
}
