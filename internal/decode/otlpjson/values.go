package otlpjson

import (
	"encoding/base64"
	"encoding/hex"
	"math"
	"slices"
	"strconv"

	"github.com/spanstatsd/spanstatsd/internal/decode/jsonscan"
	"google.golang.org/protobuf/encoding/protowire"
)

// textual writes a text, an id or bytes.
func (r *reader) textual(f *field) error {
	if r.Next() != '"' {
		return errShape
	}
	text, err := r.Text()
	if err != nil {
		return err
	}
	begin := r.open(f)
	switch f.form {
	case asHex:
		r.written, err = hex.AppendDecode(r.written, r.plain(text))
	case asBase64:
		said := r.plain(text)
		if !text.IsPlain {
			said = slices.Clone(said) // base64 does not say that it decodes in place
		}
		r.written, err = base64.StdEncoding.AppendDecode(r.written, said)
	default:
		r.written = text.AppendTo(r.written)
	}
	r.close(begin)
	return err
}

func (r *reader) boolean(f *field) error {
	word, isTrue := "false", r.Next() == 't'
	if isTrue {
		word = "true"
	} else if r.Next() != 'f' {
		return errShape
	}
	r.tag(f, protowire.VarintType)
	r.written = protowire.AppendVarint(r.written, protowire.EncodeBool(isTrue))
	return r.Word(word)
}

// numeric writes a number, which may stand as text.
func (r *reader) numeric(f *field) error {
	said, err := r.numeral()
	if err != nil {
		return err
	}
	read := jsonscan.Integer
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
	switch c := r.Next(); {
	case c == '"':
		text, err := r.Text()
		return r.plain(text), err
	case c == '-' || '0' <= c && c <= '9':
		return r.Number()
	}
	return nil, errShape
}

// double reads a number, which may be infinite or none, as its bits.
func double(said []byte) (uint64, bool) {
	n, err := strconv.ParseFloat(string(said), 64)
	return math.Float64bits(n), err == nil
}
