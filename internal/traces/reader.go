package traces

import (
	"encoding/binary"
	"math"
)

// text is a string of the body: where it begins and how long it is. A body is
// never longer than 32 bits can tell.
type text struct{ at, n uint32 }

// reader reads msgpack in place, value after value. What is not what was asked
// for, or is cut short, makes it bad: it is then at the end for good, and reads
// nothing but zeros, so that a value costs one look at where it is; but whoever
// loops must look.
type reader struct {
	b   []byte
	at  int
	bad bool
}

// lead is the first byte of the next value, 0xc1, which begins none, at the end.
func (r *reader) lead() byte {
	if r.at < len(r.b) {
		return r.b[r.at]
	}
	return 0xc1
}

func (r *reader) fail() { r.bad, r.at = true, len(r.b) }

// take steps over n bytes and returns where they begin.
func (r *reader) take(n int) int {
	at := r.at
	if r.bad || n < 0 || n > len(r.b)-at {
		r.fail()
		return 0
	}
	r.at = at + n
	return at
}

// run steps over n bytes that are a string's. A string that is cut short is
// empty, so that one may be looked at before it is known to be bad.
func (r *reader) run(n int) text {
	at := r.take(n)
	if r.bad {
		return text{}
	}
	return text{uint32(at), uint32(n)}
}

// absent steps over a nil, if one is there.
func (r *reader) absent() bool {
	if r.lead() != 0xc0 {
		return false
	}
	r.at++
	return true
}

// sized reads the length of 1, 2 or 4 bytes behind a lead byte, and returns it.
func (r *reader) sized(width int) int {
	at := r.take(1+width) + 1
	if r.bad {
		return 0
	}
	switch width {
	case 1:
		return int(r.b[at])
	case 2:
		return int(binary.BigEndian.Uint16(r.b[at:]))
	}
	return int(binary.BigEndian.Uint32(r.b[at:]))
}

// str reads a string.
func (r *reader) str() text {
	n := 0
	switch lead := r.lead(); {
	case lead&0xe0 == 0xa0:
		n = int(lead & 0x1f)
		r.at++
	case lead >= 0xd9 && lead <= 0xdb:
		n = r.sized(1 << (lead - 0xd9))
	default:
		r.fail()
	}
	return r.run(n)
}

// bin reads a byte string.
func (r *reader) bin() text {
	lead := r.lead()
	if lead < 0xc4 || lead > 0xc6 {
		r.fail()
		return text{}
	}
	n := r.sized(1 << (lead - 0xc4))
	return r.run(n)
}

// chars reads what the older formats take for a string: one, bytes, or nothing.
func (r *reader) chars() text {
	lead := r.lead()
	if lead&0xe0 == 0xa0 { // nearly all of them
		n := int(lead & 0x1f)
		if start := r.at + 1; n <= len(r.b)-start {
			r.at = start + n
			return text{uint32(start), uint32(n)}
		}
	}
	switch {
	case lead == 0xc0:
		r.at++
		return text{}
	case lead >= 0xc4 && lead <= 0xc6:
		return r.bin()
	}
	return r.str()
}

// name reads the name of a field: a string or bytes.
func (r *reader) name() text {
	if r.lead() == 0xc0 {
		r.fail()
	}
	return r.chars()
}

// array reads how many elements follow. No more are believed than there are
// bytes left for.
func (r *reader) array() int {
	n := 0
	switch lead := r.lead(); {
	case lead&0xf0 == 0x90:
		n = int(lead & 0x0f)
		r.at++
	case lead == 0xdc || lead == 0xdd:
		n = r.sized(2 << (lead - 0xdc))
	default:
		r.fail()
	}
	return r.believed(n)
}

// mapping reads how many pairs follow.
func (r *reader) mapping() int {
	n := 0
	switch lead := r.lead(); {
	case lead&0xf0 == 0x80:
		n = int(lead & 0x0f)
		r.at++
	case lead == 0xde || lead == 0xdf:
		n = r.sized(2 << (lead - 0xde))
	default:
		r.fail()
	}
	return r.believed(n)
}

func (r *reader) believed(n int) int {
	if r.bad || n > len(r.b)-r.at {
		r.fail()
		return 0
	}
	return n
}

