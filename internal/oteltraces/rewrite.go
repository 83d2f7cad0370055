package oteltraces

import "google.golang.org/protobuf/encoding/protowire"

// A body of which spans end is written anew: what lies around spans as it is, those that go
// on as they are or with another tracestate, and of each message that has them its new
// length. A scope, or a resource, of which no span goes on ends too.

// nothingLeft is the size of what ends.
const nothingLeft = -1

// rewrite appends what goes on.
func (c *Counter) rewrite(dst []byte, threshold uint64) []byte {
	p := &c.payload
	for i := range p.scopes {
		s := &p.scopes[i]
		s.measure(s.last-s.first, func(n int) (old, size int) {
			rec := &p.records[s.first+n]
			return int(rec.behind - rec.at), c.sizeOf(rec, threshold)
		})
	}
	for i := range p.resources {
		r := &p.resources[i]
		r.measure(r.last-r.first, func(n int) (old, size int) { return p.scopes[r.first+n].sizes() })
	}
	from := 0
	for i := range p.resources {
		r := &p.resources[i]
		dst = append(dst, p.body[from:r.at]...)
		dst, from = c.appendResource(dst, r, threshold), r.behind
	}
	return append(dst, p.body[from:]...)
}

// measure adds up what is left of a message by what is left of n messages in it, each with
// the bytes that it has, tag and all, and those that are left of it.
func (m *part) measure(n int, child func(int) (old, size int)) {
	m.size = m.behind - m.body
	isKept := false
	for i := range n {
		old, size := child(i)
		m.size += max(size, 0) - old
		isKept = isKept || size > 0
	}
	if n > 0 && !isKept {
		m.size = nothingLeft
	}
}

// sizes are the bytes of a message with its tag and length, as it is and as it will be.
func (m *part) sizes() (old, size int) {
	if m.size < 0 {
		return m.behind - m.at, 0
	}
	return m.behind - m.at, 1 + protowire.SizeBytes(m.size)
}

// sizeOf is the bytes of a span with its tag and length, as it will be.
func (c *Counter) sizeOf(rec *record, threshold uint64) int {
	switch rec.fate {
	case ended:
		return 0
	case raised:
		return 1 + protowire.SizeBytes(int(rec.behind-rec.body)+c.growth(rec, threshold))
	}
	return int(rec.behind - rec.at)
}

// growth is by how much a span's message becomes longer with another threshold.
func (c *Counter) growth(rec *record, threshold uint64) int {
	state := c.raisedState(rec, threshold)
	return 1 + protowire.SizeBytes(len(state)) - int(c.payload.oldState(rec))
}

// raisedState is a span's tracestate with another threshold. It is good until the next.
func (c *Counter) raisedState(rec *record, threshold uint64) []byte {
	text := rec.state.of(c.payload.body)
	c.scratch = c.states.read(text).appendWith(c.scratch[:0], text, threshold)
	return c.scratch
}

func (c *Counter) appendResource(dst []byte, r *resource, threshold uint64) []byte {
	if r.size < 0 {
		return dst
	}
	dst = protowire.AppendVarint(append(dst, byte(requestResourceSpans)), uint64(r.size))
	from := r.body
	for i := r.first; i < r.last; i++ {
		s := &c.payload.scopes[i]
		dst = append(dst, c.payload.body[from:s.at]...)
		dst, from = c.appendScope(dst, s, threshold), s.behind
	}
	return append(dst, c.payload.body[from:r.behind]...)
}

func (c *Counter) appendScope(dst []byte, s *part, threshold uint64) []byte {
	if s.size < 0 {
		return dst
	}
	dst = protowire.AppendVarint(append(dst, byte(resourceSpansScopes)), uint64(s.size))
	from := s.body
	for i := s.first; i < s.last; i++ {
		rec := &c.payload.records[i]
		dst = append(dst, c.payload.body[from:rec.at]...)
		dst, from = c.appendSpan(dst, rec, threshold), int(rec.behind)
	}
	return append(dst, c.payload.body[from:s.behind]...)
}

func (c *Counter) appendSpan(dst []byte, rec *record, threshold uint64) []byte {
	body := c.payload.body
	switch rec.fate {
	case ended:
		return dst
	case goesOn:
		return append(dst, body[rec.at:rec.behind]...)
	}
	size := int(rec.behind-rec.body) + c.growth(rec, threshold)
	dst = protowire.AppendVarint(append(dst, byte(scopeSpansSpans)), uint64(size))
	before, behind := rec.behind, rec.behind // where there is none, it stands last
	if rec.stateField != 0 {
		before, behind = rec.stateField, rec.state.at+rec.state.len
	}
	dst = append(dst, body[rec.body:before]...)
	dst = protowire.AppendBytes(append(dst, byte(spanTraceState)), c.raisedState(rec, threshold))
	return append(dst, body[behind:rec.behind]...)
}

// oldState is how many bytes the field of a span's tracestate has.
func (p *payload) oldState(rec *record) uint32 {
	if rec.stateField == 0 {
		return 0
	}
	return rec.state.at + rec.state.len - rec.stateField
}
