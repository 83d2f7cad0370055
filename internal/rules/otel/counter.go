package otel

import (
	"cmp"
	"math"
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/decode/otlp"
	"github.com/spanstatsd/spanstatsd/internal/rules"
	"github.com/spanstatsd/spanstatsd/internal/sampling/tracestate"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// Counter converts bodies to batches of snapshots.
type Counter struct {
	keys      keys
	states    tracestate.Memo
	batches   rules.Batches
	origins   rules.Origins
	places    []rules.Place // one per resource with spans
	resources []resource    // one per resource
}

// resource is the state that the spans of a resource share.
type resource struct {
	batch       int    // number of the batch; negative if the resource has no spans
	service     string // service of the origin
	first, last uint32 // range of resource tags that can be labels of spans
	isGo        bool   // the spans are from Go's SDK
}

// NewCounter returns a counter.
func NewCounter() *Counter { return &Counter{} }

// CounterBytes returns the maximum memory of a counter for bodies of the given length.
func CounterBytes(body int) int { return otlp.Bytes(body, rules.SnapshotBytes) + anyCounter }

// anyCounter is the memory of a counter that does not depend on the body: a fingerprint, the
// origins, and the labels of a span.
const anyCounter = rules.MaxFingerprint + 256<<10

// Decode decodes a body into a request. It keeps only the attributes of spans and resources that
// are in the names.
type Decode func(r *otlp.Request, body []byte, ofSpans, ofResources *spantable.Names) error

// Count decodes an OTLP body and counts its spans. On an error no span is counted.
func (c *Counter) Count(body []byte, policy *Policy) error {
	return c.CountBy((*otlp.Request).Decode, body, policy)
}

// CountBy is like Count for a body in another format.
func (c *Counter) CountBy(decode Decode, body []byte, policy *Policy) error {
	c.keys.policy = policy
	c.batches.Reset(c)
	c.states.Forget()
	c.resources = c.resources[:0]
	r := &c.keys.request
	if err := decode(r, body, policy.names, policy.resourceNames); err != nil {
		return err //nolint:wrapcheck // the decoder's error is complete
	}
	c.places = c.origins.AssignOrigins(c.places[:0], c.senders)
	placed := 0
	for i := range r.Resources {
		res := &r.Resources[i]
		if first, last := r.SpansOf(res); first == last {
			c.resources = append(c.resources, resource{batch: -1})
			continue
		}
		c.countResource(res, c.places[placed])
		placed++
		if r.Err() != nil {
			c.batches.Reset(nil)
			return r.Err()
		}
	}
	return nil
}

// senders iterates over the origins of all resources with spans.
func (c *Counter) senders(yield func(span.Origin) bool) {
	r := &c.keys.request
	for i := range r.Resources {
		res := &r.Resources[i]
		first, last := r.SpansOf(res)
		if first < last && !yield(origin(r, res, c.keys.policy.keep)) {
			return
		}
	}
}

// countResource adds the snapshots of a resource's spans to the batch of the origin at place.
func (c *Counter) countResource(res *otlp.Resource, place rules.Place) {
	r := &c.keys.request
	number := int(place.Number)
	batch, _ := c.batches.FindOrAdd(rules.Origin{Number: number})
	service := c.origins.Get(number).Service
	if number == rules.Common {
		service = origin(r, res, nil).Service
	}
	var flags span.Flags
	if place.IsShared {
		flags = span.SharedOrigin
	}
	firstTag, lastTag := ownTags(r, res, c.keys.policy.names.Len())
	c.keys.isGo = isGo(r, res)
	c.resources = append(c.resources, resource{batch, service, firstTag, lastTag, c.keys.isGo})
	first, last := r.SpansOf(res)
	for i := first; i < last; i++ {
		s := &r.Spans[i]
		end := int64(min(s.Start+s.Duration, math.MaxInt64))
		snapshot := span.Snapshot{
			Duration: s.Duration, End: end, Weight: 1, Span: uint32(i), Flags: flags | flagsOf(s),
		}
		if state := r.Extras[i].State; state.Len > 0 {
			snapshot.Weight = min(c.states.Read(r.Bytes(state)).Weight(), wire.MaxWeight)
		}
		var fingerprint []byte
		if c.keys.isIgnored(s, firstTag, lastTag) {
			snapshot.Flags |= span.Ignored
		} else {
			var isRenamed bool
			if fingerprint, isRenamed = c.keys.fingerprintOf(s, service, firstTag, lastTag); isRenamed {
				snapshot.Flags |= span.Renamed
			}
		}
		c.batches.Add(batch, fingerprint, snapshot)
		if c.batches.FingerprintBytes() > r.Limits.DerivedBytes {
			r.Fail(spantable.ErrTooMuch)
		}
		if r.Err() != nil {
			return
		}
	}
}

// flagsOf returns whether a span has failed, and whether it is the entry span of its service.
func flagsOf(s *spantable.Span) (flags span.Flags) {
	if s.Status == spantable.StatusError {
		flags |= span.Error
	}
	if s.Parent == 0 || s.Kind == spantable.KindServer || s.Kind == spantable.KindConsumer {
		flags |= span.TopLevel
	}
	return flags
}

// ReadSpan decodes a body with a single span of the given service, and returns the fingerprint and the flags of the
// span. Label(0) then returns its key. Clients that count their own spans use it instead of Count, because it
// allocates nothing for a body.
func (c *Counter) ReadSpan(body []byte, service string, policy *Policy) (fingerprint []byte, flags span.Flags, err error) {
	c.keys.policy = policy
	r := &c.keys.request
	if err := r.Decode(body, policy.names, policy.resourceNames); err != nil {
		return nil, 0, err //nolint:wrapcheck // the decoder's error is complete
	}
	res, s := &r.Resources[0], &r.Spans[0]
	first, last := ownTags(r, res, c.keys.policy.names.Len())
	c.keys.isGo = isGo(r, res)
	c.resources = append(c.resources[:0], resource{service: service, first: first, last: last, isGo: c.keys.isGo})
	fingerprint, _ = c.keys.fingerprintOf(s, service, first, last)
	return fingerprint, flagsOf(s), r.Err()
}

// Label returns the key of span number of the last body, see span.Labeller.
func (c *Counter) Label(number uint32) *span.Key {
	r := &c.keys.request
	res := &c.resources[r.Extras[number].Resource]
	s := &r.Spans[number]
	c.keys.isGo = res.isGo
	return c.keys.label(s, res.service, res.first, res.last)
}

// ownTags returns the range of resource tags that an operator named as labels of spans: those with
// a label from nameLabels to spanLabels, the number of labels that spans can have. It sorts the tags
// of the resource by label, and removes all except the first tag of a label, because each span may
// have to search all of them.
func ownTags(r *otlp.Request, res *otlp.Resource, spanLabels int) (first, last uint32) {
	tags := r.Tags[res.FirstTag:res.LastTag]
	slices.SortStableFunc(tags, func(a, b spantable.Tag) int { return cmp.Compare(a.Label, b.Label) })
	tags = slices.CompactFunc(tags, func(a, b spantable.Tag) bool { return a.Label == b.Label })
	res.LastTag = res.FirstTag + uint32(len(tags))
	indexOf := func(label int) uint32 {
		byLabel := func(t spantable.Tag, label int) int { return int(t.Label) - label }
		n, _ := slices.BinarySearchFunc(tags, label, byLabel)
		return res.FirstTag + uint32(n)
	}
	return indexOf(int(nameLabels)), indexOf(spanLabels)
}

// Request returns the last body, decoded.
func (c *Counter) Request() *otlp.Request { return &c.keys.request }

// Batches iterates over the origins of the last body and their batches. Both are valid until the
// next Count.
func (c *Counter) Batches(yield func(span.Origin, *span.Batch) bool) {
	for id, batch := range c.batches.All {
		if !yield(c.origins.Get(id.Number), batch) {
			return
		}
	}
}

// Counted identifies a span of a body: its number, the number of its batch, and its index in the
// batch.
type Counted struct{ Span, Batch, At int }

// Counted iterates over the spans of the last body.
func (c *Counter) Counted(yield func(Counted) bool) {
	var next [rules.MaxBatches]int
	for i := range c.keys.request.Extras {
		batch := c.resources[c.keys.request.Extras[i].Resource].batch
		if !yield(Counted{i, batch, next[batch]}) {
			return
		}
		next[batch]++
	}
}

// Release drops the last body, and frees the memory that only a very large body needs.
func (c *Counter) Release() {
	c.states.Forget()
	c.keys.key.Clear()
	c.keys.route = ""
	c.batches.Release()
	c.origins.Reset()
	clear(c.resources) // so that they do not retain the names of services
	if c.keys.request.Release() {
		c.keys.scratch, c.resources, c.places = nil, nil, nil
	}
}
