// Package spantable is the spans of one body, laid flat: what every decoder fills and every
// rule looks at, whatever the format.
//
// A Table has a Span for each span, a Tag for each tag that some rule asks for, a Group for each
// run of spans that belong together, and a Sender for each process that says who it is. They
// hold no pointers: a text is a place in the body, or in the bytes that were made of it. What
// only one format knows of a span (where its bytes lie, say) stands in slices of that format, by
// the span's number.
//
// Which tags a rule asks for is a table of Names: it gives each a Label, and every other name
// the label Other. Selected finds the tags of one span by their labels.
//
// # Bounds
//
// Limits says how many spans, tags and strings a body may have, by its length alone, and how
// many bytes may be made of it. Charge bounds the bytes of text that are looked at, since a body
// may refer to one text many times. What exceeds a bound fails the table with ErrTooMuch.
//
// # Threading
//
// One goroutine at a time uses a Table or a Selected. Their memory is used again for the next
// body. Names never change.
package spantable

import (
	"errors"
	"math"
	"unsafe"
)

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

// Span is one span: its fields, and which of the table's tags are its own.
type Span struct {
	ID, Parent      uint64
	Start, Duration uint64 // nanoseconds, since 1970 and since Start
	Service         Text
	Name            Text
	Resource        Text
	Type            Text // of its work
	First, Last     uint32
	Kind            Kind
	Status          Status
	// IsDoubtful says that only the agent knows what its type is: whoever would count it leaves
	// the body to the agent.
	IsDoubtful bool
	// IsSynthetic reports whether the span is part of a synthetic test. A rule sets it.
	IsSynthetic bool
}

// Status is how a span ended.
type Status uint8

const (
	StatusUnset Status = iota
	StatusOK           // an application has set it
	StatusError
	StatusOther // of OTLP, which has none more
)

// Group is a run of spans that have a sender in common, and what their format says of all of
// them: a trace of Datadog's formats, the spans of a resource in OTLP.
type Group struct {
	First, Last uint32 // spans
	At, End     uint32 // of its bytes in the body
	Strings     uint32 // that the body has brought by its end, where it numbers them
	Sender      uint32

	// Of a trace.
	TraceHigh, TraceLow uint64
	Origin              Text
	Priority            int32
	HasPriority         bool
	IsHighRead          bool // else a tag of its spans has TraceHigh
}

// Sender is what a process says of itself.
type Sender struct {
	Env, Version, Host, Commit Text
	Container                  Text
	Lang, LangVersion          Text
	TracerVersion              Text
	ProcessTags                Text
	HasProcessTags             bool
}

// Value says what the value of a tag was written as.
type Value uint8

const (
	IsNothing Value = iota
	IsText
	IsNumber // a float64
	IsInteger
	IsBool
	IsBytes
	IsNested // a list or a map, which no rule can read
)

// Tag is a tag that some rule asks for, as one span has it. The bits of a number are those of
// its float64, of an integer those of its int64, of a bool 0 or 1, and of a text its place.
type Tag struct {
	Label Label
	Value Value
	Bits  uint64
}

// Text is the value of a tag that is written as text or bytes.
func (t *Tag) Text() Text { return BitsText(t.Bits) }

// IsWritten says whether the value is a text or bytes, whose place the tag holds.
func (t *Tag) IsWritten() bool { return t.Value == IsText || t.Value == IsBytes }

// Float is the value of a number, an integer or a bool.
func (t *Tag) Float() (v float64, ok bool) {
	switch t.Value {
	case IsNumber:
		return math.Float64frombits(t.Bits), true
	case IsInteger:
		return float64(int64(t.Bits)), true
	case IsBool:
		return float64(t.Bits), true
	}
	return 0, false
}

// Text is a place in the body, or with the top bit of At in the bytes that were made of it. No
// body is as long as to need that bit.
type Text struct{ At, Len uint32 }

const inMade = 1 << 31

// TextBits is a text as the bits of a tag.
func TextBits(t Text) uint64 { return uint64(t.Len)<<32 | uint64(t.At) }

// BitsText is the text of such bits.
func BitsText(bits uint64) Text { return Text{At: uint32(bits), Len: uint32(bits >> 32)} }

// View is bytes as a string, without copying them. It is good for as long as they are not
// written again.
func View(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// Limits is how much a body may make a table hold, by how long it is: about twice what anybody
// packs into so many bytes. Without it a megabyte of tags of two bytes each would take as much
// as the largest body.
type Limits struct {
	Spans   int // and groups
	Tags    int
	Strings int // where a body numbers them
	Made    int // bytes of texts that are made of the body, and of keys
}

// The limits for the longest bodies.
const (
	maxSpans   = 1 << 16
	maxTags    = 1 << 19
	maxStrings = 1 << 18
	maxMade    = 12 << 20
)

// LimitsOf are the limits of a body of that length in a format whose tags have so many bytes at
// least, but for a few.
func LimitsOf(body, tagBytes int) Limits {
	return Limits{
		Spans: MaxSpans(body), Tags: min(maxTags, 1<<12+body/tagBytes),
		Strings: min(maxStrings, 1<<12+body/16), Made: min(maxMade, 1<<18+4*body),
	}
}

// MaxSpans is the most spans of a body of that length.
func MaxSpans(body int) int { return min(maxSpans, 1<<12+body/48) }

// Grown is what a slice takes for each element that it has come to have: room for a quarter
// more, and as much again for what it grew out of.
const Grown = 1.5

// Bytes is the most that a table within the limits takes, with so many bytes more for each span.
func (l Limits) Bytes(perSpan int) int {
	each := int(unsafe.Sizeof(Span{})+unsafe.Sizeof(Group{})) + perSpan
	return int(Grown * float64(l.Spans*each+l.Tags*int(unsafe.Sizeof(Tag{}))+l.Made))
}

// Selected finds the tags of one span by their labels.
type Selected struct {
	Set LabelSet
	at  [MaxLabels]uint32 // by label in the set: the number of its tag in the table
}

// Select selects the tags from first to last and no others. Of two with one label the later
// one counts, as in Datadog's formats.
func (s *Selected) Select(t *Table, first, last uint32) {
	s.Set = LabelSet{}
	for i := first; i < last; i++ {
		l := t.Tags[i].Label
		s.at[l] = i
		s.Set.Add(l)
	}
}

// AddMissing selects those of the tags from first to last whose label is not selected yet. Of
// two with one label the first one counts, as in OTLP.
func (s *Selected) AddMissing(t *Table, first, last uint32) {
	for i := first; i < last; i++ {
		if l := t.Tags[i].Label; !s.Set.Has(l) {
			s.at[l] = i
			s.Set.Add(l)
		}
	}
}

// Tag is the selected tag of a label, nil where there is none.
func (s *Selected) Tag(t *Table, l Label) *Tag {
	if s.Set.Has(l) {
		return &t.Tags[s.at[l]]
	}
	return nil
}

// At is the number of the selected tag of a label in the set.
func (s *Selected) At(l Label) uint32 { return s.at[l] }
