// Package msgpack reads msgpack values from a byte slice without copying them or building objects.
//
// A Reader is positioned at a value. Each method expects a value of one type and moves to the next value.
// If the value has another type, or is truncated, the Reader fails: it stays at that value, and all methods
// return zero values from then on. So a caller can read several values and check Failed once, but a loop
// must check it in each iteration.
//
// CommonStr and similar functions read the most common encodings without a Reader, for loops that keep the
// position in a register.
//
// Package client uses this package because it must not have dependencies. The trace decoders use it because
// it needs no interface calls and no copies. Other code in the daemon reads msgpack with a library (package
// payload).
//
// # Limits
//
// Lengths and counts are checked against the remaining bytes: a string must be within the body, and an
// array must not have more elements than bytes follow its header. An array or a map has at most MaxElements
// elements. Skip accepts values that are nested up to MaxDepth levels. So reading takes time linear in the
// length of the body, allocates nothing and never panics, whatever the bytes are.
//
// # Concurrency
//
// A Reader is a value that refers only to its body, and can be used by one goroutine at a time. The Texts
// that it returns are positions in the body, and are valid as long as the body does not change.
package msgpack

import (
	"encoding/binary"
	"math"
)

// Text is the position and the length of a string in the body. 32 bits suffice for the longest body.
type Text struct{ Start, Len uint32 }

// Bytes returns the bytes of the string, which are part of body.
func (t Text) Bytes(body []byte) []byte { return body[t.Start : t.Start+t.Len : t.Start+t.Len] }

// Reader reads the values of a body one after the other.
type Reader struct {
	body   []byte // up to the position of the failure, if there was one
	pos    int    // position of the next value
	failed bool
}

// NewReader returns a Reader at the start of body.
func NewReader(body []byte) Reader { return Reader{body: body} }

// NewReaderAt returns a Reader at the value that starts at body[pos].
func NewReaderAt(body []byte, pos int) Reader { return Reader{body: body, pos: pos} }

// Pos returns the position of the next value, or of the value at which the Reader failed.
func (r *Reader) Pos() int { return r.pos }

// Unread returns the number of bytes that have not been read.
func (r *Reader) Unread() int { return len(r.body) - r.pos }

// Failed reports whether the Reader has failed.
func (r *Reader) Failed() bool { return r.failed }

// Fail makes the Reader fail at the next value. Callers use it to reject a value. All further reads fail.
func (r *Reader) Fail() { r.failed, r.body = true, r.body[:r.pos] }

// Peek returns the first byte of the next value without skipping it. It returns Unused at the end of the body.
func (r *Reader) Peek() byte {
	if r.pos < len(r.body) {
		return r.body[r.pos]
	}
	return Unused
}

// SkipNil skips the next value if it is nil, and reports whether it has skipped the value.
func (r *Reader) SkipNil() bool {
	if r.Peek() != Nil {
		return false
	}
	r.pos++
	return true
}

// Bool reads a boolean.
func (r *Reader) Bool() bool {
	lead := r.Peek()
	if !IsBool(lead) {
		r.Fail()
		return false
	}
	r.pos++
	return lead == True
}

// MaxElements is the maximum number of elements of an array, and of pairs of a map. The Datadog agent refuses a
// request for traces that exceeds it.
const MaxElements = 500_000

// Array reads the header of an array and returns the number of elements.
func (r *Reader) Array() int {
	if lead := r.Peek(); lead&0xf0 == FixArray {
		return r.skipHeader(1, int(lead&0x0f))
	}
	return r.readLongHeader(Array16)
}

// Map reads the header of a map and returns the number of key-value pairs.
func (r *Reader) Map() int {
	if lead := r.Peek(); lead&0xf0 == FixMap {
		return r.skipHeader(1, int(lead&0x0f))
	}
	return r.readLongHeader(Map16)
}

// readLongHeader reads the header of an array or a map and returns the number of elements. lead16 is the lead byte of a
// header that states the number in two bytes. lead16+1 is the lead byte of a header that states it in four bytes. For any
// other or incomplete header, readLongHeader returns 0 and r.Failed returns true.
func (r *Reader) readLongHeader(lead16 byte) int {
	const (
		headerLen16 = 1 + 2
		headerLen32 = 1 + 4
	)
	lead32 := lead16 + 1
	header := r.body[r.pos:]
	switch {
	case len(header) >= headerLen16 && header[0] == lead16:
		return r.skipHeader(headerLen16, int(binary.BigEndian.Uint16(header[1:])))
	case len(header) >= headerLen32 && header[0] == lead32:
		count := binary.BigEndian.Uint32(header[1:])
		if count <= MaxElements {
			return r.skipHeader(headerLen32, int(count))
		}
	}
	r.Fail()
	return 0
}

