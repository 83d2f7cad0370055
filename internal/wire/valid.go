package wire

import "encoding/binary"

// maxDepth is how many maps and arrays of a cold message may lie in one another.
// Its own are two, three in welcome; the rest is for what later versions add.
const maxDepth = 8

// validate checks that body is one whole msgpack value with nothing after it,
// nested no deeper than maxDepth, with no count and no length beyond its bytes.
// After it, a decoder that trusts counts and recurses can do no harm. It walks
// with a stack of fixed size and allocates nothing.
func validate(doing string, body []byte) error {
	var open [maxDepth]uint64 // elements still to come, of each open map or array
	depth := 0
	rest := body
	for {
		n, elements := readShape(rest)
		if n == 0 {
			return malformed(doing, "expected a whole value, found %s", found(rest))
		}
		rest = rest[n:]
		if elements > uint64(len(rest)) {
			return malformed(doing, "%d elements claimed in %d bytes", elements, len(rest))
		}
		if elements > 0 {
			if depth == maxDepth {
				return malformed(doing, "nested deeper than %d", maxDepth)
			}
			open[depth] = elements
			depth++
			continue
		}
		for depth > 0 {
			if open[depth-1]--; open[depth-1] > 0 {
				break
			}
			depth--
		}
		if depth == 0 {
			break
		}
	}
	if len(rest) != 0 {
		return malformed(doing, "%d bytes follow its one value", len(rest))
	}
	return nil
}

// readShape reads one value without looking into it: its length, and for a map
// or an array the length of its header and how many values follow.
func readShape(b []byte) (n int, elements uint64) {
	if len(b) == 0 {
		return 0, 0
	}
	switch lead := b[0]; {
	case lead < fixMap || lead >= fixNegative || lead == nilLead || lead == falseVal || lead == trueVal:
		return 1, 0
	case lead < fixArray:
		return 1, 2 * uint64(lead&0x0f)
	case lead < fixStr || lead == array16 || lead == array32:
		count, n := readArray(b)
		return n, uint64(count)
	case lead < nilLead || lead >= str8 && lead <= str32:
		_, n = readStr(b)
	case lead >= bin8 && lead <= bin32:
		_, n = readBin(b)
	case lead == float32v || lead == float64v:
		_, n = readNumber(b)
	case lead >= uint8v && lead <= int64v:
		_, _, n = readInteger(b)
	case lead == map16 && len(b) >= 3:
		return 3, 2 * uint64(binary.BigEndian.Uint16(b[1:]))
	case lead == map32 && len(b) >= 5:
		return 5, 2 * uint64(binary.BigEndian.Uint32(b[1:]))
	case lead >= fixExt1 && lead <= fixExt16:
		_, n = readBody(b, 1, 1+1<<(lead-fixExt1))
	case lead >= ext8 && lead <= ext32:
		n = readExt(b)
	}
	return n, 0
}

// readExt steps over an extension, whose length does not count its type byte.
func readExt(b []byte) (n int) {
	if _, n = readSized(b, ext8); n == 0 || n == len(b) {
		return 0
	}
	return n + 1
}
