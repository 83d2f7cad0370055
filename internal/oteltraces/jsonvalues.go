package oteltraces

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"math"
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// plain is what a text says: of the body, or where that has escapes, behind what is written,
// until more is written there.
func (r *jsonReader) plain(t quoted) []byte {
	if t.isPlain {
		return t.raw
	}
	end := len(r.written)
	written := t.appendTo(r.written)
	r.written = written[:end]
	return written[end:]
}

// textual writes a text, an id or bytes.
func (r *jsonReader) textual(f *jsonField) error {
	if r.next() != '"' {
		return errJSONShape
	}
	text, err := r.text()
	if err != nil {
		return err
	}
	begin := r.open(f)
	switch f.kind {
	case jsonHex:
		r.written, err = hex.AppendDecode(r.written, r.plain(text))
	case jsonBase64:
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

func (r *jsonReader) boolean(f *jsonField) (err error) {
	isTrue := r.next() == 't'
	switch {
	case isTrue:
		err = r.word("true")
	case r.next() == 'f':
		err = r.word("false")
	default:
		err = errJSONShape
	}
	r.written = protowire.AppendVarint(protowire.AppendTag(r.written, f.number, protowire.VarintType), protowire.EncodeBool(isTrue))
	return err
}

// numeric writes a number, which may stand as text.
func (r *jsonReader) numeric(f *jsonField) error {
	said, err := r.numeral()
	if err != nil {
		return err
	}
	var n uint64
	var ok bool
	if f.kind == jsonDouble {
		n, ok = jsonFloat(said)
	} else {
		n, ok = jsonInteger(said)
	}
	if !ok {
		return errJSONShape
	}
	switch f.kind {
	case jsonVarint:
		r.written = protowire.AppendVarint(protowire.AppendTag(r.written, f.number, protowire.VarintType), n)
	case jsonFixed32:
		r.written = protowire.AppendFixed32(protowire.AppendTag(r.written, f.number, protowire.Fixed32Type), uint32(n))
	default:
		r.written = protowire.AppendFixed64(protowire.AppendTag(r.written, f.number, protowire.Fixed64Type), n)
	}
	return nil
}

// numeral is the text of a number.
func (r *jsonReader) numeral() ([]byte, error) {
	switch c := r.next(); {
	case c == '"':
		text, err := r.text()
		return r.plain(text), err
	case c == '-' || isDigit(c):
		return r.number()
	}
	return nil, errJSONShape
}

// jsonInteger reads an integer of 64 bits, as its two's complement where it is negative. One
// may be written with an exponent, or as 1.0.
func jsonInteger(said []byte) (uint64, bool) {
	digits, isNegative := bytes.CutPrefix(said, []byte("-"))
	if n, ok := decimal(digits); ok && !isNegative {
		return n, true
	} else if ok && n <= 1<<63 {
		return -n, true
	}
	text := string(said)
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		return n, true
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return uint64(n), true
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) >= 1<<63 {
		return 0, false
	}
	return uint64(int64(f)), true
}

// mostDigits is how many digits a number may have that is surely less than 2^64.
const mostDigits = 19

// decimal reads a number that is only digits, as nearly all are.
func decimal(digits []byte) (n uint64, ok bool) {
	for _, c := range digits {
		if !isDigit(c) {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	return n, 0 < len(digits) && len(digits) <= mostDigits
}

// jsonFloat reads a number, which may be infinite or none, as its bits.
func jsonFloat(said []byte) (uint64, bool) {
	n, err := strconv.ParseFloat(string(said), 64)
	return math.Float64bits(n), err == nil
}
