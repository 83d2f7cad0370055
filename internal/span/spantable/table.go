// Package spantable stores the spans of one request body in a flat form that is the same for all formats.
// Decoders fill a Table, and counting rules read it.
//
// A Table has one Span per span, one Tag for each tag that a rule uses, one Group per run of related spans,
// and one Sender per process that describes itself. They contain no pointers: a Text is a range of bytes in
// the body, or in Table.Derived. Data that only one format has is stored in slices of its decoder, indexed
// like Table.Spans.
//
// Names assigns a Label to each tag name that a rule uses, and the label Other to all other names. Selected
// finds the tags of one span by label.
//
// # Limits
//
// Limits bounds the number of spans, tags and strings of a body by the length of the body, and the number
// of derived bytes. AddReadBytes bounds the bytes of text that are read, because a body can refer to the same
// text many times. A body that exceeds a limit fails with ErrTooMuch.
//
// # Concurrency
//
// A Table or a Selected can be used by one goroutine at a time, and is reused for the next body. Names is
// immutable.
package spantable

import (
	"errors"
	"math"
	"unsafe"
)

// ErrTooMuch is the error of a body that exceeds the limits of its table.
var ErrTooMuch = errors.New("read spans: the body has too many spans, tags or strings for its length; configure " +
	"smaller batches in the sender")

// Table contains the spans of one body.
type Table struct {
	Body    []byte
	Derived []byte // texts that are not in the body, such as formatted numbers
	Spans   []Span
	Tags    []Tag // tags of all spans; those of one span are consecutive
	Groups  []Group
	Senders []Sender
	Limits  Limits

	readBytes int // number of bytes passed to AddReadBytes
	err       error
}

// Reset empties the table and sets the body that it describes.
func (t *Table) Reset(body []byte, limits Limits) {
	t.Body, t.Limits, t.readBytes, t.err = body, limits, 0, nil
	t.Derived, t.Spans, t.Tags = t.Derived[:0], t.Spans[:0], t.Tags[:0]
	t.Groups, t.Senders = t.Groups[:0], t.Senders[:0]
}

// keptTags and keptDerived limit the memory that a table keeps from one body to the next. They suffice for several
// thousand spans.
const (
	keptTags    = 1 << 16
	keptDerived = 4 << 20
)

// Release drops the reference to the request body, so that its memory can be reused. If the table has
// grown very large, Release also frees the memory of the table and returns true.
func (t *Table) Release() (wasLarge bool) {
	wasLarge = cap(t.Tags) > keptTags || cap(t.Derived) > keptDerived
	if wasLarge {
		*t = Table{}
	}
	t.Body = nil
	return wasLarge
}

// Fail sets the reason why the body is not counted. Only the first reason is kept.
func (t *Table) Fail(reason error) {
	if t.err == nil {
		t.err = reason
	}
}

// Err returns the reason why the body is not counted, or nil.
func (t *Table) Err() error { return t.err }

// maxReadBytes limits the bytes of text that are read for one body. In two formats, every span can refer to a
// string that the body contains only once, so that one megabyte could otherwise expand to gigabytes of
// labels.
const maxReadBytes = 32 << 20

// AddReadBytes adds n to the number of bytes of text that rules have read for the body. If the sum exceeds
// maxReadBytes, it fails the table with ErrTooMuch.
func (t *Table) AddReadBytes(n uint32) {
	t.readBytes += int(n)
	if t.readBytes > maxReadBytes {
		t.Fail(ErrTooMuch)
	}
}

// AddSpan appends a span without tags, and returns a pointer to it that is valid until the next call.
// If the table already contains as many spans as its limit, AddSpan also calls t.Fail, so that
// the body is not counted.
func (t *Table) AddSpan(kind Kind) *Span {
	if len(t.Spans) >= t.Limits.Spans {
		t.Fail(ErrTooMuch)
	}
	first := uint32(len(t.Tags))
	t.Spans = append(t.Spans, Span{TagStart: first, TagEnd: first, Kind: kind})
	return &t.Spans[len(t.Spans)-1]
}

// AddGroup appends a group that contains the spans from g.SpanStart to the last span of the table. It sets
// g.SpanEnd and g.Sender: the group belongs to the sender that the caller appends to t.Senders next. If there are too
// many groups, AddGroup appends nothing and calls t.Fail, so that the body is not counted.
func (t *Table) AddGroup(g Group) {
	if len(t.Groups) >= t.Limits.Spans { // the limit on spans is also the limit on groups
		t.Fail(ErrTooMuch)
		return
	}
	g.SpanEnd = uint32(len(t.Spans))
	g.Sender = uint32(len(t.Senders))
	t.Groups = append(t.Groups, g)
}

