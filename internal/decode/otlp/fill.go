package otlp

import "github.com/spanstatsd/spanstatsd/internal/spantable"

// A format whose spans are those of OpenTelemetry in other words fills a Request by a decoder of its
// own, and has it counted by the same rules. Nothing of it knows where it lies in the body.

// Begin empties the request for a body.
func (r *Request) Begin(body []byte) {
	r.Reset(body, spantable.LimitsOf(len(body), tagBytes))
	r.Places, r.Resources, r.Scopes = r.Places[:0], r.Resources[:0], r.Scopes[:0]
}

// AddResource adds what sent the spans that are placed from now on.
func (r *Request) AddResource(tags []spantable.Tag) {
	if len(r.Resources) >= partsOf(len(r.Body)) {
		r.Fail(spantable.ErrTooMuch)
		return
	}
	of := Resource{Part: Part{First: len(r.Scopes), Last: len(r.Scopes) + 1}, FirstTag: uint32(len(r.Tags))}
	r.Tags = append(r.Tags, tags...)
	of.LastTag = uint32(len(r.Tags))
	r.Resources = append(r.Resources, of)
	r.Scopes = append(r.Scopes, Scope{Part: Part{First: len(r.Places), Last: len(r.Places)}})
}

// AddPlace adds what only OTLP has of the next span, which the resource that was added last has sent.
func (r *Request) AddPlace(p Place) {
	p.Resource, p.Scope = uint32(len(r.Resources)-1), uint32(len(r.Scopes)-1)
	r.Places = append(r.Places, p)
	r.Scopes[p.Scope].Last = len(r.Places)
}

// Field is a field of a message in protobuf: its number and how it is written as one tag, the value of
// a number, and where a text or a message begins and ends.
type Field struct {
	Tag     uint32
	Value   uint64
	At, End int
}

// EachField visits the fields of a message that lies from a place to the end of b, until one is not
// taken. It reports whether all were, and whether it is a message.
func EachField(b []byte, at int, take func(Field) bool) bool {
	for at < len(b) {
		f, next := readField(b, at)
		if next == 0 || !take(Field{f.tag, f.value, f.at, next}) {
			return false
		}
		at = next
	}
	return true
}
