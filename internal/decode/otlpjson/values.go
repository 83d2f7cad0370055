package otlpjson

import (
	"encoding/base64"
	"encoding/hex"
	"math"
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// textual writes a text, an id or bytes.
func (r *reader) textual(f *field) error {
	if r.next() != '"' {
		return errShape
	}
	text, err := r.text()
	if err != nil {
		return err
	}
	begin := r.open(f)
	switch f.form {
	case asHex:
		r.written, err = hex.AppendDecode(r.written, r.plain(text))
	case asBase64:
		said := r.plain(text)
		if !text.isPlain {
			said = slices.Clone(said) // base64 does not say that it decodes in place
		}
		r.written, err = base64.StdEncoding.AppendDecode(r.written, said)
	default:
		r.written = text.appendTo(r.written)
	}
	r.close(begin)
	return err
}

func (r *reader) boolean(f *field) error {
	word, isTrue := "false", r.next() == 't'
	if isTrue {
		word = "true"
	} else if r.next() != 'f' {
		return errShape
	}
	r.tag(f, protowire.VarintType)
	r.written = protowire.AppendVarint(r.written, protowire.EncodeBool(isTrue))
	return r.word(word)
}

// numeric writes a number, which may stand as text.
func (r *reader) numeric(f *field) error {
	said, err := r.numeral()
	if err != nil {
		return err
	}
	read := integer
	if f.form == asDouble {
		read = double
	}
	n, isOne := read(said)
	if !isOne {
		return errShape
	}
	switch f.form {
	case asVarint64:
		r.tag(f, protowire.VarintType)
		r.written = protowire.AppendVarint(r.written, n)
	case asVarint32: // without the sign's upper half, which would be longer than what was said
		r.tag(f, protowire.VarintType)
		r.written = protowire.AppendVarint(r.written, uint64(uint32(n)))
	case asFixed32:
		r.tag(f, protowire.Fixed32Type)
		r.written = protowire.AppendFixed32(r.written, uint32(n))
	default:
		r.tag(f, protowire.Fixed64Type)
		r.written = protowire.AppendFixed64(r.written, n)
	}
	return nil
}

// numeral is the text of a number.
func (r *reader) numeral() ([]byte, error) {
	switch c := r.next(); {
	case c == '"':
		text, err := r.text()
		return r.plain(text), err
	case c == '-' || isDigit(c):
		return r.number()
	}
	return nil, errShape
}

// integer reads an integer of 64 bits, as its two's complement where it is negative. One may be
// written with an exponent, or as 1.0.
func integer(said []byte) (uint64, bool) {
	if n, err := strconv.ParseInt(string(said), 10, 64); err == nil {
		return uint64(n), true
	}
	if n, err := strconv.ParseUint(string(said), 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(string(said), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) >= 1<<63 {
		return 0, false
	}
	return uint64(int64(f)), true
}

// double reads a number, which may be infinite or none, as its bits.
func double(said []byte) (uint64, bool) {
	n, err := strconv.ParseFloat(string(said), 64)
	return math.Float64bits(n), err == nil
}
