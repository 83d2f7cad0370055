package unsampled

import (
	"encoding/binary"

	"github.com/spanstatsd/spanstatsd/internal/msgpack"

	decode "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	"github.com/spanstatsd/spanstatsd/internal/spantable"
)

// In a v1 body the strings of a trace are numbered for what comes after it. So that a trace can be
// cut out, all strings up to it are sent ahead, in their order: then each has the number that it
// had, also where it stands in a trace that is left, for a string that comes twice gets no second
// number. Traces at the end have nothing behind them that asks for theirs.

// maxAhead bounds the bytes of strings that are sent ahead: many times those of a request.
const maxAhead = 128 << 10

// cutV1 is Cut for a v1 body. What would be longer than it is stays as it is.
func cutV1(t *spantable.Table, list decode.List, texts []spantable.Text) (left []byte, traces, spans int) {
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
	ahead := body[:list.Behind]
	if numbered > 0 {
		ahead = stringsAhead(t, list.Fields, texts[1:numbered])
	}
	if ahead == nil || len(ahead) >= list.Behind+saved {
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
	setCount(body[list.At:list.First], len(t.Groups)-traces)
	keep(body[list.Behind:list.First])
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
	to := append32(t.Made[:0], msgpack.Map32, fields+1)       // the body
	to = append32(append(to, 1), msgpack.Array32, len(texts)) // the strings' number, and their list
	for _, s := range texts {
		if s.Len < 32 {
			to = append(to, msgpack.FixStr|byte(s.Len))
		} else {
			to = append32(to, msgpack.Str32, int(s.Len))
		}
		to = append(to, t.Bytes(s)...)
	}
	t.Made = to
	return to
}

// append32 appends what msgpack writes before a list or a text of any length.
func append32(to []byte, lead byte, length int) []byte {
	return binary.BigEndian.AppendUint32(append(to, lead), uint32(length))
}
