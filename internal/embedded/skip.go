package embedded

import (
	"errors"
	"fmt"
)

// skip passes over one value of any type: what stands under an unknown key.
func (r *reader) skip(depth int) error {
	if depth == 0 {
		return errors.New("values are nested too deeply")
	}
	lead, err := r.lead()
	if err != nil {
		return err
	}
	switch {
	case lead <= 0x7f, lead >= 0xe0, lead == 0xc0, lead == 0xc2, lead == 0xc3:
		return nil
	case lead <= 0x8f:
		return r.skipEach(2*int(lead&0x0f), depth)
	case lead <= 0x9f:
		return r.skipEach(int(lead&0x0f), depth)
	case lead <= 0xbf:
		return r.skipBytes(int(lead & 0x1f))
	}
	return r.skipWide(lead, depth)
}

// skipWide passes over the forms whose size does not stand in the lead byte.
func (r *reader) skipWide(lead byte, depth int) error {
	form, known := wideForms[lead]
	if !known {
		return fmt.Errorf("lead byte %#x has no meaning", lead)
	}
	n, err := r.big(form.length)
	if err != nil {
		return err
	}
	if form.values == 0 {
		return r.skipBytes(int(n) + form.bytes)
	}
	return r.skipEach(int(n)*form.values, depth)
}

// wideForm is a value with a length of so many bytes, followed by that many
// bytes and some more, or by that many times so many values.
type wideForm struct{ length, bytes, values int }

var wideForms = map[byte]wideForm{
	0xc4: {length: 1}, 0xc5: {length: 2}, 0xc6: {length: 4}, // binary
	0xc7: {length: 1, bytes: 1}, 0xc8: {length: 2, bytes: 1}, 0xc9: {length: 4, bytes: 1}, // extension
	0xca: {bytes: 4}, 0xcb: {bytes: 8}, // float
	0xcc: {bytes: 1}, 0xcd: {bytes: 2}, 0xce: {bytes: 4}, 0xcf: {bytes: 8}, // unsigned
	0xd0: {bytes: 1}, 0xd1: {bytes: 2}, 0xd2: {bytes: 4}, 0xd3: {bytes: 8}, // signed
	0xd4: {bytes: 2}, 0xd5: {bytes: 3}, 0xd6: {bytes: 5}, 0xd7: {bytes: 9}, 0xd8: {bytes: 17}, // fixed extension
	0xd9: {length: 1}, 0xda: {length: 2}, 0xdb: {length: 4}, // string
	0xdc: {length: 2, values: 1}, 0xdd: {length: 4, values: 1}, // array
	0xde: {length: 2, values: 2}, 0xdf: {length: 4, values: 2}, // map
}

func (r *reader) skipBytes(n int) error {
	_, err := r.take(n)
	return err
}

func (r *reader) skipEach(n, depth int) error {
	if n > len(r.rest) {
		return errShort
	}
	for range n {
		if err := r.skip(depth - 1); err != nil {
			return err
		}
	}
	return nil
}
