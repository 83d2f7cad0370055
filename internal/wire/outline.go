package wire

import (
	"math"

	"github.com/spanstatsd/spanstatsd/internal/msgpack"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// OutlineKey notes where the labels of a key lie. It knows the shape that nearly all
// keys have, and reports false for any other, well formed or not: ReadKey reads all
// of them, and says what is wrong with one.
func OutlineKey(o *span.Outline, raw []byte) bool {
	if len(raw) == 0 || raw[0] < msgpack.FixArray|minKeyElements || raw[0] > msgpack.FixArray|13 {
		return false
	}
	count := int(raw[0] & 0x0f)
	at := outlineTexts(o.Labels[:minKeyElements], raw, 1)
	if at != 0 {
		at = outlineMiddle(o, raw, at, count)
	}
	o.Peers = 0
	if at != 0 && count > 7 {
		at = outlineTags(o, raw, at)
	}
	*(*[4]span.Part)(o.Labels[5:]) = [4]span.Part{}
	if o.HasMore = count > 8; at != 0 && o.HasMore {
		at = outlineTexts(o.Labels[5:min(count, 12)-3], raw, at)
	}
	o.Synthetics = false
	if at != 0 && count == 13 {
		if at == len(raw) || raw[at] != msgpack.True && raw[at] != msgpack.False && raw[at] != msgpack.Nil {
			return false
		}
		o.Synthetics = raw[at] == msgpack.True
		at++
	}
	return at == len(raw) // which is not 0
}

// outlineMiddle notes what stands between resource and peer tags, and returns where it
// ends, or 0.
func outlineMiddle(o *span.Outline, raw []byte, at, count int) (end int) {
	if count > 7 {
		if length := o.Repeat(raw[at:]); length > 0 {
			return at + length
		}
	}
	o.Forget()
	end = outlineTexts(o.Labels[minKeyElements:min(count, 5)], raw, at)
	if end != 0 && count > 5 {
		end = outlineRoot(o, raw, end)
	}
	if end != 0 && count > 6 {
		end = outlineStatus(o, raw, end)
	}
	if end != 0 && count > 7 {
		o.Remember(raw[at:end])
	}
	return end
}

// outlineRoot notes whether the span is a trace's root.
func outlineRoot(o *span.Outline, raw []byte, at int) (end int) {
	if at == len(raw) {
		return 0
	}
	switch raw[at] {
	case msgpack.True:
		o.TraceRoot = span.TraceRootTrue
	case msgpack.False:
		o.TraceRoot = span.TraceRootFalse
	case msgpack.Nil:
	default:
		return 0
	}
	return at + 1
}

// outlineStatus notes the HTTP status, or none.
func outlineStatus(o *span.Outline, raw []byte, at int) (end int) {
	if at < len(raw) && raw[at] == msgpack.Nil {
		return at + 1
	}
	r := msgpack.NewReaderAt(raw, at)
	o.HTTPStatus = uint32(r.Uint(math.MaxUint32))
	if r.Failed() {
		return 0
	}
	return r.At()
}

func outlineTags(o *span.Outline, raw []byte, at int) (end int) {
	if at >= len(raw) {
		return 0
	}
	lead := raw[at]
	at++
	if lead == msgpack.Nil {
		return at
	}
	if lead < msgpack.FixArray || lead > msgpack.FixArray|15 {
		return 0
	}
	o.Peers = int(lead & 0x0f)
	tags := o.PeerTags[:o.Peers]
	end = outlineTexts(tags, raw, at)
	for _, tag := range tags {
		if tag.IsEmpty() {
			return 0
		}
	}
	return end
}

// outlineTexts notes texts of at most 255 bytes, or none, and returns where they end, or
// 0.
func outlineTexts(texts []span.Part, raw []byte, at int) (end int) {
	for i := range texts {
		if at >= len(raw) {
			return 0
		}
		lead := raw[at]
		at++
		n := int(lead) - msgpack.FixStr
		if uint(n) >= 32 {
			switch {
			case lead == msgpack.Nil:
				n = 0
			case lead == msgpack.Str8 && at < len(raw):
				n = int(raw[at])
				at++
			default:
				return 0
			}
		}
		end := at + n
		if end > len(raw) {
			return 0
		}
		texts[i] = span.Part{From: uint32(at), To: uint32(end)}
		at = end
	}
	return at
}