// TagsOf returns the tags of a span.
func (t *Table) TagsOf(s *Span) []Tag { return t.Tags[s.TagStart:s.TagEnd] }

// SpansOf returns the spans of a group.
func (t *Table) SpansOf(g *Group) []Span { return t.Spans[g.SpanStart:g.SpanEnd] }

// DerivedSince returns the text Derived[start:]. It fails the table if Derived exceeds its limit.
func (t *Table) DerivedSince(start int) Text {
	if len(t.Derived) > t.Limits.DerivedBytes {
		t.Fail(ErrTooMuch)
	}
	return Text{uint32(start) | inDerived, uint32(len(t.Derived) - start)}
}

// Bytes returns the bytes of a text. They are valid until the next Reset.
func (t *Table) Bytes(text Text) []byte {
	source := t.Body
	isDerived := text.Start&inDerived != 0
	if isDerived {
		source = t.Derived
	}
	start := text.Start &^ inDerived
	end := start + text.Len
	return source[start:end:end]
}

// String returns a text as a string that shares the memory of Bytes.
func (t *Table) String(text Text) string { return View(t.Bytes(text)) }

// Span is one span. Its tags are Table.Tags[TagStart:TagEnd].
type Span struct {
	ID, Parent       uint64
	Start, Duration  uint64 // nanoseconds since the Unix epoch, and nanoseconds
	Service          Text
	Name             Text
	Resource         Text
	Type             Text // type of the span's work, such as web or sql
	TagStart, TagEnd uint32
	Kind             Kind
	Status           Status
	// HasUnknownType marks a span whose type only the Datadog agent can determine. A body with such a span
	// is not counted here but by the agent.
	HasUnknownType bool
	// IsSynthetic reports whether the span is part of a synthetic test. A rule sets it.
	IsSynthetic bool
}

// Status is the outcome of a span.
type Status uint8

const (
	StatusUnset Status = iota
	StatusOK           // set explicitly by the application
	StatusError
	StatusOther // any other value; OTLP defines none
)

// Group is a run of spans with the same sender and common properties: a trace in Datadog's formats, or the spans of
// a resource in OTLP. Its spans are Table.Spans[SpanStart:SpanEnd].
type Group struct {
	SpanStart, SpanEnd uint32
	BodyStart, BodyEnd uint32 // range of the group's bytes in the body
	StringCount        uint32 // for a format with numbered strings: number of strings that the body defines up to BodyEnd
	Sender             uint32 // index of the sender in Table.Senders

	// Properties of a trace.
	TraceHigh, TraceLow uint64
	Origin              Text
	Priority            int32
	HasPriority         bool
	IsHighRead          bool // TraceHigh is set; otherwise the upper half of the trace ID may be a tag of the spans
}

// Sender describes a process, as stated in its request.
type Sender struct {
	Env, Version, Host, Commit Text
	Container                  Text
	Lang, LangVersion          Text
	TracerVersion              Text
	ProcessTags                Text
	HasProcessTags             bool
}

// ValueType is the type of a tag's value in the body.
type ValueType uint8

const (
	TypeNothing ValueType = iota
	TypeText
	TypeNumber // float64
	TypeInteger
	TypeBool
	TypeBytes
	TypeNested // list or map, which no rule can read
)

// Tag is a tag of a span that a rule uses. Bits contains the value: for a number the bits of a float64, for
// an integer those of an int64, for a bool 0 or 1, and for a text or bytes the result of TextBits.
type Tag struct {
	Label Label
	Type  ValueType
	Bits  uint64
}

// Text returns the value of a tag for which HasText returns true.
func (t *Tag) Text() Text { return BitsText(t.Bits) }

// HasText reports whether the value is a text or bytes.
func (t *Tag) HasText() bool { return t.Type == TypeText || t.Type == TypeBytes }

// Float returns the value of a tag as a float64. A bool is converted to 1 or 0. ok is false if the
// value is neither a number, nor an integer, nor a bool.
func (t *Tag) Float() (v float64, ok bool) {
	switch t.Type {
	case TypeNumber:
		return math.Float64frombits(t.Bits), true
	case TypeInteger:
		return float64(int64(t.Bits)), true
	case TypeBool:
		return float64(t.Bits), true
	}
	return 0, false
}

