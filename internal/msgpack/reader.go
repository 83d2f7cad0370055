package msgpack

import "encoding/binary"

// Text is a string of the body: where it begins and how many bytes it has. Bodies are
// never longer than 32 bits can tell.
type Text struct{ At, Len uint32 }

// Of returns the bytes of the string, where they lie.
func (t Text) Of(body []byte) []byte { return body[t.At : t.At+t.Len : t.At+t.Len] }

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
