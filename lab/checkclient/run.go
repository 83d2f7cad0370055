package checkclient

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/ingest"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// run reads messages until the connection ends. It returns nil if the client closed it in order.
func (s *session) run() *ending {
	hello, message, err := s.in.Hello()
	switch {
	case message == nil:
		return s.unread(err)
	case err != nil:
		s.event("malformed", message) // only to count the message
		return &ending{err, message, malformed(message, err).at}
	}
	s.hello(hello, message)
	for {
		message, err := s.in.Next()
		if err != nil {
			return s.unread(err)
		}
		isClosed, ended := s.handle(message)
		if isClosed {
			s.afterBye()
		}
		if isClosed || ended != nil {
			return ended
		}
		if s.isDoomed() && len(s.death.batches) == dieAt {
			return s.die()
		}
	}
}

// die ends the connection as a killed daemon does: it accepts no further data and sends no bye.
// It reads the data accepted before, because the client has to replay it.
func (s *session) die() *ending {
	s.answer(wire.AppendFeatures(nil, &wire.Announcement{
		Features: s.config.Features, Settled: uint64(len(s.death.batches[0])),
	}), "features", "settled", len(s.death.batches[0]))
	if socket, ok := s.conn.(*net.UnixConn); ok {
		_ = socket.CloseRead() // if this fails, the connection ends when the client closes it
	}
	for {
		message, err := s.in.Next()
		if err != nil {
			break
		}
		if isClosed, ended := s.handle(message); isClosed || ended != nil {
			return ended
		}
	}
	s.printer.print(&event{s.id, "death", entry{facts: []any{"batches", len(s.death.batches)}}}, true)
	s.death.mu.Lock()
	defer s.death.mu.Unlock()
	s.death.isOver = true
	return nil
}

// afterBye reports data that the client sent after its bye, which a daemon drops. From here on
// the client can write no more.
func (s *session) afterBye() {
	socket, ok := s.conn.(*net.UnixConn)
	if !ok || socket.CloseRead() != nil {
		return
	}
	for {
		message, err := s.in.Next()
		if err != nil {
			return
		}
		kind, body, _ := wire.Split(message)
		e := s.event(kind.String(), message)
		if kind == wire.TypeSpans {
			spans := wire.CountSpans(body, 0)
			s.note(&e.entry, noteDropped, "%d spans after the bye: dropped, as refused", spans)
			s.sums.spans += int(spans)
		} else {
			s.note(&e.entry, noteAdvice, "%s after the bye: the daemon does not read it", kind)
		}
		s.printer.print(e, false)
	}
}

// unread returns the ending of a connection that ended within a frame or between two frames.
func (s *session) unread(err error) *ending {
	switch {
	case errors.Is(err, io.EOF) && s.sums.messages > 0:
		return nil
	case errors.Is(err, io.EOF):
		return &ending{err: ingest.NewFault(ingest.FaultNoHello,
			errors.New("read hello: the client closed the connection before its hello"))}
	default:
		s.sums.messages++
		return &ending{err, s.in.Partial(), 0}
	}
}

func (s *session) hello(hello *wire.Hello, message []byte) {
	e, from := s.event("hello", message), &entry{}
	s.lang = hello.Origin.Lang
	origin := hello.Origin
	origin.Normalize()
	before := maps.Collect(wire.OriginFields(&hello.Origin))
	e.add("version", hello.Version, "client", head(hello.Client))
	e.parts = []*entry{from}
	for name, value := range wire.OriginFields(&origin) {
		if value != "" {
			from.add(name, head(value))
		}
		if value != before[name] {
			s.note(from, noteNormalized, "origin %s %q becomes %q", name, head(before[name]), head(value))
		}
	}
	if least := len(wire.AppendHello(nil, hello)) - wire.HeaderLen; least < len(message) {
		s.note(&e.entry, noteAdvice, "it has %d bytes, where all that was understood takes %d: is a name "+
			"misspelt?", len(message), least)
	}
	f := &s.config.Features
	welcome := wire.Welcome{
		Version: wire.Version, Daemon: s.config.Version, Features: *f,
		MaxFrame: s.read.MaxFrame, MaxBatch: s.admit.MaxBatch, MaxKeys: s.admit.MaxKeys,
		MaxKeyBytes: s.admit.MaxNumberedBytes(), Interval: uint64(s.config.Interval),
	}
	if s.death != nil {
		s.ask(e, hello, &welcome)
	}
	s.printer.print(e, false)
	s.answer(wire.AppendWelcome(nil, &welcome), "welcome", "version", wire.Version,
		"max_frame", s.read.MaxFrame, "max_batch", s.admit.MaxBatch, "max_keys", s.admit.MaxKeys,
		"max_key_bytes", s.admit.MaxNumberedBytes(), "interval", s.config.Interval, "stats", f.Stats,
		"span_kinds", f.SpanKinds, "peer_tags", f.PeerTags)
}

// handle reports one message. isClosed reports whether the client has sent bye.
func (s *session) handle(message []byte) (isClosed bool, ended *ending) {
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
			e.parts = append(e.parts, &entry{facts: []any{"reason", head(reason), "spans", lost[reason]}})
		}
		s.after.ambiguous -= min(lost["ambiguous"], s.after.ambiguous)
	case wire.TypeFlush:
		var flush wire.Flush
		flush, err = wire.DecodeFlush(body)
		e.add("id", flush.ID)
		if err == nil {
			flush.OK = !s.isDoomed()
			defer s.answer(wire.AppendFlushAnswer(nil, &flush), "flush", "id", flush.ID, "ok", flush.OK)
			if flush.OK && s.death != nil { // a daemon reports settled spans before it answers
				defer s.answer(wire.AppendFeatures(nil, &wire.Announcement{
					Features: s.config.Features, Settled: uint64(s.sums.spans),
				}), "features", "settled", s.sums.spans)
			}
		}
	case wire.TypeBye:
		isClosed = true // the daemon parses nothing after this
		_, err = wire.DecodeBye(body)
	default:
		err = fmt.Errorf("handle message: unexpected %s", kind)
	}
	if err != nil {
		return false, malformed(message, err)
	}
	s.printer.print(e, false)
	return isClosed, ended
}