// Text is a range of bytes in the body or, if the top bit of Start is set, in Table.Derived. No body is long
// enough to need this bit.
type Text struct{ Start, Len uint32 }

const inDerived = 1 << 31

// TextBits encodes a Text as the Bits of a Tag.
func TextBits(t Text) uint64 { return uint64(t.Len)<<32 | uint64(t.Start) }

// BitsText is the inverse of TextBits.
func BitsText(bits uint64) Text { return Text{Start: uint32(bits), Len: uint32(bits >> 32)} }

// View returns a string that shares the memory of b. It is valid as long as b does not change.
func View(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// Limits is how much a body may add to a table. It depends on the length of the body, and allows about twice as much
// as real senders put into as many bytes. Otherwise one megabyte of two-byte tags would take as much memory as the
// largest allowed body.
type Limits struct {
	Spans        int // also the limit on groups
	Tags         int
	Strings      int // maximum number of strings, for formats with numbered strings
	DerivedBytes int // length of Table.Derived, and of the keys that rules build from the table
}

// Upper bounds of Limits, for bodies of any length.
const (
	maxSpans   = 1 << 16
	maxTags    = 1 << 19
	maxStrings = 1 << 18
	maxDerived = 12 << 20
)

// LimitsOf returns the limits for a body of bodyLen bytes, so that decoding it takes limited memory. It
// allows one tag per tagBytes bytes. Each limit has a constant part, so that no small body is rejected.
func LimitsOf(bodyLen, tagBytes int) Limits {
	const (
		constantTags    = 1 << 12
		constantStrings = 1 << 12
		bytesPerString  = 16
		constantDerived = 1 << 18 // bytes of texts that are not in the body, but built from it
		derivedPerByte  = 4
	)
	return Limits{
		Spans:        MaxSpans(bodyLen),
		Tags:         min(maxTags, constantTags+bodyLen/tagBytes),
		Strings:      min(maxStrings, constantStrings+bodyLen/bytesPerString),
		DerivedBytes: min(maxDerived, constantDerived+derivedPerByte*bodyLen),
	}
}

// MaxSpans returns the maximum number of spans in a body of bodyLen bytes.
func MaxSpans(bodyLen int) int { return min(maxSpans, 1<<12+bodyLen/48) }

// GrowthFactor is the maximum memory of a slice that append has grown, as a multiple of the size of its
// elements. It includes the unused capacity, up to a quarter, and the previous array, which is freed later.
const GrowthFactor = 1.5

// Bytes returns the maximum memory of a table within these limits, plus perSpan bytes for each span.
func (l Limits) Bytes(perSpan int) int {
	spanBytes := int(unsafe.Sizeof(Span{})+unsafe.Sizeof(Group{})) + perSpan
	tagBytes := int(unsafe.Sizeof(Tag{}))
	return int(GrowthFactor * float64(l.Spans*spanBytes+l.Tags*tagBytes+l.DerivedBytes))
}

// Selected is the set of a span's tags, at most one for each label.
type Selected struct {
	Set     LabelSet          // labels of the selected tags
	indexes [MaxLabels]uint32 // by label in Set: index of the tag in Table.Tags
}

// Select replaces the set by t.Tags[first:last]. If several of these tags have the same label, it selects the
// last one, as in Datadog's formats.
func (s *Selected) Select(t *Table, first, last uint32) {
	s.Set = LabelSet{}
	for i := first; i < last; i++ {
		l := t.Tags[i].Label
		s.indexes[l] = i
		s.Set.Add(l)
	}
}

// AddMissing adds the tags in t.Tags[first:last] whose label is not in the set yet. If several of these tags have
// the same label, it selects the first one, as in OTLP.
func (s *Selected) AddMissing(t *Table, first, last uint32) {
	for i := first; i < last; i++ {
		l := t.Tags[i].Label
		if !s.Set.Has(l) {
			s.indexes[l] = i
			s.Set.Add(l)
		}
	}
}

// Tag returns the selected tag with a label, or nil.
func (s *Selected) Tag(t *Table, l Label) *Tag {
	if s.Set.Has(l) {
		return &t.Tags[s.indexes[l]]
	}
	return nil
}

// At returns the index in Table.Tags of the selected tag with a label, which must be in Set.
func (s *Selected) At(l Label) uint32 { return s.indexes[l] }
