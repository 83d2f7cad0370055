package spantable

import "errors"

// ErrTooMuch is why a body is not read that would make a table hold more than its limits.
var ErrTooMuch = errors.New("read spans: the body has more spans, tags or texts than its length allows: " +
	"let the sender make smaller requests")

// Table is the spans of one body.
type Table struct {
	Body    []byte
	Made    []byte // texts that a decoder or a rule made
	Spans   []Span
	Tags    []Tag    // of all spans, those of one span behind one another
	Groups  []Group  // of spans, none of which is in two
	Senders []Sender // of groups
	Limits  Limits

	looked int // bytes of text that were looked at
	err    error
}

// Reset empties the table for a body.
func (t *Table) Reset(body []byte, limits Limits) {
	t.Body, t.Limits, t.looked, t.err = body, limits, 0, nil
	t.Made, t.Spans, t.Tags = t.Made[:0], t.Spans[:0], t.Tags[:0]
	t.Groups, t.Senders = t.Groups[:0], t.Senders[:0]
}

// keptTags and keptMade bound the memory that a table keeps from one body to the next: what
// some thousand spans need.
const (
	keptTags = 1 << 16
	keptMade = 4 << 20
)

// Release lets go of the body, and of the memory that only a very large one needed. It reports
// whether there was such memory.
func (t *Table) Release() (wasLarge bool) {
	if cap(t.Tags) > keptTags || cap(t.Made) > keptMade {
		*t = Table{}
		return true
	}
	t.Body = nil
	return false
}

// Fail says why the body is not counted. The first reason stands.
func (t *Table) Fail(why error) {
	if t.err == nil {
		t.err = why
	}
}

// Err is why the body is not counted, nil if it is.
func (t *Table) Err() error { return t.err }

// maxLooked bounds the bytes of text that one body may make anybody look at: two formats let
// every span refer to a string that the body brings once, and a megabyte of it would become
// gigabytes of labels.
const maxLooked = 32 << 20

// Charge notes that so many bytes of text are looked at.
func (t *Table) Charge(bytes uint32) {
	if t.looked += int(bytes); t.looked > maxLooked {
		t.Fail(ErrTooMuch)
	}
}

// AddSpan appends a span without tags and returns it to be filled. It is valid until the next.
func (t *Table) AddSpan(kind Kind) *Span {
	if len(t.Spans) >= t.Limits.Spans {
		t.Fail(ErrTooMuch)
	}
	first := uint32(len(t.Tags))
	t.Spans = append(t.Spans, Span{First: first, Last: first, Kind: kind})
	return &t.Spans[len(t.Spans)-1]
}

// AddGroup appends a group of the spans that were added since the last one. The current sender
// is the next one to be added.
func (t *Table) AddGroup(g Group) {
	if len(t.Groups) >= t.Limits.Spans {
		t.Fail(ErrTooMuch)
		return
	}
	g.Last, g.Sender = uint32(len(t.Spans)), uint32(len(t.Senders))
	t.Groups = append(t.Groups, g)
}

// TagsOf are a span's tags.
func (t *Table) TagsOf(s *Span) []Tag { return t.Tags[s.First:s.Last] }

// SpansOf are a group's spans.
func (t *Table) SpansOf(g *Group) []Span { return t.Spans[g.First:g.Last] }

// MadeSince is the text that was appended to Made since it had so many bytes.
func (t *Table) MadeSince(start int) Text {
	if len(t.Made) > t.Limits.Made {
		t.Fail(ErrTooMuch)
	}
	return Text{uint32(start) | inMade, uint32(len(t.Made) - start)}
}

// Bytes are those of a text, good for as long as the body.
func (t *Table) Bytes(text Text) []byte {
	from, at := t.Body, text.At
	if at&inMade != 0 {
		from, at = t.Made, at&^inMade
	}
	return from[at : at+text.Len : at+text.Len]
}

// String is a text as a string, without copying it. It is good for as long as the body.
func (t *Table) String(text Text) string { return View(t.Bytes(text)) }
