package otlp

import "github.com/spanstatsd/spanstatsd/internal/spantable"

// Decode decodes a body. What it finds is valid until the body is used again.
func (r *Request) Decode(body []byte, ofSpans, ofResources *spantable.Names) error {
	r.Begin(body)
	r.ofSpans, r.ofResources = ofSpans, ofResources
	for at := 0; at < len(body) && r.Err() == nil; {
		f, next := readField(body, at)
		switch {
		case next == 0:
			r.Fail(ErrUnread)
		case f.tag == requestResourceSpans:
			r.resourceSpans(at, f.at, next)
		}
		at = next
	}
	return r.Err()
}

// resourceSpans reads a resource with its spans. Which of both comes first is left to who wrote
// them.
func (r *Request) resourceSpans(at, begin, end int) {
	if len(r.Resources) >= partsOf(len(r.Body)) {
		r.Fail(spantable.ErrTooMuch)
		return
	}
	of := Resource{Part: Part{At: at, End: end, Body: begin, First: len(r.Scopes)}}
	number := len(r.Resources)
	r.Resources = append(r.Resources, of)
	b := r.Body[:end]
	for at := begin; at < end && r.Err() == nil; {
		f, next := readField(b, at)
		switch {
		case next == 0:
			r.Fail(ErrUnread)
		case f.tag == resourceSpansScopes:
			r.scopeSpans(at, f.at, next, uint32(number))
		case f.tag == resourceSpansResource:
			if of.Said.Len > 0 {
				r.Fail(ErrUnread) // who it is in two parts: no SDK writes that
			}
			of.Said, of.SaidField = textAt(f.at, next), at
		}
		at = next
	}
	of.Last, of.FirstTag = len(r.Scopes), uint32(len(r.Tags))
	r.attributesOf(of.Said, resourceAttributes, resourceEntities, r.ofResources)
	of.LastTag = uint32(len(r.Tags))
	r.Resources[number] = of
}

// scopeSpans reads the spans of one instrumentation scope.
func (r *Request) scopeSpans(at, begin, end int, resource uint32) {
	if len(r.Scopes) >= partsOf(len(r.Body)) {
		r.Fail(spantable.ErrTooMuch)
		return
	}
	of := Scope{Part: Part{At: at, End: end, Body: begin, First: len(r.Spans)}}
	number := len(r.Scopes)
	r.Scopes = append(r.Scopes, of)
	var said spantable.Text
	b := r.Body[:end]
	for at := begin; at < end && r.Err() == nil; {
		f, next := readField(b, at)
		switch {
		case next == 0:
			r.Fail(ErrUnread)
		case f.tag == scopeSpansSpans:
			r.span(Place{
				At: uint32(at), End: uint32(next), Body: uint32(f.at),
				Resource: resource, Scope: uint32(number),
			})
		case f.tag == scopeSpansScope:
			if said.Len > 0 {
				r.Fail(ErrUnread)
			}
			said = textAt(f.at, next)
		}
		at = next
	}
	of.Last, of.FirstTag, of.TagBytes = len(r.Spans), uint32(len(r.Tags)), int(said.Len)
	r.attributesOf(said, scopeAttributes, noField, r.ofSpans)
	of.LastTag = uint32(len(r.Tags))
	r.Scopes[number] = of
}
