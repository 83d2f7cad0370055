package spantable

import "unsafe"

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
