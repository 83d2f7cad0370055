package checkclient

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math/bits"
	"net"
	"slices"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/ingest"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// session is one tracer's connection. Its goroutine owns all of it.
type session struct {
	*Checker
	id   int
	conn net.Conn
	in   *ingest.Reader
	lang string
	keys keys
	sums sums
	told map[note]struct{}
	key  span.Key // scratch
}

func newSession(c *Checker, conn net.Conn, id int) *session {
	return &session{
		Checker: c, id: id, conn: conn, in: ingest.NewReader(conn, &c.read),
		keys: newKeys(), told: map[note]struct{}{}, sums: sums{notes: map[string]int{}},
	}
}

// ending is why a daemon closes a connection, and where.
type ending struct {
	err   error  // with the reason, as of package ingest
	bytes []byte // what was being read
	at    int    // the place in it
}

// badMessage is the ending by a message that is not what the protocol says.
func badMessage(message []byte, at int, err error) *ending {
	return &ending{ingest.NewFault(ingest.FaultBadMessage, err), message, at}
}

// malformed finds the place of an error, if there is one, in the message that it is about.
func malformed(message []byte, err error) *ending {
	if err == nil {
		return nil
	}
	left, ok := wire.Left(err)
	if !ok {
		left = len(message)
	}
	return badMessage(message, len(message)-left, err)
}

// run reads until the tracer leaves, which is no ending.
func (s *session) run() *ending {
	hello, message, err := s.in.Hello()
	switch {
	case message == nil:
		return s.unread(err)
	case err != nil:
		s.event("malformed", message) // to count it
		return &ending{err, message, malformed(message, err).at}
	}
	s.hello(hello, message)
	for {
		message, err := s.in.Next()
		if err != nil {
			return s.unread(err)
		}
		if left, ended := s.handle(message); left || ended != nil {
			return ended
		}
	}
}

// unread is the ending of a connection within a frame, or between two.
func (s *session) unread(err error) *ending {
	switch {
	case errors.Is(err, io.EOF) && s.sums.messages > 0:
		return nil
	case errors.Is(err, io.EOF):
		return &ending{err: ingest.NewFault(ingest.FaultNoHello,
			errors.New("read hello: the tracer left before it said anything"))}
	default:
		s.sums.messages++
		return &ending{err, s.in.Begun(), 0}
	}
}

func (s *session) hello(hello *wire.Hello, message []byte) {
	e, from := s.event("hello", message), &told{}
	s.lang = hello.Origin.Lang
	origin := hello.Origin
	origin.Normalize()
	before := maps.Collect(wire.OriginFields(&hello.Origin))
	e.add("version", hello.Version, "client", head(hello.Client))
	e.parts = []*told{from}
	for name, value := range wire.OriginFields(&origin) {
		if value != "" {
			from.add(name, head(value))
		}
		if value != before[name] {
			s.note(from, noteNormalised, "origin %s %q becomes %q", name, head(before[name]), head(value))
		}
	}
	if least := len(wire.AppendHello(nil, hello)) - wire.HeaderLen; least < len(message) {
		s.note(&e.told, noteAdvice, "it has %d bytes, where all that was understood takes %d: is a name "+
			"misspelt?", len(message), least)
	}
	s.printer.print(e, false)
	f := &s.config.Features
	s.answer(wire.AppendWelcome(nil, &wire.Welcome{
		Version: wire.Version, Daemon: s.config.Version, Features: *f,
		MaxFrame: s.read.MaxFrame, MaxBatch: s.admit.MaxBatch, MaxKeys: s.admit.MaxKeys,
		MaxKeyBytes: s.admit.MaxNumberedBytes(), Interval: uint64(s.config.Interval),
	}), "welcome", "version", wire.Version, "max_frame", s.read.MaxFrame, "max_batch", s.admit.MaxBatch,
		"max_keys", s.admit.MaxKeys, "max_key_bytes", s.admit.MaxNumberedBytes(), "interval",
		s.config.Interval, "stats", f.Stats, "span_kinds", f.SpanKinds, "peer_tags", f.PeerTags)
}

