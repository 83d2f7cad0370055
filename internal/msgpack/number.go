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
	switch width {
	case 1:
		v = uint64(rest[0])
	case 2:
		v = uint64(binary.BigEndian.Uint16(rest))
	case 4:
		v = uint64(binary.BigEndian.Uint32(rest))
	default:
		v = binary.BigEndian.Uint64(rest)
	}
	r.at += 1 + width
	if lead >= Int8 {
		unused := 64 - 8*width
		signed := int64(v<<unused) >> unused
		return uint64(signed), signed < 0
	}
	return v, false
}

// Uint reads an integer from 0 to most.
func (r *Reader) Uint(most uint64) uint64 {
	at := r.at
	v, isNegative := r.Integer()
	if isNegative || v > most {
		r.failAt(at)
		return 0
	}
	return v
}

// Int reads an integer that fits into 64 signed bits.
func (r *Reader) Int() int64 {
	at := r.at
	v, isNegative := r.Integer()
	if !isNegative && v > math.MaxInt64 {
		r.failAt(at)
		return 0
	}
	return int64(v)
}

// failAt makes a value a fault that was read already.
func (r *Reader) failAt(at int) {
	r.at = at
	r.Fail()
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
