package datadog

import (
	"time"

	decode "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	"github.com/spanstatsd/spanstatsd/internal/rules"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/spantable"
)

// MaxBaseServices bounds the base services of one body of a tracer. Each takes a publisher.
const MaxBaseServices = rules.MaxOrigins

// NewCounter makes a counter.
func NewCounter() *Counter { return &Counter{Now: time.Now} }

// Count reads a body and makes batches of what the agent would count of it. lang is the language
// that the request's header names; topLevel says that the tracer marked top-level spans itself.
// With an error the body is left to the agent.
func (c *Counter) Count(format decode.Format, body []byte, lang string, topLevel bool, policy *Policy) error {
	from := fromTags
	if format == decode.FormatV1 {
		from = fromFields
	}
	c.begin(&c.decoded, from, lang, topLevel, policy)
	if err := c.decoder.Decode(format, body, policy.Names(), c.table); err != nil {
		return err //nolint:wrapcheck // it says that traces can't be read
	}
	return c.countTraces()
}

// CountIngested makes batches of what the agent would count of a table that its own OTLP ingest
// has made: each group is a trace, of a sender of its own. The table is changed.
func (c *Counter) CountIngested(t *spantable.Table, policy *Policy) error {
	c.begin(t, fromOTLP, "", false, policy)
	c.senders = c.origins.Place(c.senders, c.eachSender)
	return c.countTraces()
}

// begin makes the counter ready for a body.
func (c *Counter) begin(t *spantable.Table, from source, lang string, topLevel bool, policy *Policy) {
	c.table, c.source, c.policy, c.id = t, from, policy, ofAgent
	if policy.ofTracer {
		c.id = rulebookOf(lang)
	}
	c.book, c.own = &rulebooks[c.id], &policy.labels.of[c.id]
	c.counts = policy.kinds & c.book.counts
	c.tracer = topLevel || !c.book.mending // whose statistics go by its own marks
	c.services.reset(lang)
	c.keys.Use(policy)
	c.batches.Reset()
	c.origins.Reset()
	c.kept, c.made, c.senders = c.kept[:0], c.made[:0], c.senders[:0]
}

func (c *Counter) countTraces() error {
	for i := range c.table.Groups {
		if c.table.Err() != nil {
			break
		}
		c.countTrace(i)
	}
	return c.table.Err() //nolint:wrapcheck // it says that traces can't be read
}

// Batches are what the last body held: the snapshots of each base service. They are good until the
// next body.
func (c *Counter) Batches(yield func(baseService string, batch *span.Batch) bool) {
	for origin, batch := range c.batches.All {
		if !yield(origin.Service, batch) {
			return
		}
	}
}

// IngestedBatches are the same of a table of CountIngested, each with an origin that may be kept.
func (c *Counter) IngestedBatches(yield func(origin span.Origin, batch *span.Batch) bool) {
	for from, batch := range c.batches.All {
		origin := c.origins.Of(from.Number)
		if origin.Service = from.Service; !yield(origin, batch) {
			return
		}
	}
}

// Decoded is the table of the last body, and what has read it.
func (c *Counter) Decoded() (*spantable.Table, *decode.Decoder) { return &c.decoded, &c.decoder }

// Release lets go of the last body, and of the memory that only a very large one needed.
func (c *Counter) Release() {
	c.decoder.Release()
	if c.decoded.Release() || cap(c.made) > keptText || cap(c.kept)*keptBytes > keptText {
		c.links, c.made, c.kept = nil, nil, nil
	}
	c.batches.Release()
	c.key.Clear()
	clear(c.links[:cap(c.links)])
	c.origins.Reset()
	c.table, c.kept = &c.decoded, c.kept[:0]
}
