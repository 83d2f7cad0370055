package oteltraces

import (
	"errors"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// What a body gives that is left to whoever takes it.
var (
	ErrUnread  = errors.New("read spans: the body is no ExportTraceServiceRequest of OTLP in protobuf: check what the sender writes, or that no proxy changes it")
	ErrTooMuch = errors.New("read spans: the body holds more spans, attributes or resources than one of its length may: let the sender make smaller requests")
)

// Counter turns bodies into batches of snapshots. One goroutine at a time uses it; its
// memory is used again for every body.
type Counter struct {
	walked
	batches batches
	origins saidCache[*span.Origin]
	keys    keyCache

	policy   *Policy
	selected selected // the attributes of the span whose key is being made
	key      span.Key
	scratch  []byte // labels that do not stand in the body as they must be
	encoded  []byte
	made     int // bytes of keys
}

// NewCounter makes a counter.
func NewCounter() *Counter { return &Counter{} }

// Count walks a body and makes batches of its spans. With an error nothing of it is
// counted.
func (c *Counter) Count(body []byte, policy *Policy) error {
	c.policy = policy
	c.keys.reset(policy)
	c.batches.reset()
	c.states.forget()
	c.made = 0
	p := &c.payload
	if err := p.walk(body, policy); err != nil {
		return err
	}
	for i := range p.records {
		if c.count(&p.records[i]); p.err != nil {
			c.batches.reset()
			return p.err
		}
	}
	c.batches.end()
	return nil
}

// count appends one span to its batch.
func (c *Counter) count(rec *record) {
	r := &c.payload.resources[rec.resource]
	if r.batch < 0 && !c.begin(r) {
		return
	}
	c.scratch = c.scratch[:0]
	var flags span.Flags
	if rec.code == codeError {
		flags |= span.Error
	}
	if rec.isRoot || rec.kind == kindServer || rec.kind == kindConsumer {
		flags |= span.TopLevel
	}
	weight := 1.0
	if rec.state.len > 0 {
		weight = min(c.states.read(rec.state.of(c.payload.body)).weight(), wire.MaxWeight)
	}
	key := c.encode(rec, r, c.batches.all[r.batch].origin.Service)
	c.batches.add(r.batch, key, rec.duration(), endOf(rec), flags, weight)
	if c.made += len(key); c.made > c.payload.limits.made {
		c.payload.fail(ErrTooMuch)
	}
}

// begin finds the batch of a resource's spans.
func (c *Counter) begin(r *resource) bool {
	origin := c.origin(r)
	batch, ok := c.batches.of(origin)
	if !ok {
		c.payload.fail(ErrTooMuch)
		return false
	}
	r.batch = batch
	return true
}

// Batches are what the last body held: an origin, and the body of a spans message for it.
// Both are good until the next Count.
func (c *Counter) Batches(yield func(origin span.Origin, spans []byte) bool) {
	for i := range c.batches.all {
		b := &c.batches.all[i]
		_, body, err := wire.Split(b.message[wire.HeaderLen:])
		if err != nil {
			panic("BUG: a batch can't be read: " + err.Error())
		}
		if !yield(*b.origin, body) {
			return
		}
	}
}

// keptTags and keptText bound the memory that a counter keeps from one body to the next:
// in tags, which is what some thousand spans need, and in bytes of what it writes.
const (
	keptTags = 1 << 16
	keptText = 4 << 20
)

// Next is the counter for the next body. It holds nothing of the last one, nor the memory
// that only a very large one needed.
func (c *Counter) Next() *Counter {
	if cap(c.payload.tags) > keptTags || c.batches.room()+cap(c.scratch)+cap(c.encoded) > keptText {
		return NewCounter()
	}
	c.release()
	c.key.Clear()
	c.batches.reset()
	return c
}