// skipHeader skips the header of an array or a map, and returns count, the number of elements that the header states. If
// fewer than count bytes follow, it returns 0 and r.Failed returns true, because each element has at least one byte.
func (r *Reader) skipHeader(headerLen, count int) int {
	following := r.Unread() - headerLen
	if count > following {
		r.Fail()
		return 0
	}
	r.pos += headerLen
	return count
}

// Str reads a string.
func (r *Reader) Str() Text {
	lead := r.Peek()
	if lead&0xe0 != FixStr {
		return r.readLongText(Str8)
	}
	length := int(lead & 0x1f) // the low five bits
	start := r.pos + 1
	if length > len(r.body)-start {
		r.Fail()
		return Text{}
	}
	r.pos = start + length
	return Text{uint32(start), uint32(length)}
}

// Bin reads a byte string.
func (r *Reader) Bin() Text { return r.readLongText(Bin8) }

// readLongText reads a string or a byte string that states its length after the lead byte. lead8 is the lead byte for a
// length of 8 bits; those for 16 and 32 bits follow it. For any other or incomplete value, r.Failed returns true.
func (r *Reader) readLongText(lead8 byte) Text {
	headerLen, length, ok := r.peekLength(lead8)
	if !ok || length > r.Unread()-headerLen {
		r.Fail()
		return Text{}
	}
	start := r.pos + headerLen
	r.pos = start + length
	return Text{uint32(start), uint32(length)}
}

// peekLength decodes the header of the next value without skipping it. The header consists of a lead byte and the length
// of the data. The length has one byte if the lead byte is lead8, two bytes if it is lead8+1, and four bytes if it is
// lead8+2. For any other lead byte, or if the header is incomplete, ok is false.
func (r *Reader) peekLength(lead8 byte) (headerLen, length int, ok bool) {
	const (
		headerLen8  = 1 + 1
		headerLen16 = 1 + 2
		headerLen32 = 1 + 4
	)
	lead16, lead32 := lead8+1, lead8+2
	switch rest := r.body[r.pos:]; {
	case len(rest) >= headerLen8 && rest[0] == lead8:
		return headerLen8, int(rest[1]), true
	case len(rest) >= headerLen16 && rest[0] == lead16:
		return headerLen16, int(binary.BigEndian.Uint16(rest[1:])), true
	case len(rest) >= headerLen32 && rest[0] == lead32:
		return headerLen32, int(binary.BigEndian.Uint32(rest[1:])), true
	}
	return 0, 0, false
}

// Seek moves to the value at body[pos]. It does nothing if the Reader has failed.
func (r *Reader) Seek(pos int) {
	if !r.failed {
		r.pos = pos
	}
}

// Integer reads an integer of any width. If the integer is negative, v is its two's complement in 64 bits.
func (r *Reader) Integer() (v uint64, isNegative bool) {
	lead := r.Peek()
	switch {
	case lead < FixMap:
		r.pos++
		return uint64(lead), false
	case lead >= FixNegative:
		r.pos++
		return uint64(int64(int8(lead))), true
	case lead < Uint8 || lead > Int64:
		r.Fail()
		return 0, false
	}
	width := integerWidth(lead)
	rest := r.body[r.pos+1:]
	if len(rest) < width {
		r.Fail()
		return 0, false
	}
	if len(rest) < 8 { // near the end of the body
		var padded [8]byte
		copy(padded[:], rest)
		rest = padded[:]
	}
	r.pos += 1 + width
	v = binary.BigEndian.Uint64(rest)
	bitsAfter := 64 - 8*width // bits of v that are not part of the integer
	if lead >= Int8 {
		signed := int64(v) >> bitsAfter
		return uint64(signed), signed < 0
	}
	return v >> bitsAfter, false
}

// Uint reads an integer from 0 to limit. It fails if the integer is negative or larger than limit.
func (r *Reader) Uint(limit uint64) uint64 {
	if lead := r.Peek(); lead < FixMap && uint64(lead) <= limit {
		r.pos++
		return uint64(lead)
	}
	return r.readLongUint(limit)
}

// readLongUint reads an integer from 0 to limit with any encoding. It is the slow path of Uint, in its own function so
// that the compiler can inline Uint. If the integer is out of range, r.Failed returns true and r.Pos is the start of
// the integer.
func (r *Reader) readLongUint(limit uint64) uint64 {
	start := r.pos
	v, isNegative := r.Integer()
	if isNegative || v > limit {
		r.Seek(start) // fail at the integer, not after it
		r.Fail()
		return 0
	}
	return v
}

