package otlp

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"unicode/utf8"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/decode/otlpjson"
	"github.com/spanstatsd/spanstatsd/internal/door"
	"github.com/spanstatsd/spanstatsd/internal/door/bodies"
	"github.com/spanstatsd/spanstatsd/internal/otlpanswer"
)

// headerComputedStats is the mark of what somebody has counted already, for a Datadog agent
// and from what computes its statistics itself.
const headerComputedStats = "Datadog-Client-Computed-Stats"

// Read has a request counted, and refuses what can't be held. What can't be counted goes on without
// the mark, but for what is beyond the bounds of a body.
func (c *call) Read(broken error) *door.Reply {
	if no := c.unframe(broken); no != nil {
		return c.refuse(no)
	}
	result, no := ResultOther, (*reply)(nil)
	switch c.signal {
	case signalTraces:
		if result, no = c.server.count(c); no != nil {
			result = no.result
		}
	case signalMetrics:
		c.server.hear(c)
	}
	c.Result = int(result)
	endsHere := !c.server.config.Forward.IsSet()
	switch result {
	case ResultTooLarge, ResultBusy, ResultNoRoom:
		endsHere = true
	case ResultUnread:
		c.server.Log.Write(slog.LevelWarn, "spans of an SDK can't be read",
			append(c.who(), "error", no.Said)...)
	}
	switch {
	case endsHere && no != nil:
		return c.refuse(no)
	case endsHere, c.kept.isEmpty:
		return c.say(taken())
	case !c.wrap():
		return c.unfit()
	}
	return nil
}

// count counts a call's spans, or says why none is counted: by a result that is no fault, or by a
// refusal.
func (s *Server) count(c *call) (result Result, no *reply) {
	defer func() {
		if p := recover(); p != nil {
			no = refuse(ResultBug, otlpanswer.Internal, "a defect of spanstatsd; its log says more")
			no.http = http.StatusInternalServerError
			c.kept = kept{}
			s.Log.Bug(p)
		}
	}()
	isCounted := door.IsTrue(c.Fields.Get(headerComputedStats))
	if isCounted && c.canGoOn() && s.config.Reading == ReadingOTel {
		return ResultByTracer, nil
	}
	defer c.kept.giveUp()
	w := s.turns.take(c.sender())
	defer s.turns.give(w)
	defer w.release()
	message, no := s.readable(c, w)
	if no != nil {
		return 0, no
	}
	s.Walked.Add(uint64(len(message)))
	result, why := w.reader.read(message, isCounted)
	if why != nil {
		return 0, refuse(result, otlpanswer.InvalidArgument, why.Error())
	}
	if result != ResultCounted {
		return result, nil
	}
	left, no := s.measure(c, w)
	if no != nil {
		return 0, no
	}
	before, drop, ok := c.Publish(message, w.reader.Batches, w.goingOn)
	if !ok {
		return notAdmitted(drop)
	}
	if before {
		result = ResultCountedBefore
	}
	s.keep(c, w, left, before)
	return result, nil
}

// readable is a call's message as a reader reads it.
func (s *Server) readable(c *call, w *worker) (message []byte, no *reply) {
	message = c.message
	if c.packing != bodies.Plain {
		plain, why := w.inflater.Inflate(message, c.packing, &s.Bodies)
		if c.Keep(plain); why != nil {
			return nil, s.notRead(why, ResultUnread)
		}
		message = plain.Bytes
		c.protobuf = message
	}
	if c.encoding != inJSON {
		return message, nil
	}
	c.protobuf = nil
	if !utf8.Valid(message) { // each wrong byte would become three
		return nil, s.notRead(errors.New("read spans in JSON: it is not UTF-8"), ResultUnread)
	}
	written := c.Keep(s.Bodies.Take(otlpjson.ProtobufBytes(len(message))))
	if written == nil {
		return nil, s.notRead(bodies.ErrNoRoom, ResultBusy)
	}
	var why error
	if written.Bytes, why = otlpjson.FromJSON(written.Bytes, message); why != nil {
		return nil, s.notRead(why, ResultUnread)
	}
	c.protobuf = written.Bytes
	return c.protobuf, nil
}

// notAdmitted is what becomes of spans that were read and could not be published.
func notAdmitted(reason admit.Drop) (Result, *reply) {
	switch {
	case reason.IsPassing():
		return 0, later(ResultNoRoom, "there is no room to count these spans just now: "+reason.String())
	case reason == admit.DropNotWanted:
		return ResultNotWanted, nil
	case reason == admit.DropBatchTooLarge:
		return 0, refuse(ResultTooMany, otlpanswer.ResourceExhausted, "the request has more spans than the "+
			"rings have slots: have the SDK export less at a time, or raise --ring-slots")
	}
	panic(fmt.Sprint("BUG: a batch that was made here is ", reason))
}
