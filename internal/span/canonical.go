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

// Facts are the parts of a key that are neither text nor number: trace root and
// synthetics, in one byte.
func (k *Key) Facts() byte {
	facts := byte(k.TraceRoot) << 1
	if k.Synthetics {
		facts |= 1
	}
	return facts
}

// SetFacts is the inverse of Facts.
func (k *Key) SetFacts(facts byte) {
	k.TraceRoot, k.Synthetics = TraceRoot(facts>>1), facts&1 != 0
}

// appendCounted puts the length first, so that no two lists of strings run
// together into the same bytes.
func appendCounted(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}
