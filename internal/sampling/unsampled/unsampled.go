// Package unsampled removes traces that a tracer's sampling has rejected from request bodies in the
// agent's trace formats. Once the traces are counted, they do not have to leave the pod. The caller
// reports their number to the agent, whose samplers use it.
//
// Bodies are modified in place, and never become longer. In a v1.0 body, traces can refer to
// strings of earlier traces, so strings of removed traces are moved to the start of the body.
//
// # Concurrency and limits
//
// Cut allocates no memory except for these strings, up to maxAhead bytes in the table's own buffer.
// It is called by the goroutine that owns the table and its decoder.
package unsampled

import (
	"encoding/binary"
	"math"
	"slices"

	decode "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
	"github.com/spanstatsd/spanstatsd/internal/wire/msgpack"
)

// Cut removes the unsampled traces from the body that t was decoded from, in place. It returns the
// remaining body, and the number of traces and spans removed.
func Cut(t *spantable.Table, d *decode.Decoder) (rest []byte, traces, spans int) {
	body, list := t.Body, d.TraceList()
	unsampled := func(g spantable.Group) bool { return isUnsampled(t, &g) }
	if list.End == 0 || !slices.ContainsFunc(t.Groups, unsampled) {
		return body, 0, 0
	}
	if list.FieldCount > 0 {
		return cutV1(t, list, d.Strings())
	}
	length := list.First
	for i := range t.Groups {
		g := &t.Groups[i]
		if isUnsampled(t, g) {
			traces++
			spans += len(t.SpansOf(g))
			continue
		}
		length += copy(body[length:], body[g.At:g.End])
	}
	// Empty chunks are not in t.Groups, so they have been removed as well.
	setCount(body[list.Header:list.First], len(t.Groups)-traces)
	length += copy(body[length:], body[list.End:])
	return body[:length], traces, spans
}

// noPriority is the value in two of the formats for a trace without a sampling priority. The agent
// makes the decision then.
const noPriority = math.MinInt8

// isUnsampled reports whether a tracer's sampling has rejected a trace, and the trace contains no
// error, no individually sampled span and no event.
func isUnsampled(t *spantable.Table, g *spantable.Group) bool {
	if !g.HasPriority || g.Priority > 0 || g.Priority == noPriority || g.First == g.Last {
		return false
	}
	for i := range t.SpansOf(g) {
		s := &t.SpansOf(g)[i]
		if s.Status == spantable.StatusError {
			return false
		}
		for _, tag := range t.TagsOf(s) {
			if tag.Label == decode.LabelSpanSampling || tag.Label == decode.LabelEventRate {
				return false
			}
		}
	}
	return true
}

// setCount replaces the count in the header of an array by a smaller one.
func setCount(header []byte, count int) {
	switch len(header) {
	case 1:
		header[0] = 0x90 | byte(count)
	case 3:
		binary.BigEndian.PutUint16(header[1:], uint16(count))
	default:
		binary.BigEndian.PutUint32(header[1:], uint32(count))
	}
}

// In a v1 body, strings are numbered in order of their first occurrence, and later traces refer to the
// strings of earlier ones by number. Before a trace is removed, all strings up to its end are moved to the
// start of the body in their order. So each string keeps its number, even if it occurs again in a remaining
// trace, because a repeated string gets no second number. This is unnecessary for traces after which
// nothing remains.

// maxAhead limits the bytes of strings moved to the start. A request normally has much fewer.
const maxAhead = 128 << 10

// cutV1 is Cut for a v1 body. It removes nothing if the body would become longer.
func cutV1(t *spantable.Table, list decode.TraceList, texts []spantable.Text) (rest []byte, traces, spans int) {
	body := t.Body
	saved := 0                           // bytes of removed traces
	numbered := 0                        // how many strings must keep their numbers
	remainsAfter := list.End < len(body) // anything after the current trace remains
	for i := len(t.Groups) - 1; i >= 0; i-- {
		g := &t.Groups[i]
		if !isUnsampled(t, g) {
			remainsAfter = true
			continue
		}
		traces++
		spans += len(t.SpansOf(g))
		saved += int(g.End - g.At)
		if remainsAfter {
			numbered = max(numbered, int(g.Strings)) // number of strings up to the end of the trace
		}
	}
	ahead := body[:list.FieldsStart]
	if numbered > 0 {
		ahead = stringsAhead(t, list.FieldCount, texts[1:numbered])
	}
	if ahead == nil || len(ahead) >= list.FieldsStart+saved {
		return body, 0, 0
	}
	// Write the new body backwards at the end of the old one, from its last part to the strings.
	start := len(body)
	prepend := func(part []byte) {
		start -= len(part)
		copy(body[start:], part)
	}
	prepend(body[list.End:])
	for i := len(t.Groups) - 1; i >= 0; i-- {
		if g := &t.Groups[i]; !isUnsampled(t, g) {
			prepend(body[g.At:g.End])
		}
	}
	setCount(body[list.Header:list.First], len(t.Groups)-traces)
	prepend(body[list.FieldsStart:list.First])
	prepend(ahead)
	return body[start:], traces, spans
}

// stringsAhead returns the start of a body with the given number of fields and a list of strings,
// except for the empty string, which has number 0 in every body. It returns nil if the strings are
// too long.
func stringsAhead(t *spantable.Table, fields int, texts []spantable.Text) []byte {
	const header = 5 // bytes of the header of a map, a list or a long string
	size := 3 * header
	for _, s := range texts {
		size += header + int(s.Len)
	}
	if size > maxAhead {
		return nil
	}
	dst := append32(t.Derived[:0], msgpack.Map32, fields+1)     // the body
	dst = append32(append(dst, 1), msgpack.Array32, len(texts)) // field 1, the list of strings
	for _, s := range texts {
		if s.Len < 32 {
			dst = append(dst, msgpack.FixStr|byte(s.Len))
		} else {
			dst = append32(dst, msgpack.Str32, int(s.Len))
		}
		dst = append(dst, t.Bytes(s)...)
	}
	t.Derived = dst
	return dst
}

// append32 appends a msgpack header with a 32-bit length.
func append32(dst []byte, lead byte, length int) []byte {
	return binary.BigEndian.AppendUint32(append(dst, lead), uint32(length))
}
