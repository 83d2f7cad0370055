package oteltraces

import (
	"cmp"
	"math"
	"slices"
)

// payload is one body, walked: everything that a label is made of, in memory that holds
// no pointer into the body and is used again for the next one.
type payload struct {
	body      []byte
	err       error // why it is not read any further
	limits    limits
	policy    *Policy
	resources []resource
	scopes    []part
	records   []record
	tags      []tag
}

// walk reads a body. What it finds is valid until the body is used again.
func (p *payload) walk(body []byte, policy *Policy) error {
	p.body, p.err, p.policy, p.limits = body, nil, policy, limitsOf(len(body))
	p.resources, p.scopes, p.records, p.tags = p.resources[:0], p.scopes[:0], p.records[:0], p.tags[:0]
	if len(body) > math.MaxInt32 {
		p.fail(ErrTooMuch)
	}
	for at := 0; at < len(body) && p.err == nil; {
		f, next := readField(body, at)
		switch {
		case next == 0:
			p.fail(ErrUnread)
		case f.tag == requestResourceSpans:
			p.resourceSpans(at, f.at, next)
		}
		at = next
	}
	return p.err
}

// fail ends the walk, for the first reason that is given.
func (p *payload) fail(why error) {
	if p.err == nil {
		p.err = why
	}
}

// resourceSpans reads a resource with its spans. Which of both comes first is left to who
// wrote them.
func (p *payload) resourceSpans(at, begin, end int) {
	if len(p.resources) >= p.limits.parts {
		p.fail(ErrTooMuch)
		return
	}
	r := resource{part: part{at: at, behind: end, body: begin, first: len(p.scopes)}, batch: -1}
	place := len(p.resources)
	p.resources = append(p.resources, r)
	b := p.body[:end]
	for at := begin; at < end && p.err == nil; {
		f, next := readField(b, at)
		switch {
		case next == 0:
			p.fail(ErrUnread)
		case f.tag == resourceSpansScopes:
			p.scopeSpans(at, f.at, next, uint32(place))
		case f.tag == resourceSpansResource:
			if r.said.len > 0 {
				p.fail(ErrUnread) // who it is in two parts: no SDK writes that
			}
			r.said, r.saidField = textAt(f.at, next), at
		}
		at = next
	}
	r.last = len(p.scopes)
	r.firstTag = len(p.tags)
	p.resourceAttributes(&r)
	tags := p.tags[r.firstTag:]
	slices.SortStableFunc(tags, func(a, b tag) int { return cmp.Compare(a.label, b.label) })
	r.lastTag = len(p.tags)
	r.ownTag = r.lastTag
	for r.ownTag > r.firstTag && p.tags[r.ownTag-1].label >= ownLabels {
		r.ownTag--
	}
	p.resources[place] = r
}

// resourceAttributes reads what a resource says of who sent its spans.
func (p *payload) resourceAttributes(r *resource) {
	b := p.body[:r.said.at+r.said.len]
	for at := int(r.said.at); at < len(b) && p.err == nil; {
		f, next := readField(b, at)
		switch {
		case next == 0:
			p.fail(ErrUnread)
		case f.tag == resourceAttributes:
			p.attribute(b[:next], f.at, p.policy.resourceNames)
		case f.tag == resourceEntities && !isMessage(b[:next], f.at, messageEntity, 0):
			p.fail(ErrUnread)
		}
		at = next
	}
}

// scopeSpans reads the spans of one instrumentation scope.
func (p *payload) scopeSpans(at, begin, end int, resource uint32) {
	if len(p.scopes) >= p.limits.parts {
		p.fail(ErrTooMuch)
		return
	}
	place := len(p.scopes)
	p.scopes = append(p.scopes, part{at: at, behind: end, body: begin, first: len(p.records)})
	b := p.body[:end]
	for at := begin; at < end && p.err == nil; {
		f, next := readField(b, at)
		switch {
		case next == 0:
			p.fail(ErrUnread)
		case f.tag == scopeSpansSpans:
			p.span(at, f.at, next, resource, uint32(place))
		case f.tag == scopeSpansScope && !isMessage(b[:next], f.at, messageScope, 0):
			p.fail(ErrUnread)
		}
		at = next
	}
	p.scopes[place].last = len(p.records)
}

// span reads a span.
func (p *payload) span(at, begin, end int, resource, scope uint32) {
	if len(p.records) >= p.limits.spans {
		p.fail(ErrTooMuch)
		return
	}
	p.tags = slices.Grow(p.tags, attributesAhead)
	rec := record{
		at: uint32(at), behind: uint32(end), body: uint32(begin), first: uint32(len(p.tags)),
		resource: resource, scope: scope, isRoot: true,
	}
	b := p.body[:end]
	for at := begin; at < end; {
		if b[at] == byte(spanAttributes) {
			if at = p.commonAttributes(b, at, byte(spanAttributes), p.policy.names); at == end {
				break
			}
		}
		f, next := readField(b, at)
		if next == 0 || !p.spanField(&rec, f, b[:next]) {
			p.fail(ErrUnread)
			return
		}
		if f.tag == spanTraceState {
			rec.stateField = uint32(at)
		}
		at = next
	}
	if rec.last = uint32(len(p.tags)); len(p.tags) > p.limits.tags {
		p.fail(ErrTooMuch)
	}
	p.records = append(p.records, rec)
}

// spanField reads a field of a span, which ends where b does. It reports false where that
// is not written as it must be.
func (p *payload) spanField(rec *record, f field, b []byte) bool {
	switch f.tag {
	case spanTraceID:
		return readID(&rec.traceID, b, f.at, traceIDBytes)
	case spanID:
		return readID(&rec.id, b, f.at, spanIDBytes)
	case spanParentID:
		rec.isRoot = isZero(b[f.at:])
		return readID(&rec.parent, b, f.at, spanIDBytes)
	case spanTraceState:
		rec.state = textAt(f.at, len(b))
	case spanName:
		rec.name = textAt(f.at, len(b))
	case spanKind:
		rec.kind = kindNumbered(f.value)
	case spanStart:
		rec.start = f.value
	case spanEnd:
		rec.end = f.value
	case spanAttributes:
		p.attribute(b, f.at, p.policy.names)
		return p.err == nil
	case spanEvents:
		return isMessage(b, f.at, messageEvent, 0)
	case spanLinks:
		return isMessage(b, f.at, messageLink, 0)
	case spanStatus:
		return readStatus(rec, b, f.at)
	}
	return true
}

// The lengths of ids. One that is not there has none.
const (
	traceIDBytes = 16
	spanIDBytes  = 8
)

// readID notes where an id lies, unless it is not there. It reports false where it has
// another length.
func readID(to *uint32, b []byte, at, length int) bool {
	if *to = uint32(at); at == len(b) {
		*to = 0
	}
	return len(b)-at == length || at == len(b)
}

func isZero(id []byte) bool {
	for _, c := range id {
		if c != 0 {
			return false
		}
	}
	return true
}

// readStatus reads how a span ended.
func readStatus(rec *record, b []byte, at int) bool {
	for at < len(b) {
		f, next := readField(b, at)
		if next == 0 {
			return false
		}
		if f.tag == statusCode {
			rec.code = uint8(min(uint32(f.value), maxCode))
		}
		at = next
	}
	return true
}

// maxCode stands for every code that a status does not have.
const maxCode = 255