// integer reads an integer of any width, a negative one as its two's complement.
func (r *reader) integer() (v uint64, negative bool) {
	lead := r.lead()
	switch {
	case lead < 0x80:
		r.at++
		return uint64(lead), false
	case lead >= 0xe0:
		r.at++
		return uint64(int64(int8(lead))), true
	case lead < 0xcc || lead > 0xd3:
		r.fail()
		return 0, false
	}
	width := 1 << (lead & 3)
	at := r.take(1+width) + 1
	if r.bad {
		return 0, false
	}
	// Ids and times have eight bytes; a loop over them was a twelfth of the walk.
	switch width {
	case 8:
		v = binary.BigEndian.Uint64(r.b[at:])
	case 4:
		v = uint64(binary.BigEndian.Uint32(r.b[at:]))
	case 2:
		v = uint64(binary.BigEndian.Uint16(r.b[at:]))
	default:
		v = uint64(r.b[at])
	}
	if lead >= 0xd0 {
		unused := 64 - 8*width
		v = uint64(int64(v<<unused) >> unused)
		return v, int64(v) < 0
	}
	return v, false
}

// id reads an identifier, which some languages write as a signed number.
func (r *reader) id() uint64 {
	if r.absent() {
		return 0
	}
	v, _ := r.integer()
	return v
}

// signed reads a number that fits int64, or nothing.
func (r *reader) signed() int64 {
	if r.absent() {
		return 0
	}
	v, negative := r.integer()
	if !negative && v > math.MaxInt64 {
		r.fail()
	}
	return int64(v)
}

// unsigned reads a number that is not negative.
func (r *reader) unsigned() uint64 {
	v, negative := r.integer()
	if negative {
		r.fail()
	}
	return v
}

// number reads an integer or a float64 as a float64, or nothing.
func (r *reader) number() float64 {
	switch lead := r.lead(); lead {
	case 0xc0:
		r.at++
		return 0
	case 0xcb:
		return r.float()
	default:
		v, negative := r.integer()
		if negative {
			return float64(int64(v))
		}
		return float64(v)
	}
}

// float reads a float of either width.
func (r *reader) float() float64 {
	switch r.lead() {
	case 0xcb:
		at := r.take(9)
		if r.bad {
			return 0
		}
		return math.Float64frombits(binary.BigEndian.Uint64(r.b[at+1:]))
	case 0xca:
		at := r.take(5)
		if r.bad {
			return 0
		}
		return float64(math.Float32frombits(binary.BigEndian.Uint32(r.b[at+1:])))
	}
	r.fail()
	return 0
}

func (r *reader) boolean() bool {
	lead := r.lead()
	if lead != 0xc2 && lead != 0xc3 {
		r.fail()
		return false
	}
	r.at++
	return lead == 0xc3
}

// maxDepth bounds what is stepped over. What nests deeper is no trace.
const maxDepth = 64

// skip steps over a value of any kind.
func (r *reader) skip() { r.skipAt(0) }

func (r *reader) skipAt(depth int) {
	lead := r.lead()
	switch {
	case depth > maxDepth || lead == 0xc1:
		r.fail()
	case lead < 0x80 || lead >= 0xe0 || lead == 0xc0 || lead == 0xc2 || lead == 0xc3:
		r.at++
	case lead&0xe0 == 0xa0 || lead >= 0xd9 && lead <= 0xdb:
		r.str()
	case lead >= 0xc4 && lead <= 0xc6:
		r.bin()
	case lead >= 0xc7 && lead <= 0xc9:
		r.take(1 + r.sized(1<<(lead-0xc7)))
	case lead >= 0xd4 && lead <= 0xd8:
		r.take(2 + 1<<(lead-0xd4))
	case lead == 0xca:
		r.take(5)
	case lead == 0xcb:
		r.take(9)
	case lead >= 0xcc && lead <= 0xd3:
		r.take(1 + 1<<(lead&3))
	case lead&0xf0 == 0x90 || lead == 0xdc || lead == 0xdd:
		for n := r.array(); n > 0 && !r.bad; n-- {
			r.skipAt(depth + 1)
		}
	default:
		for n := 2 * r.mapping(); n > 0 && !r.bad; n-- {
			r.skipAt(depth + 1)
		}
	}
}
