package span

import "encoding/binary"

// AppendCanonical appends an encoding that is the same for two keys if and only if they are equal,
// whatever their form on the wire was.
func (k *Key) AppendCanonical(dst []byte) []byte {
	for l := range FirstList {
		dst = appendCounted(dst, *k.Text(l))
	}
	dst = binary.AppendUvarint(dst, uint64(k.HTTPStatus))
	dst = binary.AppendUvarint(dst, uint64(k.Enums()))
	for l := FirstList; l < EndOfLists; l++ {
		tags := *k.Tags(l)
		dst = binary.AppendUvarint(dst, uint64(len(tags)))
		for _, tag := range tags {
			dst = appendCounted(dst, tag)
		}
	}
	return dst
}

// appendCounted appends the length before the string, so that different lists of strings have different
// encodings.
func appendCounted(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}
