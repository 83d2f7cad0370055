package checkclient

import (
	"fmt"
	"math/bits"
	"net"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/ingest"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// session is one client connection. Only its own goroutine accesses it.
type session struct {
	*Checker
	id    int
	conn  net.Conn
	in    *ingest.Reader
	lang  string
	keys  keys
	sums  sums
	noted map[note]struct{}

	after aftermath

	key span.Key // reused for parsing
}

func newSession(c *Checker, conn net.Conn, id int) *session {
	return &session{
		Checker: c, id: id, conn: conn, in: ingest.NewReader(conn, &c.read),
		keys: newKeys(), noted: map[note]struct{}{}, sums: sums{notes: map[string]int{}},
	}
}

// event starts the description of a message, and counts it.
func (s *session) event(name string, message []byte) *event {
	s.sums.messages++
	s.sums.bytes += wire.HeaderLen + len(message)
	return &event{s.id, name, entry{facts: []any{"bytes", wire.HeaderLen + len(message)}}}
}

// answerTimeout bounds a write to a client that does not read.
const answerTimeout = 100 * time.Millisecond

// answer sends a frame, and reports it.
func (s *session) answer(frame []byte, name string, facts ...any) {
	e := &event{s.id, "answer", entry{facts: append([]any{"type", name, "bytes", len(frame)}, facts...)}}
	_ = s.conn.SetWriteDeadline(time.Now().Add(answerTimeout)) // if this fails, so does the write
	if _, err := s.conn.Write(frame); err != nil {
		e.add("not_sent", head(err.Error()))
	}
	s.printer.print(e, false)
}

// fail reports why the connection ends, and sends bye as a daemon does.
func (s *session) fail(ended *ending) {
	at, reason := min(max(ended.at, 0), len(ended.bytes)), ingest.FaultOf(ended.err)
	e := &event{s.id, "malformed", entry{facts: []any{"reason", reason.String(), "message", s.sums.messages}}}
	if len(ended.bytes) > 0 {
		e.add("byte", at, "hex", hexAround(ended.bytes, at))
	}
	s.note(&e.entry, noteMalformed, "%s", ended.err)
	if reason == ingest.FaultTooLarge {
		s.note(&e.entry, noteAdvice, "a frame's length is big-endian; little-endian this one says %d",
			bits.ReverseBytes32(wire.FrameLength(ended.bytes)))
	}
	s.printer.print(e, true)
	if bye, ok := ingest.ByeOf(ended.err); ok {
		s.answer(wire.AppendBye(nil, &bye), "bye", "reason", bye.Reason)
	}
}

// maxNotes limits the distinct notes per connection. Further notes are only counted.
const maxNotes = 512

// note adds a note to an entry, unless the connection already has the same note.
func (s *session) note(dst *entry, kind, format string, args ...any) {
	n := note{kind, fmt.Sprintf(format, args...)}
	s.sums.notes[kind]++
	if _, known := s.noted[n]; !known && (len(s.noted) < maxNotes || kind == noteMalformed) {
		s.noted[n] = struct{}{}
		dst.notes = append(dst.notes, n)
	}
}
