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

// Counter turns bodies into batches of snapshots.
type Counter struct {
	keys      keys
	states    tracestate.Memo
	batches   rules.Batches
	origins   rules.Origins
	places    []rules.Place // by resource that has spans
	resources []resource    // by resource
}

// resource is what the spans of a resource have in common.
type resource struct {
	batch       int    // its number, less than 0 if the resource has no spans
	service     string // of its origin
	first, last uint32 // tags of the resource that an operator named as labels of spans
}

// NewCounter makes a counter.
func NewCounter() *Counter { return &Counter{} }

// CounterBytes is the most that a counter takes for bodies of that length.
func CounterBytes(body int) int { return otlp.Bytes(body, rules.SnapshotBytes) + anyCounter }

// anyCounter is what a counter takes for any body: a fingerprint, its origins, and the labels of a span.
const anyCounter = rules.MaxFingerprint + 256<<10

// Decode fills a request from a body, with the tags that have a label.
type Decode func(r *otlp.Request, body []byte, ofSpans, ofResources *spantable.Names) error

// Count decodes a body of OTLP and makes batches of its spans. With an error nothing of it is counted.
func (c *Counter) Count(body []byte, policy *Policy) error {
	return c.CountBy((*otlp.Request).Decode, body, policy)
}

// CountBy is the same of a body of another format.
func (c *Counter) CountBy(decode Decode, body []byte, policy *Policy) error {
	c.keys.policy = policy
	c.batches.Reset(c)
	c.states.Forget()
	c.resources = c.resources[:0]
	r := &c.keys.request
	if err := decode(r, body, policy.names, policy.resourceNames); err != nil {
		return err //nolint:wrapcheck // it says what to do
	}
	c.places = c.origins.Place(c.places[:0], c.senders)
	placed := 0
	for i := range r.Resources {
		of := &r.Resources[i]
		if first, last := r.SpansOf(of); first == last {
			c.resources = append(c.resources, resource{batch: -1})
			continue
		}
		c.countResource(of, c.places[placed])
		if placed++; r.Err() != nil {
			c.batches.Reset(nil)
			return r.Err()
		}
	}
	return nil
}

// senders visits the origins of all resources that have spans.
func (c *Counter) senders(yield func(span.Origin) bool) {
	r := &c.keys.request
	for i := range r.Resources {
		of := &r.Resources[i]
		if first, last := r.SpansOf(of); first < last && !yield(origin(r, of, c.keys.policy.keep)) {
			return
		}
	}
}

// countResource counts the spans of a resource under an origin.
func (c *Counter) countResource(of *otlp.Resource, under rules.Place) {
	r := &c.keys.request
	number := int(under.Number)
	batch, _ := c.batches.Of(rules.Origin{Number: number})
	service := c.origins.Of(number).Service
	if number == rules.Common {
		service = origin(r, of, nil).Service
	}
	var flags span.Flags
	if under.IsShared {
		flags = span.SharedOrigin
	}
	firstTag, lastTag := ownTags(r, of, c.keys.policy.names.Len())
	c.resources = append(c.resources, resource{batch, service, firstTag, lastTag})
	first, last := r.SpansOf(of)
	for i := first; i < last; i++ {
		s := &r.Spans[i]
		end := int64(min(s.Start+s.Duration, math.MaxInt64))
		snapshot := span.Snapshot{Duration: s.Duration, End: end, Weight: 1, Span: uint32(i), Flags: flags}
		if s.Status == spantable.StatusError {
			snapshot.Flags |= span.Error
		}
		if s.Parent == 0 || s.Kind == spantable.KindServer || s.Kind == spantable.KindConsumer {
			snapshot.Flags |= span.TopLevel
		}
		if state := r.Extras[i].State; state.Len > 0 {
			snapshot.Weight = min(c.states.Read(r.Bytes(state)).Weight(), wire.MaxWeight)
		}
		var fingerprint []byte
		if c.keys.isIgnored(s, firstTag, lastTag) {
			snapshot.Flags |= span.Ignored
		} else {
			fingerprint = c.keys.fingerprintOf(s, service, firstTag, lastTag)
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

// Label returns the key of a span of the last body, see span.Labeller.
func (c *Counter) Label(number uint32) *span.Key {
	r := &c.keys.request
	of := &c.resources[r.Extras[number].Resource]
	s := &r.Spans[number]
	c.keys.selectSpan(s, of.first, of.last)
	return c.keys.label(s, of.service)
}

// ownTags sorts the tags of a resource by their labels, and returns where those begin and end that an
// operator named as labels: those that spans may have too, of which there are so many. Of two with one
// label it leaves the first, which counts: each span may have to look through all that are left.
func ownTags(r *otlp.Request, of *otlp.Resource, ofSpans int) (first, last uint32) {
	tags := r.Tags[of.FirstTag:of.LastTag]
	slices.SortStableFunc(tags, func(a, b spantable.Tag) int { return cmp.Compare(a.Label, b.Label) })
	tags = slices.CompactFunc(tags, func(a, b spantable.Tag) bool { return a.Label == b.Label })
	of.LastTag = of.FirstTag + uint32(len(tags))
	before := func(label int) uint32 {
		byLabel := func(t spantable.Tag, label int) int { return int(t.Label) - label }
		n, _ := slices.BinarySearchFunc(tags, label, byLabel)
		return of.FirstTag + uint32(n)
	}
	return before(int(ownLabels)), before(ofSpans)
}

// Request is the last body, decoded.
func (c *Counter) Request() *otlp.Request { return &c.keys.request }

// Batches are what the last body held: an origin, and the snapshots of its spans. Both are good
// until the next Count.
func (c *Counter) Batches(yield func(span.Origin, *span.Batch) bool) {
	for of, batch := range c.batches.All {
		if !yield(c.origins.Of(of.Number), batch) {
			return
		}
	}
}

// Counted is a span of a body: its number, the number of its batch, and its place in that.
type Counted struct{ Span, Batch, At int }

// Counted visits the spans of the last body.
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

// Release lets go of the last body, and of the memory that only a very large one needed.
func (c *Counter) Release() {
	c.states.Forget()
	c.keys.key.Clear()
	c.batches.Release()
	c.origins.Reset()
	clear(c.resources) // or they would keep the names of services
	if c.keys.request.Release() {
		c.keys.scratch, c.resources, c.places = nil, nil, nil
	}
}
