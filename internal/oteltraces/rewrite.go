package oteltraces

import "google.golang.org/protobuf/encoding/protowire"

// A body of which spans end, or resources say something else, is written anew: what lies around
// spans as it is, those that go on as they are or with another tracestate, and of each message
// that has them its new length. A scope, or a resource, of which no span goes on ends too.

// nothingLeft is the size of what ends.
const nothingLeft = -1

// measure finds out how long each message will be, and returns how long the body.
func (w *walked) measure() (size int) {
	p := &w.payload
	for i := range p.scopes {
		s := &p.scopes[i]
		s.measure(s.last-s.first, func(n int) (old, size int) {
			rec := &p.records[s.first+n]
			return int(rec.behind - rec.at), w.sizeOf(rec)
		})
	}
	size = len(p.body)
	for i := range p.resources {
		r := &p.resources[i]
		r.measure(r.last-r.first, func(n int) (old, size int) { return p.scopes[r.first+n].sizes() })
		if r.size >= 0 {
			r.size += p.markGrowth(r)
		}
		old, left := r.sizes()
		size += left - old
	}
	return size
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
func (w *walked) sizeOf(rec *record) int {
	switch rec.fate {
	case ended:
		return 0
	case raised:
		return 1 + protowire.SizeBytes(int(rec.behind-rec.body)+w.growth(rec))
	}
	return int(rec.behind - rec.at)
}

// growth is by how much a span's message becomes longer with another threshold.
func (w *walked) growth(rec *record) int {
	state := w.raisedState(rec)
	return 1 + protowire.SizeBytes(len(state)) - int(w.payload.oldState(rec))
}

// raisedState is a span's tracestate with another threshold. It is good until the next.
func (w *walked) raisedState(rec *record) []byte {
	text := rec.state.of(w.payload.body)
	w.raised = w.states.read(text).appendWith(w.raised[:0], text, w.threshold)
	return w.raised
}

func (w *walked) appendResource(dst []byte, r *resource) []byte {
	if r.size < 0 {
		return dst
	}
	p := &w.payload
	dst = protowire.AppendVarint(append(dst, byte(requestResourceSpans)), uint64(r.size))
	if r.mark != unmarked && r.saidField == 0 {
		dst = p.appendMarked(dst, r)
	}
	from := r.body
	for i := r.first; i < r.last; i++ {
		s := &p.scopes[i]
		dst = p.appendAround(dst, r, from, s.at)
		dst, from = w.appendScope(dst, s), s.behind
	}
	return p.appendAround(dst, r, from, r.behind)
}

func (w *walked) appendScope(dst []byte, s *part) []byte {
	if s.size < 0 {
		return dst
	}
	body := w.payload.body
	dst = protowire.AppendVarint(append(dst, byte(resourceSpansScopes)), uint64(s.size))
	from := s.body
	for i := s.first; i < s.last; i++ {
		if rec := &w.payload.records[i]; rec.fate != goesOn { // what goes on as it is goes with what is around it
			dst = append(dst, body[from:rec.at]...)
			dst, from = w.appendSpan(dst, rec), int(rec.behind)
		}
	}
	return append(dst, body[from:s.behind]...)
}

// appendSpan writes a span that does not go on as it is.
func (w *walked) appendSpan(dst []byte, rec *record) []byte {
	body := w.payload.body
	if rec.fate == ended {
		return dst
	}
	size := int(rec.behind-rec.body) + w.growth(rec)
	dst = protowire.AppendVarint(append(dst, byte(scopeSpansSpans)), uint64(size))
	before, behind := rec.behind, rec.behind // where there is none, it stands last
	if rec.stateField != 0 {
		before, behind = rec.stateField, rec.state.at+rec.state.len
	}
	dst = append(dst, body[rec.body:before]...)
	dst = protowire.AppendBytes(append(dst, byte(spanTraceState)), w.raisedState(rec))
	return append(dst, body[behind:rec.behind]...)
}

// oldState is how many bytes the field of a span's tracestate has.
func (p *payload) oldState(rec *record) uint32 {
	if rec.stateField == 0 {
		return 0
	}
	return rec.state.at + rec.state.len - rec.stateField
}
