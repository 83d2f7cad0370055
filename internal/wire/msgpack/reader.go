// Package msgpack reads msgpack in place: values come out of the bytes that were
// received, where they lie, without being decoded into objects.
//
// A Reader stands before one value of a body and steps over it when it is read. The value that
// it is asked for must stand there: any other value, and a value that is cut short, is a
// fault. A fault is final. The Reader then stays where the faulty value begins, and everything
// that is read from it is zero, so a caller may read several values and look for a fault once
// behind them. A caller that loops must look for it in the loop.
//
// Where a loop keeps its place in a register, CommonStr and its siblings read values of
// their most common forms at that place, and leave every other form to a Reader.
//
// It is for package client, which has no dependencies, and for the bodies of traces, whose
// values it reads without a call of an interface or a copy. Whatever else only the daemon
// reads, package payload reads with a library.
//
// # Bounds
//
// No length and no count is believed beyond the bytes that are left: a string lies
// within the body, and an array has no more elements than bytes follow its header. Skip
// follows nesting to MaxDepth and no further. So whatever the bytes are, reading takes
// time in proportion to their number, no memory, and ends; nothing panics.
//
// # Threading
//
// A Reader is a value without references but to its body. One goroutine at a time
// uses it. The texts that it returns are places in the body: they say nothing once
// the body's memory is used again.
package msgpack

import (
	"encoding/binary"
	"math"
)

// Text is a string of the body: where it begins and how many bytes it has. Bodies are
// never longer than 32 bits can tell.
type Text struct{ At, Len uint32 }

// Bytes returns the bytes of the string, where they lie.
func (t Text) Bytes(body []byte) []byte { return body[t.At : t.At+t.Len : t.At+t.Len] }

// Reader reads the values of a body in place, one after the other.
type Reader struct {
	body   []byte // up to the fault, if there was one
	at     int    // of the next value
	failed bool
}

// NewReader reads a body from its beginning.
func NewReader(body []byte) Reader { return Reader{body: body} }

// NewReaderAt reads a body from the value that begins at this byte.
func NewReaderAt(body []byte, at int) Reader { return Reader{body: body, at: at} }

// At is where the next value begins, or the one that was faulty.
func (r *Reader) At() int { return r.at }

// Left is how many bytes are to come.
func (r *Reader) Left() int { return len(r.body) - r.at }

// Failed reports whether there was a fault.
func (r *Reader) Failed() bool { return r.failed }

// Fail makes the next value a fault. Callers use it for values that they can't take.
func (r *Reader) Fail() { r.failed, r.body = true, r.body[:r.at] }

// Lead is the first byte of the next value, or Unused where there is none.
func (r *Reader) Lead() byte {
	if r.at < len(r.body) {
		return r.body[r.at]
	}
	return Unused
}

// IsNil steps over a nil, if the next value is one, and reports whether it was.
func (r *Reader) IsNil() bool {
	if r.Lead() != Nil {
		return false
	}
	r.at++
	return true
}

// Bool reads a boolean.
func (r *Reader) Bool() bool {
	lead := r.Lead()
	if !IsBool(lead) {
		r.Fail()
		return false
	}
	r.at++
	return lead == True
}

// Array reads the header of an array: how many elements follow.
func (r *Reader) Array() int {
	if lead := r.Lead(); lead&0xf0 == FixArray {
		return r.believe(1, int(lead&0x0f))
	}
	return r.count(Array16)
}

// Map reads the header of a map: how many pairs follow.
func (r *Reader) Map() int {
	if lead := r.Lead(); lead&0xf0 == FixMap {
		return r.believe(1, int(lead&0x0f))
	}
	return r.count(Map16)
}

// count reads a header with a count of two bytes behind this lead byte, or of four
// behind the one after it.
func (r *Reader) count(lead16 byte) int {
	switch rest := r.body[r.at:]; {
	case len(rest) >= 3 && rest[0] == lead16:
		return r.believe(3, int(binary.BigEndian.Uint16(rest[1:])))
	case len(rest) >= 5 && rest[0] == lead16+1:
		return r.believe(5, int(binary.BigEndian.Uint32(rest[1:])))
	}
	r.Fail()
	return 0
}

