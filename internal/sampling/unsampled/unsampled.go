// Package unsampled removes traces that a tracer's sampling has rejected from request bodies in the
// agent's trace formats. Once the traces are counted, they do not have to leave the pod. The caller
// reports their number to the agent, whose samplers use it.
//
// Bodies are modified in place, and never become longer. In a v1.0 body, traces can refer to
// strings of earlier traces, so strings of removed traces are moved to the start of the body.
//
// # Concurrency and limits
//
// Cut allocates no memory except for these strings, up to maxStartBytes bytes in the table's own buffer.
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

// Cut removes the traces that the tracer has decided not to sample from a request body, in place, and
// returns the remaining body. It also returns the numbers of removed traces and of their spans. t must
// be the result of decoding the body with d.
func Cut(t *spantable.Table, d *decode.Decoder) (remaining []byte, traces, spans int) {
	list := d.TraceList()
	isEmpty := list.TracesEnd == 0 // the body has no list of traces
	hasUnsampled := slices.ContainsFunc(t.Groups, func(g spantable.Group) bool { return isUnsampled(t, &g) })
	if isEmpty || !hasUnsampled {
		return t.Body, 0, 0
	}
	isMap := list.FieldCount > 0 // as in format v1; the other formats are lists
	if isMap {
		return removeFromV1(t, list, d.Strings())
	}
	return removeFromList(t, list)
}

// removeFromList removes the unsampled traces from a body in a format that is a list of independent traces, and returns
// the numbers of removed traces and spans. It moves the remaining traces together, in place. Traces without spans are
// removed as well, because t.Groups does not contain them.
func removeFromList(t *spantable.Table, list decode.TraceList) (remaining []byte, traces, spans int) {
	body := t.Body
	writtenTo := list.TracesStart // end of the remaining body so far; everything before the first trace remains
	for i := range t.Groups {
		g := &t.Groups[i]
		if isUnsampled(t, g) {
			traces++
			spans += len(t.SpansOf(g))
			continue
		}
		writtenTo += copy(body[writtenTo:], body[g.BodyStart:g.BodyEnd])
	}
	header := body[list.HeaderStart:list.TracesStart]
	remainingTraces := len(t.Groups) - traces
	setCount(header, remainingTraces)
	writtenTo += copy(body[writtenTo:], body[list.TracesEnd:])
	return body[:writtenTo], traces, spans
}

// noPriority is the value in two of the formats for a trace without a sampling priority. The agent
// makes the decision then.
const noPriority = math.MinInt8

// isUnsampled reports whether the agent does not need a trace: its sampling priority is 0 or less, and it
// has no span that the agent needs in any case, such as one with an error. isUnsampled returns false for a
// trace without spans, or without a priority.
func isUnsampled(t *spantable.Table, trace *spantable.Group) bool {
	hasPriority := trace.HasPriority && trace.Priority != noPriority
	wasSampledOut := hasPriority && trace.Priority <= 0 // by the tracer
	spans := t.SpansOf(trace)
	if !wasSampledOut || len(spans) == 0 {
		return false
	}
	for i := range spans {
		if mustForward(t, &spans[i]) {
			return false
		}
	}
	return true
}

// mustForward reports whether the agent needs a span even if its trace was not sampled: a span that has
// an error, that was sampled individually, or that is an event.
func mustForward(t *spantable.Table, s *spantable.Span) bool {
	if s.Status == spantable.StatusError {
		return true
	}
	for _, tag := range t.TagsOf(s) {
		if tag.Label == decode.LabelSpanSampling || tag.Label == decode.LabelEventRate {
			return true
		}
	}
	return false
}

