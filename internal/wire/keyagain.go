package wire

import (
	"encoding/binary"
	"math/bits"

	"github.com/spanstatsd/spanstatsd/internal/msgpack"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// KeyReader reads keys one after the other. Neighbours mostly differ in few labels, also in
// a flood, so what stands byte by byte in the last key too is not read again. It keeps the
// bytes of the last key, which must not be written to, until Forget.
type KeyReader struct {
	last  keyReader
	rests int // keys that are read by themselves, for the last ones had little in common
}

// manyRests is how many keys are read by themselves behind one that is new but for less than
// a quarter of its bytes: comparing would cost more than it spares.
const manyRests = 7

// Forget lets go of the last key.
func (r *KeyReader) Forget() { r.last.raw = nil }

// Read is ReadKey for a k that is as the last call left it, but for what its caller did to
// tags, and to texts that were there and are not among the kept ones. It returns those of the kept labels that have the
// same bytes as in the last key; their texts are still those of that key's bytes.
func (r *KeyReader) Read(k *span.Key, raw []byte, kept span.Labels) (again span.Labels, err error) {
	last := r.last.raw
	switch isAlike := len(last) > 0 && len(raw) > 0 && raw[0] == last[0]; {
	case isAlike && r.rests > 0:
		r.rests--
	case isAlike:
		if again, ok := r.readAgain(k, raw, kept); ok {
			return again, nil
		}
	}
	if err = r.last.key(k, raw); err != nil {
		r.Forget()
	}
	return 0, err
}

// readAgain reads a key with as many elements as the last one. It reports false where it is
// to be read as any other.
func (r *KeyReader) readAgain(k *span.Key, raw []byte, kept span.Labels) (again span.Labels, ok bool) {
	last := r.last.raw
	r.last.Reader, r.last.raw = msgpack.NewReaderAt(raw, 1), raw
	begin, at := 1, 1 // of an element, in the last key and in this one
	spared := 0
	equal := 1 + common(last[begin:], raw[at:]) // so far the last key is equal, from there on
	for element := range r.last.count {
		end := int(r.last.ends[element])
		label, isText := textAt(element)
		switch isEqual := end <= equal; {
		case isEqual && (isText && kept.Has(label) || !isText && !hasTags(element, last[begin])):
			spared += end - begin
			at += end - begin
		default:
			if at = r.elementAt(k, element, at); at == 0 {
				return 0, false
			}
			if !isEqual {
				kept = kept.Without(label) // or nothing that is kept
				equal = end + common(last[end:], raw[at:])
			}
		}
		r.last.ends[element], begin = uint32(at), end
	}
	if spared < len(raw)/4 {
		r.rests = manyRests
	}
	return kept, at == len(raw)
}

// elementAt reads the element that begins somewhere. It returns where the next begins, or 0
// after a fault.
func (r *KeyReader) elementAt(k *span.Key, element, at int) (next int) {
	if label, isText := textAt(element); isText {
		if text, next := msgpack.CommonStr(r.last.raw, at); next != 0 {
			*k.Text(label) = stringOf(text.Of(r.last.raw))
			return next
		}
	}
	r.last.Seek(at)
	r.last.read = element
	if r.last.element(k, element); r.last.Failed() {
		return 0
	}
	return r.last.At()
}

// hasTags says whether an element is a list of tags, with some in it.
func hasTags(element int, lead byte) bool {
	return (element == elementPeerTags || element == elementAdditionalTags) && lead != msgpack.Nil
}

// common is how many bytes two texts begin with alike.
func common(a, b []byte) (n int) {
	const word = 8
	for len(a) >= word && len(b) >= word {
		if differ := binary.LittleEndian.Uint64(a) ^ binary.LittleEndian.Uint64(b); differ != 0 {
			return n + bits.TrailingZeros64(differ)/8
		}
		a, b, n = a[word:], b[word:], n+word
	}
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return n + i
		}
	}
	return n + min(len(a), len(b))
}