// believe steps over a header, if as many bytes follow as it counts elements.
func (r *Reader) believe(header, count int) int {
	if count > len(r.body)-r.at-header {
		r.Fail()
		return 0
	}
	r.at += header
	return count
}

// Str reads a string.
func (r *Reader) Str() Text {
	if n := int(r.Lead() - FixStr); n < 32 && n < len(r.body)-r.at {
		r.at += 1 + n
		return Text{uint32(r.at - n), uint32(n)}
	}
	return r.sized(Str8)
}

// Bin reads a byte string.
func (r *Reader) Bin() Text { return r.sized(Bin8) }

// sized reads what has a length of one byte behind this lead byte, of two behind the
// next, or of four behind the one after that.
func (r *Reader) sized(lead8 byte) Text {
	header, n := 0, 0
	switch rest := r.body[r.at:]; {
	case len(rest) >= 2 && rest[0] == lead8:
		header, n = 2, int(rest[1])
	case len(rest) >= 3 && rest[0] == lead8+1:
		header, n = 3, int(binary.BigEndian.Uint16(rest[1:]))
	case len(rest) >= 5 && rest[0] == lead8+2:
		header, n = 5, int(binary.BigEndian.Uint32(rest[1:]))
	default:
		r.Fail()
		return Text{}
	}
	if n > len(r.body)-r.at-header {
		r.Fail()
		return Text{}
	}
	t := Text{uint32(r.at + header), uint32(n)}
	r.at += header + n
	return t
}

// Seek goes on at a place of the body that was reached without the reader. A fault stays.
func (r *Reader) Seek(at int) {
	if !r.failed {
		r.at = at
	}
}

// Integer reads an integer of any width. A negative one comes as its two's complement.
func (r *Reader) Integer() (v uint64, isNegative bool) {
	lead := r.Lead()
	switch {
	case lead < FixMap:
		r.at++
		return uint64(lead), false
	case lead >= FixNegative:
		r.at++
		return uint64(int64(int8(lead))), true
	case lead < Uint8 || lead > Int64:
		r.Fail()
		return 0, false
	}
	// Uint8 to Uint64, then Int8 to Int64: the low two bits are the width's power.
	width := 1 << (lead & 3)
	rest := r.body[r.at+1:]
	if len(rest) < width {
		r.Fail()
		return 0, false
	}
	if len(rest) < 8 { // near the end of the body
		var room [8]byte
		copy(room[:], rest)
		rest = room[:]
	}
	r.at += 1 + width
	v = binary.BigEndian.Uint64(rest)
	unused := 64 - 8*width
	if lead >= Int8 {
		signed := int64(v) >> unused
		return uint64(signed), signed < 0
	}
	return v >> unused, false
}

// Uint reads an integer from 0 to most.
func (r *Reader) Uint(most uint64) uint64 {
	if lead := r.Lead(); lead < FixMap && uint64(lead) <= most {
		r.at++
		return uint64(lead)
	}
	return r.wideUint(most)
}

// wideUint is Uint for what is not a number of one byte.
func (r *Reader) wideUint(most uint64) uint64 {
	at := r.at
	v, isNegative := r.Integer()
	if isNegative || v > most {
		r.Seek(at) // the fault is the whole value
		r.Fail()
		return 0
	}
	return v
}

// Int reads an integer that fits into 64 signed bits.
func (r *Reader) Int() int64 {
	at := r.at
	v, isNegative := r.Integer()
	if !isNegative && v > math.MaxInt64 {
		r.Seek(at) // the fault is the whole value
		r.Fail()
		return 0
	}
	return int64(v)
}

// Float reads a float of either width.
func (r *Reader) Float() float64 {
	switch rest := r.body[r.at:]; {
	case len(rest) >= 9 && rest[0] == Float64:
		r.at += 9
		return math.Float64frombits(binary.BigEndian.Uint64(rest[1:]))
	case len(rest) >= 5 && rest[0] == Float32:
		r.at += 5
		return float64(math.Float32frombits(binary.BigEndian.Uint32(rest[1:])))
	}
	r.Fail()
	return 0
}

