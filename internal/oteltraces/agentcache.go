package oteltraces

import (
	"encoding/binary"

	"github.com/spanstatsd/spanstatsd/internal/bytecache"
)

// translatedSpans remembers what was written of a span, but for what is its own (ids, times,
// an error), by what it was made of, as it lies in a body. The names and tags of a span that is
// like an earlier one cost a copy, a hash and a comparison.
type translatedSpans struct {
	bytecache.Cache
	processes saidCache[uint64]
	last      uint64 // number of a process
	process   uint64 // number of the one whose spans are being written, 0 of one that says too much
}

// enter selects a process by what its resource says.
func (m *translatedSpans) enter(said []byte) {
	m.process = 0
	if len(said) <= mostSaid {
		m.process = m.processes.of(said, func() uint64 { m.last++; return m.last })
	}
}

// source collects what a span is made of beside what is its own: its kind, name and
// tracestate, its tags and those of its scope, as they stand in the body, and the number of its
// process. It returns 0 where that is too much to be remembered.
func (m *translatedSpans) source(p *payload, rec *record, scope scopeTags) int {
	if m.process == 0 || uint64(rec.name.len)+uint64(rec.state.len) > bytecache.MaxSource-16 {
		return 0
	}
	facts := uint64(rec.kind) | uint64(rec.last-rec.first)<<8 | uint64(rec.name.len)<<32 | uint64(rec.state.len)<<48
	binary.LittleEndian.PutUint64(m.Source[:], facts)
	binary.LittleEndian.PutUint64(m.Source[8:], m.process)
	n := 16 + copy(m.Source[16:], rec.name.of(p.body))
	n += copy(m.Source[n:], rec.state.of(p.body))
	n = putTags(&m.Cache, n, p, p.tags[rec.first:rec.last])
	n = putTags(&m.Cache, n, p, p.tags[scope.first:scope.last])
	if n > bytecache.MaxSource {
		return 0
	}
	return n
}

// write writes a span: what is its own, and then the rest of it.
func (c *Translator) write(place int) {
	p := &c.payload
	rec := &p.records[place]
	scope := c.scopes[int(rec.scope)-p.resources[rec.resource].first]
	if len(c.written)+p.mostOf(rec, scope) > p.limits.made {
		p.fail(ErrTooMuch)
		return
	}
	c.written = c.own(c.written, rec)
	n := c.cache.source(p, rec, scope)
	if n == 0 {
		c.written = c.rest(c.written, rec, scope)
		return
	}
	made, at := c.cache.Find(n)
	if made != nil {
		c.written = append(c.written, made...)
		return
	}
	start := len(c.written)
	if c.written = c.rest(c.written, rec, scope); p.err == nil {
		c.cache.Keep(at, c.written[start:])
	}
}

// mostOf is more than a span takes: each text stands in the body, be it its own, its scope's or
// its resource's, and may become three tags, and the agent cuts its resource.
func (p *payload) mostOf(rec *record, scope scopeTags) int {
	r := &p.resources[rec.resource]
	return 3*(int(rec.behind-rec.body+r.said.len)+scope.bytes) + maxAgentResource + factsRoom
}
