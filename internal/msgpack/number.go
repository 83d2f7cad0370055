package msgpack

import (
	"encoding/binary"
	"math"
)

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
