// Package unsampled cuts traces that a tracer's sampling has thrown away out of a body of the
// agent's trace formats. Once they are counted nobody looks at them again, so they need not leave
// the pod; the agent is told how many they were, which its samplers want to know.
//
// A body is cut where it lies, and never becomes longer. Of a body of v1.0 the strings that a
// trace brought are sent ahead (v1.go), since what is left of the body may ask for them.
//
// # Bounds and threading
//
// Cut takes no memory but for the strings that are sent ahead, maxAhead bytes in the table's own
// room. The goroutine that has the table and its decoder calls it.
package unsampled

import (
	"encoding/binary"
	"math"
	"slices"

	decode "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
	"github.com/spanstatsd/spanstatsd/internal/wire/msgpack"
)

// Cut takes the unsampled traces out of the body that a table was read of, which is written over,
// and returns what is left and how much is not.
func Cut(t *spantable.Table, d *decode.Decoder) (left []byte, traces, spans int) {
	body, list := t.Body, d.TraceList()
	isCut := func(g spantable.Group) bool { return isUnsampled(t, &g) }
	if list.End == 0 || !slices.ContainsFunc(t.Groups, isCut) {
		return body, 0, 0 // before anything is moved
	}
	if list.FieldCount > 0 {
		return cutV1(t, list, d.Strings())
	}
	at := list.First
	for i := range t.Groups {
		g := &t.Groups[i]
		if isUnsampled(t, g) {
			traces++
			spans += len(t.SpansOf(g))
			continue
		}
		at += copy(body[at:], body[g.At:g.End])
	}
	// Chunks that hold nothing are in no list of ours, and were not kept either.
	setCount(body[list.Header:list.First], len(t.Groups)-traces)
	at += copy(body[at:], body[list.End:])
	return body[:at], traces, spans
}

// noPriority is what two of the formats write where a trace has none: then the agent decides.
const noPriority = math.MinInt8

// isUnsampled says whether a tracer's sampling threw a trace away, and nothing in it asks to be
// kept: an error, a span that was sampled for itself, an event.
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

// setCount writes another, smaller count into the header of an array.
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

// In a v1 body the strings of a trace are numbered for what comes after it. So that a trace can be
// cut out, all strings up to it are sent ahead, in their order: then each has the number that it
// had, also where it stands in a trace that is left, for a string that comes twice gets no second
// number. Traces at the end have nothing behind them that asks for theirs.

// maxAhead bounds the bytes of strings that are sent ahead: many times those of a request.
const maxAhead = 128 << 10

// cutV1 is Cut for a v1 body. What would be longer than it is stays as it is.
func cutV1(t *spantable.Table, list decode.TraceList, texts []spantable.Text) (left []byte, traces, spans int) {
	body, saved, numbered := t.Body, 0, 0
	isBehind := list.End < len(body) // something is, that is left
	for i := len(t.Groups) - 1; i >= 0; i-- {
		g := &t.Groups[i]
		if !isUnsampled(t, g) {
			isBehind = true
			continue
		}
		traces++
		spans += len(t.SpansOf(g))
		saved += int(g.End - g.At)
		if isBehind {
			numbered = max(numbered, int(g.Strings))
		}
	}
	ahead := body[:list.FieldsStart]
	if numbered > 0 {
		ahead = stringsAhead(t, list.FieldCount, texts[1:numbered])
	}
	if ahead == nil || len(ahead) >= list.FieldsStart+saved {
		return body, 0, 0
	}
	// What is left goes to the end of the body, the last first, and the strings before it.
	at := len(body)
	keep := func(piece []byte) {
		at -= len(piece)
		copy(body[at:], piece)
	}
	keep(body[list.End:])
	for i := len(t.Groups) - 1; i >= 0; i-- {
		if g := &t.Groups[i]; !isUnsampled(t, g) {
			keep(body[g.At:g.End])
		}
	}
	setCount(body[list.Header:list.First], len(t.Groups)-traces)
	keep(body[list.FieldsStart:list.First])
	keep(ahead)
	return body[at:], traces, spans
}

// stringsAhead is what a body of so many fields begins with that sends strings ahead, without the
// empty one, which every body has; nil where they are too many.
func stringsAhead(t *spantable.Table, fields int, texts []spantable.Text) []byte {
	const header = 5 // of a map, a list or a long string
	size := 3 * header
	for _, s := range texts {
		size += header + int(s.Len)
	}
	if size > maxAhead {
		return nil
	}
	to := append32(t.Derived[:0], msgpack.Map32, fields+1)    // the body
	to = append32(append(to, 1), msgpack.Array32, len(texts)) // the strings' number, and their list
	for _, s := range texts {
		if s.Len < 32 {
			to = append(to, msgpack.FixStr|byte(s.Len))
		} else {
			to = append32(to, msgpack.Str32, int(s.Len))
		}
		to = append(to, t.Bytes(s)...)
	}
	t.Derived = to
	return to
}

// append32 appends what msgpack writes before a list or a text of any length.
func append32(to []byte, lead byte, length int) []byte {
	return binary.BigEndian.AppendUint32(append(to, lead), uint32(length))
}