// Int reads an integer. It fails if the integer does not fit into an int64.
func (r *Reader) Int() int64 {
	start := r.pos
	v, isNegative := r.Integer()
	if !isNegative && v > math.MaxInt64 {
		r.Seek(start) // fail at the integer, not after it
		r.Fail()
		return 0
	}
	return int64(v)
}

const (
	float32Len = 1 + 4 // length of an encoded float32: the lead byte and 32 bits
	float64Len = 1 + 8 // length of an encoded float64: the lead byte and 64 bits
)

// Float reads a float32 or a float64.
func (r *Reader) Float() float64 {
	switch rest := r.body[r.pos:]; {
	case len(rest) >= float64Len && rest[0] == Float64:
		r.pos += float64Len
		return math.Float64frombits(binary.BigEndian.Uint64(rest[1:]))
	case len(rest) >= float32Len && rest[0] == Float32:
		r.pos += float32Len
		return float64(math.Float32frombits(binary.BigEndian.Uint32(rest[1:])))
	}
	r.Fail()
	return 0
}

// Number reads an integer or a float, and returns it as a float64.
func (r *Reader) Number() float64 {
	if lead := r.Peek(); lead == Float64 || lead == Float32 {
		return r.Float()
	}
	v, isNegative := r.Integer()
	if isNegative {
		return float64(int64(v))
	}
	return float64(v)
}

// MaxDepth is the maximum nesting of maps and arrays in a value that Skip accepts.
const MaxDepth = 64

// Skip skips a value of any type. It fails if more than MaxDepth maps and arrays are nested in the value.
func (r *Reader) Skip() { r.SkipWithin(MaxDepth) }

// SkipWithin skips a value of any type. It fails if more than depth maps and arrays are nested in the value.
func (r *Reader) SkipWithin(depth int) {
	switch lead := r.Peek(); {
	case lead < FixMap || lead >= FixNegative || lead == Nil || IsBool(lead):
		r.pos++
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
		r.skipExt(lead)
	}
}

// skipElements skips count values. It fails if there are any and depth is 0.
func (r *Reader) skipElements(count, depth int) {
	if count > 0 && depth == 0 {
		r.Fail()
	}
	for ; count > 0 && !r.failed; count-- {
		r.SkipWithin(depth - 1)
	}
}

// skipExt skips an extension, an application-defined value. It consists of a lead byte, the length of the data, a byte
// for the type, and the data. The length is omitted after the lead bytes from FixExt1 to FixExt16, which imply it.
func (r *Reader) skipExt(lead byte) {
	const typeLen = 1
	if lead >= FixExt1 && lead <= FixExt16 {
		dataLen := 1 << (lead - FixExt1) // 1, 2, 4, 8 or 16 bytes
		r.skipBytes(1 + typeLen + dataLen)
		return
	}
	headerLen, dataLen, ok := r.peekLength(Ext8) // also accepts Ext16 and Ext32
	if !ok {
		r.Fail()
		return
	}
	r.skipBytes(headerLen + typeLen + dataLen)
}

// skipBytes skips count bytes, or fails if fewer bytes are left.
func (r *Reader) skipBytes(count int) {
	if r.failed || count > r.Unread() {
		r.Fail()
		return
	}
	r.pos += count
}

// Lead bytes, which state the type of a value, and for short values the length.
const (
	FixMap      = 0x80 // to 0x8f; the low four bits are the number of pairs
	FixArray    = 0x90 // to 0x9f; the low four bits are the number of elements
	FixStr      = 0xa0 // to 0xbf; the low five bits are the length
	Nil         = 0xc0
	Unused      = 0xc1 // never a lead byte
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
	FixNegative = 0xe0 // to 0xff; a negative integer of one byte
)

// IsMap reports whether lead is the lead byte of a map.
func IsMap(lead byte) bool { return lead&0xf0 == FixMap || lead == Map16 || lead == Map32 }

// IsArray reports whether lead is the lead byte of an array.
func IsArray(lead byte) bool { return lead&0xf0 == FixArray || lead == Array16 || lead == Array32 }

// IsStr reports whether lead is the lead byte of a string.
func IsStr(lead byte) bool { return lead&0xe0 == FixStr || lead >= Str8 && lead <= Str32 }

// IsBin reports whether lead is the lead byte of a byte string.
func IsBin(lead byte) bool { return lead >= Bin8 && lead <= Bin32 }

// IsBool reports whether lead is the lead byte of a boolean.
func IsBool(lead byte) bool { return lead == False || lead == True }
