package traces

import (
	"time"

	"github.com/spanstatsd/spanstatsd/client/rules"
	"github.com/spanstatsd/spanstatsd/internal/msgpack"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// MaxBatches bounds the base services of one body. Each takes a publisher.
const MaxBatches = 32

// batch is the snapshots of one body that have one origin: those of traces whose
// roots name the same base service.
type batch struct {
	baseService string
	sender      int    // of FormatIngest, the number of its origin
	message     []byte // a spans message
	count       int
	number      int
}

// Counter turns bodies into batches of snapshots. One goroutine at a time uses
// it; its memory is used again for every body.
type Counter struct {
	// Now is the clock. Only spans without a start ask for it.
	Now func() time.Time

	payload  payload
	services serviceNames
	links    []rules.Link
	spans    rules.Spans
	set      labelSet          // the labels of the selected span's tags
	at       [maxLabels]uint32 // by label in the set: the index of its tag
	key      span.Key
	keys     keyCache
	scratch  []byte // labels that do not stand in the body as they must be
	encoded  []byte
	batches  []batch
	origins  []span.Origin // of FormatIngest

	// Of the body that is being counted.
	policy       *Policy
	id           rulebookID
	rulebook     *rulebook
	own          *labelsOf
	counts       kindSet // for their kind alone
	tracer       bool    // its tracer marked top-level spans itself
	messageBytes int
	kept         []Kept

	// Of the trace that is being counted.
	current   *batch
	sender    int // the number of its origin
	weight    float64
	synthetic bool
	keeps     bool // its spans are noted in kept
	chunk     int  // its number in the body
}

// NewCounter makes a counter.
func NewCounter() *Counter { return &Counter{Now: time.Now} }

// Count walks a body and makes batches of what the agent would count of it. lang
// is the language that the request's header names; topLevel says that the tracer
// marked top-level spans itself. With an error the body is left to the agent.
func (c *Counter) Count(format Format, body []byte, lang string, topLevel bool, policy *Policy) error {
	c.policy, c.id = policy, policy.rulebook(lang)
	c.rulebook, c.own = &rulebooks[c.id], &policy.labels.of[c.id]
	c.counts = policy.kinds & c.rulebook.counts
	c.tracer = topLevel || !c.rulebook.mending // whose statistics go by its own marks
	c.services.reset(lang)
	c.batches, c.kept = c.batches[:0], c.kept[:0]
	c.scratch, c.messageBytes = c.scratch[:0], 0
	c.keys.reset(policy)
	p := &c.payload
	if err := p.walk(format, body, policy.labels); err != nil {
		return err
	}
	if c.readSenders(); p.Failed() {
		return ErrUnread
	}
	for i := range p.chunks {
		if c.trace(i); p.Failed() {
			return ErrUnread
		}
	}
	for i := range c.batches {
		b := &c.batches[i]
		wire.EndSpans(b.message, 0, b.count)
	}
	return nil
}

// batch is the batch of a base service, begun if there is none.
func (c *Counter) batch(baseService string) *batch {
	for i := range c.batches {
		if c.batches[i].baseService == baseService && c.batches[i].sender == c.sender {
			return &c.batches[i]
		}
	}
	if len(c.batches) == MaxBatches {
		c.payload.Fail()
		return &c.batches[0]
	}
	if len(c.batches) < cap(c.batches) {
		c.batches = c.batches[:len(c.batches)+1] // with the memory of an earlier body's
	} else {
		c.batches = append(c.batches, batch{})
	}
	b := &c.batches[len(c.batches)-1]
	b.baseService, b.sender, b.count, b.number = baseService, c.sender, 0, len(c.batches)-1
	b.message = wire.BeginSpans(b.message[:0])
	return b
}

// Batches are what the last body held: an origin's base service and the body of a
// spans message for each. They are good until the next Count.
func (c *Counter) Batches(yield func(baseService string, spans []byte) bool) {
	for i := range c.batches {
		b := &c.batches[i]
		if !yield(b.baseService, b.body()) {
			return
		}
	}
}

// body is that of its spans message.
func (b *batch) body() []byte {
	_, body, err := wire.Split(b.message[wire.HeaderLen:])
	if err != nil {
		panic("BUG: a batch can't be read: " + err.Error())
	}
	return body
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
	if cap(c.payload.tags) > keptTags || cap(c.payload.strings) > keptTags || cap(c.scratch)+c.room() > keptText {
		return NewCounter()
	}
	c.payload.Reader, c.payload.body = msgpack.Reader{}, nil
	c.key.Clear()
	clear(c.links[:cap(c.links)])
	clear(c.origins)
	for i := range c.batches {
		c.batches[i].baseService = ""
	}
	c.batches, c.kept, c.current, c.origins = c.batches[:0], c.kept[:0], nil, c.origins[:0]
	return c
}

// room is what the batches of this body and of earlier ones take.
func (c *Counter) room() (bytes int) {
	for _, b := range c.batches[:cap(c.batches)] {
		bytes += cap(b.message)
	}
	return bytes + cap(c.encoded) + cap(c.kept)*keptBytes
}
