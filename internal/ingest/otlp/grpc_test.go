package otlp

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// FuzzFrame checks that unframe accepts exactly the bodies with a flag, a four-byte length and that many bytes, and
// that prefix writes the same bytes.
func FuzzFrame(f *testing.F) {
	for _, seed := range [][]byte{
		nil,
		{0, 0, 0, 0, 0},
		{1, 0, 0, 0, 1, 'x'},
		{0, 0, 0, 0, 2, 'x'},
		{0, 0, 0, 0, 0, 'x'},
		{2, 0, 0, 0, 0},
		{0, 255, 255, 255, 255, 'x'},
		{0, 0, 0, 0},
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		message, isPacked, err := unframe(body)
		is := len(body) >= 5 && body[0] <= 1 &&
			uint64(binary.BigEndian.Uint32(body[1:5])) == uint64(len(body)-5)
		if is != (err == nil) {
			t.Fatalf("%x: %v", body, err)
		}
		if is && !bytes.Equal(framed(message, isPacked), body) {
			t.Errorf("%x is read as %x, %v", body, message, isPacked)
		}
	})
}
