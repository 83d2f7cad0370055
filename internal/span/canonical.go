package span

import (
	"encoding/binary"
	"slices"
)

// AppendCanonical appends bytes that two keys share exactly when they are
// equal, whatever form they had on the wire. The bytes live for a cycle and are
// never sent, so they need no version.
func (k *Key) AppendCanonical(dst []byte) []byte {
	for _, s := range [...]string{
		k.Service, k.Operation, k.Resource, k.Type, k.Kind,
		k.HTTPMethod, k.HTTPEndpoint, k.GRPCStatus, k.ServiceSource,
	} {
		dst = appendCounted(dst, s)
	}
	dst = binary.AppendUvarint(dst, uint64(k.HTTPStatus))
	facts := byte(k.TraceRoot) << 1
	if k.Synthetics {
		facts |= 1
	}
	dst = append(dst, facts)
	dst = appendTags(dst, k.PeerTags)
	return appendTags(dst, k.AdditionalTags)
}

func appendTags(dst []byte, tags []string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(tags)))
	for _, tag := range tags {
		dst = appendCounted(dst, tag)
	}
	return dst
}

// appendCounted puts the length first, so that no two lists of strings run
// together into the same bytes.
func appendCounted(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// sortTags puts tags in the order that the agent gives them, so that two
// tracers that list the same tags differently meet in one aggregate.
func sortTags(tags []string) {
	if !slices.IsSorted(tags) {
		slices.Sort(tags)
	}
}
