package traces

import "encoding/binary"

// In a v1 body the strings of a trace are numbered for what comes after it. So that a trace
// can be cut out, all strings up to it are sent ahead, in their order: then each has the
// number that it had, also where it stands in a trace that is left, for a string that comes
// twice gets no second number. Traces at the end have nothing behind them that asks for theirs.

// maxAhead bounds the bytes of strings that are sent ahead: many times those of a request.
const maxAhead = 128 << 10

// cutV1 is Cut for a v1 body. What would be longer than it is stays as it is.
func (c *Counter) cutV1(body []byte) (left []byte, traces, spans int) {
	list, chunks, saved, numbered := c.payload.list, c.payload.chunks, 0, 0
	isBehind := list.end < len(body) // something is, that is left
	for i := len(chunks) - 1; i >= 0; i-- {
		t := &chunks[i]
		if !c.isUnsampled(t) {
			isBehind = true
			continue
		}
		traces++
		spans += t.last - t.first
		saved += t.end - t.at
		if isBehind {
			numbered = max(numbered, t.strings)
		}
	}
	ahead := body[:list.behind]
	if numbered > 0 {
		ahead = c.ahead(numbered)
	}
	if ahead == nil || len(ahead) >= list.behind+saved {
		return body, 0, 0
	}
	// What is left goes to the end of the body, the last first, and the strings before it.
	at := len(body)
	keep := func(piece []byte) {
		at -= len(piece)
		copy(body[at:], piece)
	}
	keep(body[list.end:])
	for i := len(chunks) - 1; i >= 0; i-- {
		if t := &chunks[i]; !c.isUnsampled(t) {
			keep(body[t.at:t.end])
		}
	}
	setCount(body[list.at:list.first], len(chunks)-traces)
	keep(body[list.behind:list.first])
	keep(ahead)
	return body[at:], traces, spans
}

// ahead is what a body begins with that sends so many strings ahead, the empty one included,
// which every body has; nil where they are too many.
func (c *Counter) ahead(numbered int) []byte {
	const header = 5 // of a map, a list or a long string
	p, size := &c.payload, 3*header
	for _, s := range p.strings[1:numbered] {
		size += header + int(s.Len)
	}
	if size > maxAhead {
		return nil
	}
	if cap(c.scratch) < size {
		c.scratch = make([]byte, 0, size)
	}
	to := append32(c.scratch[:0], 0xdf, p.list.fields+1) // a map
	to = append32(append(to, 1), 0xdd, numbered-1)       // the strings' number, and their list
	for _, s := range p.strings[1:numbered] {
		if s.Len < 32 {
			to = append(to, 0xa0|byte(s.Len))
		} else {
			to = append32(to, 0xdb, int(s.Len))
		}
		to = append(to, s.Of(p.body)...)
	}
	return to
}

// append32 appends what msgpack writes before a list or a text of any length.
func append32(to []byte, lead byte, length int) []byte {
	return binary.BigEndian.AppendUint32(append(to, lead), uint32(length))
}
