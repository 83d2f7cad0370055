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
	"github.com/spanstatsd/spanstatsd/internal/rules"
	agent "github.com/spanstatsd/spanstatsd/internal/rules/datadog"
	"github.com/spanstatsd/spanstatsd/internal/rules/otel"
	"github.com/spanstatsd/spanstatsd/internal/rules/translate"
	"github.com/spanstatsd/spanstatsd/internal/sampling"
	"github.com/spanstatsd/spanstatsd/internal/spantable"
)

// maxBatches bounds the origins of one body. Each takes a publisher.
const maxBatches = rules.MaxBatches

// countingBytes is what counting a body of that length takes, and publishing it.
func (r Reading) countingBytes(body int) int {
	counter := otel.CounterBytes(body)
	if r == ReadingDatadog {
		counter = translate.Bytes(body, agent.IngestedBytes) + agent.AnyCounter
	}
	counter += sampling.Bytes(body)
	return counter + spantable.MaxSpans(body)*admit.SpanBytes + bodies.InflaterBytes + jsonBytes*body
}

// jsonBytes is what reading JSON takes for each of its bytes: its buffer, and its longest text.
const jsonBytes = 3

// headerComputedStats is the mark of what somebody has counted already, for a Datadog agent
// and from what computes its statistics itself.
const headerComputedStats = "Datadog-Client-Computed-Stats"

// Read has a request counted, and refuses what can't be held. What can't be counted goes on without
// the mark, but for what is beyond the bounds of a body.
func (c *call) Read(broken error) *door.Reply {
	s := c.server
	var no *refusal
	if broken != nil {
		no = s.notRead(broken)
	} else {
		no = c.unframe()
	}
	if no != nil {
		c.Result = int(no.result)
		return c.say(no.reply)
	}
	result, why := ResultOther, error(nil)
	if c.signal == signalTraces {
		result, why = s.count(c)
	}
	c.Result = int(result)
	switch {
	case !s.config.Forward.IsSet() || result == ResultTooLarge ||
		result == ResultBusy || result == ResultNoRoom:
		return c.say(s.endsHere(result, why))
	case c.kept.isEmpty:
		return c.say(taken())
	case !c.wrap():
		return c.unfit()
	}
	return nil
}

// endsHere is what is said of a request that goes nowhere else.
func (s *Server) endsHere(result Result, why error) *reply {
	switch result {
	case ResultUnread:
		return refuse(codeInvalidArgument, why.Error())
	case ResultTooLarge, ResultBusy:
		return s.notRead(why).reply
	case ResultNoRoom:
		return later("there is no room to count these spans just now: " + why.Error())
	case ResultTooMany:
		return refuse(codeResourceExhausted, why.Error())
	case ResultBug:
		no := refuse(codeInternal, "a defect of spanstatsd; its log says more")
		no.http = http.StatusInternalServerError
		return no
	}
	return taken()
}

// count counts a call's spans. With an error none is counted, and the result says why.
func (s *Server) count(c *call) (result Result, why error) {
	defer func() {
		if p := recover(); p != nil {
			result, why = ResultBug, fmt.Errorf("count spans: %v", p)
			c.kept = kept{}
			s.Log.Bug(p)
		}
	}()
	isCounted := door.IsTrue(c.Fields.Get(headerComputedStats))
	if isCounted && s.config.Reading == ReadingOTel {
		return ResultByTracer, nil
	}
	defer c.kept.giveUp()
	w := <-s.counting
	defer func() { s.counting <- w }()
	defer w.release()
	message, result, why := s.readable(c, w)
	if why != nil {
		return result, why
	}
	s.Walked.Add(uint64(len(message)))
	if result, why = w.reader.read(message, isCounted); result != ResultCounted {
		if why != nil {
			s.Log.Write(slog.LevelWarn, "spans of an SDK can't be read", "error", why)
		}
		return result, why
	}
	left, why := s.measure(c, w)
	if why != nil {
		return resultOf(why), why
	}
	before, drop, ok := c.Publish(c.message, w.reader.batches, w.goingOn)
	if !ok {
		return notAdmitted(drop)
	}
	if before {
		result = ResultCountedBefore
	}
	s.keep(c, w, left, before)
	return result, nil
}

// goingOn visits the spans that go on and can be found by their ids: they may become exemplars.
func (w *worker) goingOn(yield func(door.Going) bool) {
	r := w.reader.request()
	for s := range w.reader.counted {
		place, id := &r.Places[s.Span], r.Spans[s.Span].ID
		if !w.sample.GoesOn(s.Span) || id == 0 || place.TraceHigh|place.TraceLow == 0 {
			continue
		}
		going := door.Going{
			Batch: s.Batch, At: s.At, TraceHigh: place.TraceHigh, TraceLow: place.TraceLow, Span: id,
		}
		if !yield(going) {
			return
		}
	}
}

// readable is a call's message as a Counter reads it.
func (s *Server) readable(c *call, w *worker) (message []byte, result Result, why error) {
	message = c.message
	if c.isPacked {
		plain, why := w.inflater.Inflate(message, &s.Bodies)
		if c.Keep(plain); why != nil {
			return nil, resultOf(why), why
		}
		message = plain.Bytes
	}
	if c.encoding != inJSON {
		return message, ResultCounted, nil
	}
	if !utf8.Valid(message) { // each wrong byte would become three
		return nil, ResultUnread, errors.New("read spans in JSON: it is not UTF-8")
	}
	written := c.Keep(s.Bodies.Take(otlpjson.ProtobufBytes(len(message))))
	if written == nil {
		return nil, ResultBusy, bodies.ErrNoRoom
	}
	if written.Bytes, why = otlpjson.FromJSON(written.Bytes, message); why != nil {
		return nil, ResultUnread, why
	}
	c.protobuf = written.Bytes
	return c.protobuf, ResultCounted, nil
}

// resultOf is what becomes of a body that could not be inflated.
func resultOf(err error) Result {
	switch {
	case errors.Is(err, bodies.ErrTooLarge):
		return ResultTooLarge
	case errors.Is(err, bodies.ErrNoRoom):
		return ResultBusy
	}
	return ResultUnread
}

// notAdmitted is what becomes of spans that were read and could not be published.
func notAdmitted(reason admit.Drop) (Result, error) {
	switch {
	case reason.IsPassing():
		return ResultNoRoom, errors.New(reason.String())
	case reason == admit.DropNotWanted:
		return ResultNotWanted, nil
	case reason == admit.DropBatchTooLarge:
		return ResultTooMany, errors.New("the request has more spans than the rings have slots: have the " +
			"SDK export less at a time, or raise --ring-slots")
	}
	panic("BUG: a batch that was made here is " + reason.String())
}