// handle tells of one message. It reports whether the tracer has left.
func (s *session) handle(message []byte) (left bool, ended *ending) {
	kind, body, err := wire.Split(message)
	e := s.event(kind.String(), message)
	if err != nil {
		return false, malformed(message, err)
	}
	switch kind {
	case wire.TypeSpans:
		ended = s.spans(e, message, body)
	case wire.TypeDefine:
		ended = s.define(e, message, body)
	case wire.TypeLost:
		var lost wire.Lost
		lost, err = wire.DecodeLost(body)
		for _, reason := range slices.Sorted(maps.Keys(lost)) {
			e.parts = append(e.parts, &told{facts: []any{"reason", head(reason), "spans", lost[reason]}})
		}
	case wire.TypeFlush:
		var flush wire.Flush
		flush, err = wire.DecodeFlush(body)
		e.add("id", flush.ID)
		if err == nil {
			defer s.answer(wire.AppendFlushAnswer(nil, &wire.Flush{ID: flush.ID, OK: true}), "flush", "id",
				flush.ID, "ok", true)
		}
	case wire.TypeBye:
		left = true // the daemon reads no further, not even in it
	default:
		err = fmt.Errorf("handle message: a tracer does not send %s here", kind)
	}
	if err != nil {
		return false, malformed(message, err)
	}
	s.printer.print(e, false)
	return left, ended
}

// event begins to tell of a message, and counts it.
func (s *session) event(name string, message []byte) *event {
	s.sums.messages++
	s.sums.bytes += wire.HeaderLen + len(message)
	return &event{s.id, name, told{facts: []any{"bytes", wire.HeaderLen + len(message)}}}
}

// answerTimeout is for a tracer that does not read.
const answerTimeout = 100 * time.Millisecond

// answer sends a frame, and tells of it.
func (s *session) answer(frame []byte, name string, facts ...any) {
	e := &event{s.id, "answer", told{facts: append([]any{"type", name, "bytes", len(frame)}, facts...)}}
	_ = s.conn.SetWriteDeadline(time.Now().Add(answerTimeout)) // fails only where the write does
	if _, err := s.conn.Write(frame); err != nil {
		e.add("not_sent", head(err.Error()))
	}
	s.printer.print(e, false)
}

// fail tells of what ends the connection, and says bye as a daemon does.
func (s *session) fail(ended *ending) {
	at, reason := min(max(ended.at, 0), len(ended.bytes)), ingest.FaultOf(ended.err)
	e := &event{s.id, "malformed", told{facts: []any{"reason", reason.String(), "message", s.sums.messages}}}
	if len(ended.bytes) > 0 {
		e.add("byte", at, "hex", hexAround(ended.bytes, at))
	}
	s.note(&e.told, noteMalformed, "%s", ended.err)
	if reason == ingest.FaultTooLarge {
		s.note(&e.told, noteAdvice, "a frame's length is big-endian; little-endian this one says %d",
			bits.ReverseBytes32(wire.FrameLength(ended.bytes)))
	}
	s.printer.print(e, true)
	if bye, ok := ingest.ByeOf(ended.err); ok {
		s.answer(wire.AppendBye(nil, &bye), "bye", "reason", bye.Reason)
	}
}

// maxTold is how many notes a connection has before its end; further ones are only counted.
const maxTold = 512

// note adds a note to what is told, if it is a new one.
func (s *session) note(to *told, kind, format string, args ...any) {
	n := note{kind, fmt.Sprintf(format, args...)}
	s.sums.notes[kind]++
	if _, known := s.told[n]; !known && (len(s.told) < maxTold || kind == noteMalformed) {
		s.told[n] = struct{}{}
		to.notes = append(to.notes, n)
	}
}
