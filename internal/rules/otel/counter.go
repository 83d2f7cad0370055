package otel

import (
	"cmp"
	"math"
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/decode/otlp"
	"github.com/spanstatsd/spanstatsd/internal/rules"
	"github.com/spanstatsd/spanstatsd/internal/sampling/tracestate"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/measure"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// Counter converts the spans of a body to batches of snapshots, the data that statistics need.
type Counter struct {
	keys      keys
	states    tracestate.Memo
	batches   rules.Batches
	origins   rules.Origins
	places    []rules.AssignedOrigin // origins of the resources with spans, in their order
	resources []resource             // one per resource
	skipped   int                    // spans that the client has already counted

	values       int                      // number of values of measures
	refused      [measure.Refusals]uint64 // number of values that are not counted, by reason
	refusedLabel spantable.Label          // attribute with one of them
}

// resource is the state that the spans of a resource share.
type resource struct {
	batch    int    // number of the batch; noBatch if no span of the resource is counted
	service  string // service of the origin
	firstTag uint32 // first tag of the resource that its spans inherit
	lastTag  uint32 // end of these tags
	isGo     bool   // the spans are from Go's SDK
}

const noBatch = -1

// NewCounter returns a counter.
func NewCounter() *Counter { return &Counter{} }

// CounterBytes returns the maximum memory of a counter for bodies of the given length.
func CounterBytes(body int) int { return otlp.MaxMemory(body, rules.SnapshotBytes) + anyCounter }

// ValueBytes returns the maximum memory of the values that a counter finds in a body of the given length.
func ValueBytes(body int) int {
	return int(spantable.GrowthFactor * float64(spantable.MaxSpans(body)*rules.ValueBytes))
}

// anyCounter is the memory of a counter that does not depend on the body: a fingerprint, the
// origins, and the labels of a span.
const anyCounter = rules.MaxFingerprint + 256<<10

// Decode is the type of functions that decode a body into r. They keep only the span attributes in
// ofSpans and the resource attributes in ofResources.
type Decode func(r *otlp.Request, body []byte, ofSpans, ofResources *spantable.Names) error

// Count decodes an OTLP request body and counts its spans, except those of resources that the client has marked as
// already counted. If it returns an error, it has counted no span.
func (c *Counter) Count(body []byte, policy *Policy) error {
	return c.CountBy((*otlp.Request).Decode, body, policy)
}

// CountBy decodes a request body with decode and counts its spans. If it returns an error, it has counted no span.
func (c *Counter) CountBy(decode Decode, body []byte, policy *Policy) error {
	c.keys.policy = policy
	c.batches.Reset(c)
	c.states.Forget()
	c.resources = c.resources[:0]
	c.values, c.refused, c.refusedLabel = 0, [measure.Refusals]uint64{}, spantable.Other
	r := &c.keys.request
	if err := decode(r, body, policy.names, policy.resourceNames); err != nil {
		return err //nolint:wrapcheck // the decoder's error is complete
	}
	c.skipCounted()
	c.places = c.origins.AssignOrigins(c.places[:0], c.resourceOrigins)
	nextPlace := 0 // in c.places, which has one for each resource with spans
	for i := range r.Resources {
		res := &r.Resources[i]
		if !hasUncountedSpans(r, res) {
			c.resources = append(c.resources, resource{batch: noBatch})
			continue
		}
		c.countResource(res, c.places[nextPlace])
		nextPlace++
		if r.Err() != nil {
			c.batches.Reset(nil)
			return r.Err()
		}
	}
	return nil
}

// skipCounted marks the resources whose spans the client has already counted, so that they are not counted again. It
// sets c.skipped to the number of these spans.
func (c *Counter) skipCounted() {
	r := &c.keys.request
	c.skipped = 0
	for i := range r.Resources {
		res := &r.Resources[i]
		res.IsCounted = isCountedByClient(r, res, c.keys.policy.computed)
		if res.IsCounted {
			first, last := r.SpansOf(res)
			c.skipped += last - first
		}
	}
}

// hasUncountedSpans reports whether a resource has spans that the client has not counted itself.
func hasUncountedSpans(r *otlp.Request, res *otlp.Resource) bool {
	return r.HasSpans(res) && !res.IsCounted
}

// Skipped returns the number of spans of the last body that were not counted, because the client had already
// counted them.
func (c *Counter) Skipped() int { return c.skipped }

// resourceOrigins yields an origin, the description of a process, for each resource of the request. It skips
// resources without spans, and those whose spans the client has counted itself.
func (c *Counter) resourceOrigins(yield func(span.Origin) bool) {
	r := &c.keys.request
	for i := range r.Resources {
		res := &r.Resources[i]
		if !hasUncountedSpans(r, res) {
			continue
		}
		if !yield(originOf(r, res, c.keys.policy.originAttributes)) {
			return
		}
	}
}

// countResource adds a snapshot of each span of a resource to the batch of an origin. place identifies the origin.
func (c *Counter) countResource(res *otlp.Resource, place rules.AssignedOrigin) {
	r := &c.keys.request
	originNumber := int(place.Number)
	batch, _ := c.batches.FindOrAdd(rules.BatchID{Origin: originNumber})
	service := c.origins.Get(originNumber).Service
	if originNumber == rules.CommonOrigin {
		service = originOf(r, res, nil).Service // the common origin has no service
	}
	var flags span.Flags
	if place.IsShared {
		flags = span.SharedOrigin
	}
	current := c.readResource(res, service)
	current.batch = batch
	c.resources = append(c.resources, current)
	first, last := r.SpansOf(res)
	for i := first; i < last; i++ {
		if r.Err() != nil {
			return
		}
		c.countSpan(i, &current, flags)
	}
}

// countSpan adds the span with the given index in the request to the batch of its resource, res. flags are
// those that all spans of the resource have. countSpan records an error in the request if the fingerprints
// of its spans become too long.
func (c *Counter) countSpan(index int, res *resource, flags span.Flags) {
	r := &c.keys.request
	s := &r.Spans[index]
	fingerprint, keyFlag := c.fingerprintOf(s, res)
	end := min(s.Start+s.Duration, math.MaxInt64)
	c.batches.AddSnapshot(res.batch, fingerprint, span.Snapshot{
		Duration: s.Duration,
		End:      int64(end),
		Weight:   c.weightOf(r.Extras[index].State),
		Span:     uint32(index),
		Flags:    flags | flagsOf(s) | keyFlag,
	})
	if len(c.keys.policy.measures) > 0 {
		c.addValues(res.batch, s)
	}
	if c.batches.FingerprintBytes() > r.Limits.DerivedBytes {
		r.Fail(spantable.ErrTooMuch)
	}
}

// fingerprintOf returns the fingerprint of s, or nil if it would be too long or if an ignore rule matches s. res is the
// resource of s. keyFlag is span.Ignored if an ignore rule matches s, span.Renamed if s is counted under another name
// than the one that was sent, and otherwise 0.
func (c *Counter) fingerprintOf(s *spantable.Span, res *resource) (fingerprint []byte, keyFlag span.Flags) {
	if c.keys.isIgnored(s, res) {
		return nil, span.Ignored // an ignored span needs no labels
	}
	fingerprint, isRenamed := c.keys.fingerprintOf(s, res)
	if isRenamed {
		keyFlag = span.Renamed
	}
	return fingerprint, keyFlag
}

// weightOf returns the number of spans that a sampled span with this tracestate represents.
func (c *Counter) weightOf(traceState spantable.Text) float64 {
	if traceState.Len == 0 {
		return 1
	}
	sampling := c.states.Read(c.keys.request.Bytes(traceState))
	return min(sampling.Weight(), wire.MaxWeight)
}

// flagsOf returns the flags of a span: Error if its status is an error, and TopLevel if it has no
// parent or if its kind is server or consumer.
func flagsOf(s *spantable.Span) (flags span.Flags) {
	if s.Status == spantable.StatusError {
		flags |= span.Error
	}
	isEntry := s.Kind == spantable.KindServer || s.Kind == spantable.KindConsumer
	if s.Parent == 0 || isEntry {
		flags |= span.TopLevel
	}
	return flags
}

// ReadSpan decodes body, which must contain one span of the given service. It returns the flags of the span and its
// fingerprint: spans with the same fingerprint have the same labels. After ReadSpan, Label(0) returns the labels
// of the span. The fingerprint is valid until the next call. ReadSpan does not allocate.
func (c *Counter) ReadSpan(body []byte, service string, policy *Policy) (fingerprint []byte, flags span.Flags, err error) {
	c.keys.policy = policy
	r := &c.keys.request
	if err := r.Decode(body, policy.names, policy.resourceNames); err != nil {
		return nil, 0, err //nolint:wrapcheck // the decoder's error is complete
	}
	s := &r.Spans[0]
	res := c.readResource(&r.Resources[0], service)
	c.resources = append(c.resources[:0], res) // for Label
	fingerprint, _ = c.keys.fingerprintOf(s, &res)
	return fingerprint, flagsOf(s), r.Err()
}

// Label returns the key of a span of the last body, the label set under which it is counted. index is
// the index of the span in the body. The key is valid until the next call. Label implements
// span.Labeler.
func (c *Counter) Label(index uint32) *span.Key {
	r := &c.keys.request
	res := &c.resources[r.Extras[index].Resource]
	s := &r.Spans[index]
	return c.keys.keyOf(s, res)
}

// readResource reads the state that the spans of res share, except for their batch. It sorts the tags of res.
func (c *Counter) readResource(res *otlp.Resource, service string) resource {
	r := &c.keys.request
	firstTag, lastTag := inheritedTags(r, res, c.keys.policy.names.Len())
	return resource{service: service, firstTag: firstTag, lastTag: lastTag, isGo: isGo(r, res)}
}

// inheritedTags sorts the tags of a resource by label, the number that stands for their name. It
// returns the range of those that spans of the resource inherit because the operator has configured
// their names. Their labels are at least nameLabels and less than labelCount.
func inheritedTags(r *otlp.Request, res *otlp.Resource, labelCount int) (first, last uint32) {
	sortTags(r, res)
	first = findLabel(r, res, int(nameLabels))
	last = findLabel(r, res, labelCount)
	return first, last
}

// sortTags sorts the tags of a resource by label. It removes all except the first tag of each label.
func sortTags(r *otlp.Request, res *otlp.Resource) {
	tags := r.Tags[res.TagStart:res.TagEnd]
	slices.SortStableFunc(tags, func(a, b spantable.Tag) int { return cmp.Compare(a.Label, b.Label) })
	tags = slices.CompactFunc(tags, func(a, b spantable.Tag) bool { return a.Label == b.Label })
	res.TagEnd = res.TagStart + uint32(len(tags))
}

// findLabel returns the index in r.Tags of the first tag of a resource with the given label or a higher
// one. The tags of the resource must be sorted by label.
func findLabel(r *otlp.Request, res *otlp.Resource, label int) uint32 {
	tags := r.Tags[res.TagStart:res.TagEnd]
	compare := func(t spantable.Tag, label int) int { return int(t.Label) - label }
	index, _ := slices.BinarySearchFunc(tags, label, compare)
	return res.TagStart + uint32(index)
}

// Request returns the last body, decoded.
func (c *Counter) Request() *otlp.Request { return &c.keys.request }

// Batches iterates over the batches of the last body. It yields each batch with its origin, the
// description of the process that sent the spans. A batch is valid until the next call of Count.
func (c *Counter) Batches(yield func(span.Origin, *span.Batch) bool) {
	for id, batch := range c.batches.All {
		if !yield(c.origins.Get(id.Origin), batch) {
			return
		}
	}
}

// Counted identifies a span of a body: its index in the body, the number of its batch, and its index in
// the batch.
type Counted struct{ SpanIndex, Batch, IndexInBatch int }

// Counted iterates over the spans of the last body that are in a batch, in the order of the body.
func (c *Counter) Counted(yield func(Counted) bool) {
	var countInBatch [rules.MaxBatches]int
	extras := c.keys.request.Extras
	for i := range extras {
		batch := c.resources[extras[i].Resource].batch
		if batch == noBatch {
			continue
		}
		if !yield(Counted{SpanIndex: i, Batch: batch, IndexInBatch: countInBatch[batch]}) {
			return
		}
		countInBatch[batch]++
	}
}

// Release drops the last body. It frees the buffers if a very large body has made them grow.
func (c *Counter) Release() {
	c.states.Forget()
	c.keys.key.Clear()
	c.batches.Release()
	c.origins.Reset()
	clear(c.resources) // so that they do not retain the names of services
	if c.keys.request.Release() {
		c.keys.scratch, c.resources, c.places = nil, nil, nil
	}
}
