package wire

import "github.com/spanstatsd/spanstatsd/internal/span"

// A key is one msgpack array. The place of an element says which label it is;
// the first three are always there, the others end with the last that is set.
const (
	minKeyElements = 3
	maxKeyElements = 14
	maxKeyTags     = 256 // in each of the two lists, normalised to fewer later
)

// AppendKey appends the canonical bytes of the key: equal keys give equal bytes.
func AppendKey(dst []byte, k *span.Key) []byte {
	count := keyElements(k)
	dst = append(dst, fixArray|byte(count))
	dst = appendStr(dst, k.Service)
	dst = appendStr(dst, k.Operation)
	dst = appendStr(dst, k.Resource)
	for i := minKeyElements; i < count; i++ {
		dst = appendLabel(dst, k, i)
	}
	return dst
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

// appendLabel appends the optional label at place i.
func appendLabel(dst []byte, k *span.Key, i int) []byte {
	switch i {
	case 3:
		return appendOptional(dst, k.Type)
	case 4:
		return appendOptional(dst, k.Kind)
	case 5:
		return appendTraceRoot(dst, k.TraceRoot)
	case 6:
		if k.HTTPStatus == 0 {
			return append(dst, nilLead)
		}
		return appendUint(dst, uint64(k.HTTPStatus))
	case 7:
		return appendTags(dst, k.PeerTags)
	case 8:
		return appendOptional(dst, k.HTTPMethod)
	case 9:
		return appendOptional(dst, k.HTTPEndpoint)
	case 10:
		return appendOptional(dst, k.GRPCStatus)
	case 11:
		return appendOptional(dst, k.ServiceSource)
	case 12:
		if k.Synthetics {
			return append(dst, trueVal)
		}
		return append(dst, nilLead)
	default:
		return appendTags(dst, k.AdditionalTags)
	}
}

func appendOptional(dst []byte, s string) []byte {
	if s == "" {
		return append(dst, nilLead)
	}
	return appendStr(dst, s)
}

func appendTraceRoot(dst []byte, root span.TraceRoot) []byte {
	switch root {
	case span.TraceRootTrue:
		return append(dst, trueVal)
	case span.TraceRootFalse:
		return append(dst, falseVal)
	}
	return append(dst, nilLead)
}

// appendTags writes no more tags than a reader takes. Those are many more than
// the statistics keep.
func appendTags(dst []byte, tags []string) []byte {
	if len(tags) == 0 {
		return append(dst, nilLead)
	}
	tags = tags[:min(len(tags), maxKeyTags)]
	dst = appendArray(dst, len(tags))
	for _, tag := range tags {
		dst = appendStr(dst, tag)
	}
	return dst
}