// Number reads an integer or a float.
func (r *Reader) Number() float64 {
	if lead := r.Lead(); lead == Float64 || lead == Float32 {
		return r.Float()
	}
	v, isNegative := r.Integer()
	if isNegative {
		return float64(int64(v))
	}
	return float64(v)
}

// MaxDepth is how many maps and arrays may lie in one another in what is skipped.
const MaxDepth = 64

// Skip steps over a value of any kind.
func (r *Reader) Skip() { r.SkipWithin(MaxDepth) }

// SkipWithin steps over a value of any kind that has no more maps and arrays in one
// another than this.
func (r *Reader) SkipWithin(depth int) {
	switch lead := r.Lead(); {
	case lead < FixMap || lead >= FixNegative || lead == Nil || IsBool(lead):
		r.at++
	case IsStr(lead):
		r.Str()
	case IsBin(lead):
		r.Bin()
	case lead == Float32 || lead == Float64:
		r.Float()
	case lead >= Uint8 && lead <= Int64:
		r.Integer()
	case IsArray(lead):
		r.skipElements(r.Array(), depth)
	case IsMap(lead):
		r.skipElements(2*r.Map(), depth)
	default:
		r.ext(lead)
	}
}

func (r *Reader) skipElements(n, depth int) {
	if n > 0 && depth == 0 {
		r.Fail()
	}
	for ; n > 0 && !r.failed; n-- {
		r.SkipWithin(depth - 1)
	}
}

// ext steps over an extension, which has a byte for its type before its bytes.
func (r *Reader) ext(lead byte) {
	size := 1
	switch {
	case lead >= FixExt1 && lead <= FixExt16:
		size += 1 + 1<<(lead-FixExt1)
	case lead >= Ext8 && lead <= Ext32:
		r.sized(Ext8)
	default:
		r.Fail()
	}
	if r.failed || size > r.Left() {
		r.Fail()
		return
	}
	r.at += size
}

// The lead bytes of values: what a value is, and often how long.
const (
	FixMap      = 0x80 // to 0x8f, the low four bits are the count
	FixArray    = 0x90 // to 0x9f, the same
	FixStr      = 0xa0 // to 0xbf, the low five bits are the length
	Nil         = 0xc0
	Unused      = 0xc1 // begins no value
	False       = 0xc2
	True        = 0xc3
	Bin8        = 0xc4
	Bin16       = 0xc5
	Bin32       = 0xc6
	Ext8        = 0xc7
	Ext16       = 0xc8
	Ext32       = 0xc9
	Float32     = 0xca
	Float64     = 0xcb
	Uint8       = 0xcc
	Uint16      = 0xcd
	Uint32      = 0xce
	Uint64      = 0xcf
	Int8        = 0xd0
	Int16       = 0xd1
	Int32       = 0xd2
	Int64       = 0xd3
	FixExt1     = 0xd4
	FixExt16    = 0xd8
	Str8        = 0xd9
	Str16       = 0xda
	Str32       = 0xdb
	Array16     = 0xdc
	Array32     = 0xdd
	Map16       = 0xde
	Map32       = 0xdf
	FixNegative = 0xe0 // to 0xff, a negative number in one byte
)

// IsMap and its siblings report whether a value of that kind begins with this byte.

func IsMap(lead byte) bool   { return lead&0xf0 == FixMap || lead == Map16 || lead == Map32 }
func IsArray(lead byte) bool { return lead&0xf0 == FixArray || lead == Array16 || lead == Array32 }
func IsStr(lead byte) bool   { return lead&0xe0 == FixStr || lead >= Str8 && lead <= Str32 }
func IsBin(lead byte) bool   { return lead >= Bin8 && lead <= Bin32 }
func IsBool(lead byte) bool  { return lead == False || lead == True }
