package wire

import (
	"github.com/spanstatsd/spanstatsd/internal/msgpack"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// A key is one msgpack array. The place of an element says which label it is;
// the first three are always there, the others end with the last that is set.
const (
	minKeyElements = 3
	maxKeyElements = 14
	maxKeyTags     = 256 // in each of the two lists, normalised to fewer later
)

// AppendKey appends the canonical bytes of the key: equal keys give equal bytes. It
// writes every label, and takes back those behind the last that is set: each of them
// took one byte.
func AppendKey(dst []byte, k *span.Key) []byte {
	count := keyElements(k)
	dst = append(dst, msgpack.FixArray|byte(count))
	dst = appendStr(dst, k.Service)
	dst = appendStr(dst, k.Operation)
	dst = appendStr(dst, k.Resource)
	dst = appendOptional(dst, k.Type)
	dst = appendOptional(dst, k.Kind)
	dst = appendTraceRoot(dst, k.TraceRoot)
	dst = appendStatus(dst, k.HTTPStatus)
	dst = appendTags(dst, k.PeerTags)
	dst = appendOptional(dst, k.HTTPMethod)
	dst = appendOptional(dst, k.HTTPEndpoint)
	dst = appendOptional(dst, k.GRPCStatus)
	dst = appendOptional(dst, k.ServiceSource)
	if k.Synthetics {
		dst = append(dst, msgpack.True)
	} else {
		dst = append(dst, msgpack.Nil)
	}
	dst = appendTags(dst, k.AdditionalTags)
	return dst[:len(dst)-(maxKeyElements-count)]
}

// keyElements is how many elements the key needs. It asks from the end, because
// the last labels are the rarest.
func keyElements(k *span.Key) int {
	switch {
	case len(k.AdditionalTags) != 0:
		return 14
	case k.Synthetics:
		return 13
	case k.ServiceSource != "":
		return 12
	case k.GRPCStatus != "":
		return 11
	case k.HTTPEndpoint != "":
		return 10
	case k.HTTPMethod != "":
		return 9
	case len(k.PeerTags) != 0:
		return 8
	case k.HTTPStatus != 0:
		return 7
	case k.TraceRoot == span.TraceRootTrue || k.TraceRoot == span.TraceRootFalse:
		return 6
	case k.Kind != "":
		return 5
	case k.Type != "":
		return 4
	}
	return minKeyElements
}

func appendOptional(dst []byte, s string) []byte {
	if s == "" {
		return append(dst, msgpack.Nil)
	}
	return appendStr(dst, s)
}

func appendStatus(dst []byte, status uint32) []byte {
	if status == 0 {
		return append(dst, msgpack.Nil)
	}
	return appendUint(dst, uint64(status))
}

func appendTraceRoot(dst []byte, root span.TraceRoot) []byte {
	switch root {
	case span.TraceRootTrue:
		return append(dst, msgpack.True)
	case span.TraceRootFalse:
		return append(dst, msgpack.False)
	}
	return append(dst, msgpack.Nil)
}

// appendTags writes no more tags than a reader takes. Those are many more than
// the statistics keep.
func appendTags(dst []byte, tags []string) []byte {
	if len(tags) == 0 {
		return append(dst, msgpack.Nil)
	}
	tags = tags[:min(len(tags), maxKeyTags)]
	dst = appendArray(dst, len(tags))
	for _, tag := range tags {
		dst = appendStr(dst, tag)
	}
	return dst
}