// setCount changes the number of elements in header, the header of a msgpack array. The header keeps its
// length of 1, 3 or 5 bytes, so count must not be larger than the previous number.
func setCount(header []byte, count int) {
	const fixArrayBytes, array16Bytes = 1, 3 // lengths of the short headers
	switch len(header) {
	case fixArrayBytes:
		header[0] = msgpack.FixArray | byte(count)
	case array16Bytes:
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

// maxStartBytes limits the bytes that are written to the start of a body for moved strings. A request normally has much fewer.
const maxStartBytes = 128 << 10

// removeFromV1 removes the unsampled traces from a body in the v1 format, in place. Remaining traces can refer to strings
// that first occur in removed ones, so removeFromV1 moves these strings, and all with lower numbers, to the start of the
// body. If the body would not become shorter, or the strings exceed maxStartBytes, removeFromV1 removes nothing.
func removeFromV1(t *spantable.Table, list decode.TraceList, texts []spantable.Text) (remaining []byte, traces, spans int) {
	removed := countRemovedV1(t, list)
	oldStart := t.Body[:list.FieldsStart]
	newStart := oldStart
	if removed.movedEnd > 0 {
		const firstListed = 1 // number 0 is the empty string in every body, and is not listed
		moved := texts[firstListed:removed.movedEnd]
		if startBytes(moved) > maxStartBytes {
			return t.Body, 0, 0 // nothing is removed
		}
		newStart = encodeStart(t, list.FieldCount, moved)
	}
	addedBytes := len(newStart) - len(oldStart)
	if addedBytes >= removed.bytes {
		return t.Body, 0, 0 // nothing is removed
	}
	remainingTraces := len(t.Groups) - removed.traces
	return writeV1(t, list, newStart, remainingTraces), removed.traces, removed.spans
}

// removedV1 describes the unsampled traces of a v1 body.
type removedV1 struct {
	traces, spans int
	bytes         int // encoded length of the traces
	movedEnd      int // strings with smaller numbers are moved to the start of the body; 0 if this is unnecessary
}

// countRemovedV1 adds up the unsampled traces of a v1 body.
func countRemovedV1(t *spantable.Table, list decode.TraceList) (removed removedV1) {
	hasSuccessor := list.TracesEnd < len(t.Body) // bytes after the current trace remain in the body
	for i := len(t.Groups) - 1; i >= 0; i-- {
		g := &t.Groups[i]
		if !isUnsampled(t, g) {
			hasSuccessor = true
			continue
		}
		removed.traces++
		removed.spans += len(t.SpansOf(g))
		removed.bytes += int(g.BodyEnd - g.BodyStart)
		if hasSuccessor {
			removed.movedEnd = max(removed.movedEnd, int(g.StringCount)) // strings up to the end of this trace
		}
	}
	return removed
}

// writeV1 replaces a v1 body by one that begins with start and contains only the sampled traces, and
// returns it. traceCount is the number of these traces. It writes the last part first, to the end of the old body, so that
// no part overwrites one that is still to be copied. The parts of the old body are: a start, fields before the traces,
// the traces, and fields after them.
func writeV1(t *spantable.Table, list decode.TraceList, start []byte, traceCount int) []byte {
	body := t.Body
	header := body[list.HeaderStart:list.TracesStart] // of the list of traces
	setCount(header, traceCount)
	beforeTraces := body[list.FieldsStart:list.TracesStart] // ends with header
	afterTraces := body[list.TracesEnd:]
	writtenFrom := len(body)
	prepend := func(part []byte) {
		writtenFrom -= len(part)
		copy(body[writtenFrom:], part)
	}
	prepend(afterTraces)
	for i := len(t.Groups) - 1; i >= 0; i-- {
		trace := &t.Groups[i]
		if !isUnsampled(t, trace) {
			prepend(body[trace.BodyStart:trace.BodyEnd])
		}
	}
	prepend(beforeTraces)
	prepend(start)
	return body[writtenFrom:]
}

// startBytes returns the maximum length of the result of encodeStart for the given strings.
func startBytes(texts []spantable.Text) int {
	const maxHeader = 5 // bytes of the longest header of a map, a list or a string
	maxBytes := 3 * maxHeader
	for _, text := range texts {
		maxBytes += maxHeader + int(text.Len)
	}
	return maxBytes
}

// encodeStart returns the start of a v1 body, a msgpack map: the header of the map, and its first field, a
// list of the given strings. The caller appends otherFields more fields. No string may be in t.Derived, because
// encodeStart overwrites it with the result, to save an allocation.
func encodeStart(t *spantable.Table, otherFields int, texts []spantable.Text) []byte {
	const stringsField = 1 // number of the field with the list of strings
	fieldCount := 1 + otherFields
	start := append32(t.Derived[:0], msgpack.Map32, fieldCount)
	start = append(start, stringsField)
	start = append32(start, msgpack.Array32, len(texts))
	for _, text := range texts {
		start = appendStringHeader(start, int(text.Len))
		start = append(start, t.Bytes(text)...)
	}
	t.Derived = start
	return start
}

// appendStringHeader appends the msgpack header of a string of the given length.
func appendStringHeader(dst []byte, length int) []byte {
	const maxFixStr = 31 // maximum length that fits into a header of one byte
	if length <= maxFixStr {
		return append(dst, msgpack.FixStr|byte(length))
	}
	return append32(dst, msgpack.Str32, length)
}

// append32 appends a msgpack header: its lead byte and a 32-bit length.
func append32(dst []byte, lead byte, length int) []byte {
	return binary.BigEndian.AppendUint32(append(dst, lead), uint32(length))
}
