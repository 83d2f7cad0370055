package spantable

import "math"

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
