package span

import "encoding/binary"

// AppendCanonical appends bytes that two keys share exactly when they are
// equal, whatever form they had on the wire. The bytes live for a cycle and are
// never sent, so they need no version.
func (k *Key) AppendCanonical(dst []byte) []byte {
	for l := range FirstList {
		dst = appendCounted(dst, *k.Text(l))
	}
	dst = binary.AppendUvarint(dst, uint64(k.HTTPStatus))
	dst = append(dst, k.Facts())
	for l := FirstList; l < EndOfLists; l++ {
		tags := *k.Tags(l)
		dst = binary.AppendUvarint(dst, uint64(len(tags)))
		for _, tag := range tags {
			dst = appendCounted(dst, tag)
		}
	}
	return dst
}

// appendCounted puts the length first, so that no two lists of strings run
// together into the same bytes.
func appendCounted(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}
