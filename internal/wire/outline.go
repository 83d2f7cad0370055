package wire

import "github.com/spanstatsd/spanstatsd/internal/span"

// OutlineKey notes where the labels of a key lie. It knows the shape that nearly all
// keys have, and reports false for any other, well formed or not: ReadKey reads all
// of them, and says what is wrong with one.
func OutlineKey(o *span.Outline, raw []byte) bool {
	if len(raw) == 0 || raw[0] < fixArray|minKeyElements || raw[0] > fixArray|13 {
		return false
	}
	o.Reset()
	count, at := int(raw[0]&0x0f), 1
	for i := range min(count, 5) {
		if at = outlineText(&o.Labels[i], raw, at); at == 0 {
			return false
		}
	}
	if count > 5 {
		if at = outlineFacts(o, raw, at, count); at == 0 {
			return false
		}
	}
	for i := 8; i < min(count, 12); i++ {
		if at = outlineText(&o.Labels[i-3], raw, at); at == 0 {
			return false
		}
	}
	if count == 13 {
		switch {
		case at >= len(raw) || raw[at] != trueVal && raw[at] != falseVal && raw[at] != nilLead:
			return false
		case raw[at] == trueVal:
			o.Synthetics = true
		}
		at++
	}
	return at == len(raw)
}

// outlineFacts notes what stands between the texts: trace root, HTTP status and peer
// tags. It returns where they end, or 0.
func outlineFacts(o *span.Outline, raw []byte, at, count int) (end int) {
	if at >= len(raw) {
		return 0
	}
	switch raw[at] {
	case trueVal:
		o.TraceRoot = span.TraceRootTrue
	case falseVal:
		o.TraceRoot = span.TraceRootFalse
	case nilLead:
	default:
		return 0
	}
	at++
	if count > 6 {
		if at >= len(raw) {
			return 0
		}
		if raw[at] == nilLead {
			at++
		} else {
			status, isNegative, n := readInteger(raw[at:])
			if n == 0 || isNegative || status > 1<<32-1 {
				return 0
			}
			o.HTTPStatus = uint32(status)
			at += n
		}
	}
	if count > 7 {
		return outlineTags(o, raw, at)
	}
	return at
}

func outlineTags(o *span.Outline, raw []byte, at int) (end int) {
	if at >= len(raw) {
		return 0
	}
	lead := raw[at]
	at++
	if lead == nilLead {
		return at
	}
	if lead < fixArray || lead > fixArray|15 {
		return 0
	}
	o.Peers = int(lead & 0x0f)
	for i := range o.Peers {
		o.PeerTags[i] = span.Part{}
		if at = outlineText(&o.PeerTags[i], raw, at); at == 0 || o.PeerTags[i].IsEmpty() {
			return 0
		}
	}
	return at
}

// outlineText notes a text of at most 255 bytes, or none, and returns where it ends,
// or 0.
func outlineText(p *span.Part, raw []byte, at int) (end int) {
	if at+1 >= len(raw) {
		if at < len(raw) && (raw[at] == nilLead || raw[at] == fixStr) {
			return at + 1
		}
		return 0
	}
	lead := raw[at]
	at++
	switch {
	case lead&0xe0 == fixStr:
		end = at + int(lead&0x1f)
	case lead == nilLead:
		return at
	case lead == str8:
		end = at + 1 + int(raw[at])
		at++
	default:
		return 0
	}
	if end > len(raw) {
		return 0
	}
	p.From, p.To = uint32(at), uint32(end)
	return end
}
