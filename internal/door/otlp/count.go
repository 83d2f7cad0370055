package otlp

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/decode/otlpjson"
	"github.com/spanstatsd/spanstatsd/internal/door/bodies"
	"github.com/spanstatsd/spanstatsd/internal/oteltraces"
	"github.com/spanstatsd/spanstatsd/internal/traces"
)

// maxBatches bounds the origins of one body. Each takes a publisher.
const maxBatches = oteltraces.MaxBatches

// countingBytes is what counting a body of that length takes, and publishing it.
func (r Reading) countingBytes(body int) int {
	counter := oteltraces.CounterBytes(body)
	if r == ReadingDatadog {
		counter = oteltraces.TranslatorBytes(body) + traces.IngestBytes(oteltraces.TranslatedBytes(body), oteltraces.MaxSpans(body))
	}
	return counter + oteltraces.MaxSpans(body)*admit.SpanBytes + inflaterBytes + jsonBytes*body
}

// jsonBytes is what reading JSON takes for each of its bytes: its buffer, and its longest text.
const jsonBytes = 3

// inflaterBytes is what a worker keeps to undo gzip, and to do it.
const inflaterBytes = 2 << 20

// headerComputedStats is the mark of what somebody has counted already, for a Datadog agent
// and from what computes its statistics itself.
const headerComputedStats = "Datadog-Client-Computed-Stats"

// take has a request counted and handed on, and says what its sender is told. What can't be
// counted goes on without the mark, but for what is beyond the bounds of a body.
func (s *Server) take(c *call, r *http.Request) (*reply, Result) {
	answer, result := s.weigh(c, r.Header.Get(headerComputedStats))
	if answer == nil {
		answer = s.forward.send(r, c)
	}
	return answer, result
}

// weigh has a request counted, and says what its sender is told where it goes nowhere else.
func (s *Server) weigh(c *call, computed string) (*reply, Result) {
	result, why := ResultOther, error(nil)
	if c.signal == signalTraces {
		result, why = s.count(c, computed)
	}
	switch {
	case s.forward == nil || result == ResultTooLarge || result == ResultBusy || result == ResultNoRoom:
		return s.endsHere(result, why), result
	case c.kept.isEmpty:
		return taken(), result
	}
	return nil, result
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
func (s *Server) count(c *call, computed string) (result Result, why error) {
	defer func() {
		if p := recover(); p != nil {
			result, why = ResultBug, fmt.Errorf("count spans: %v", p)
			c.keepAll()
			s.log.Bug(p)
		}
	}()
	isCounted := isTrue(computed)
	if isCounted && s.config.Reading == ReadingOTel {
		return ResultByTracer, nil
	}
	w := <-s.counting
	defer func() { s.counting <- w }()
	defer w.reader.release()
	message, result, why := s.readable(c, w)
	if why != nil {
		return result, why
	}
	s.counters.bytes.Add(uint64(len(message)))
	if result, why = w.reader.read(message, isCounted); result != ResultCounted {
		if why != nil {
			s.log.Write(slog.LevelWarn, "spans of an SDK can't be read", "error", why)
		}
		return result, why
	}
	left, why := s.measure(c, w)
	if why != nil {
		return resultOf(why), why
	}
	if result, why = s.publish(c, w.reader); c.sum == 0 {
		c.keepAll()
		return result, why
	}
	s.keep(c, w, left, result == ResultCountedBefore)
	return result, why
}

// isTrue reads a flag in a header as the agent does: whatever does not say false is true.
func isTrue(value string) bool {
	said, err := strconv.ParseBool(value)
	return value != "" && (said || err != nil)
}

// readable is a call's message as a Counter reads it.
func (s *Server) readable(c *call, w *worker) (message []byte, result Result, why error) {
	message = c.message
	if c.isPacked {
		if c.plain, why = w.inflater.inflate(message, &s.bodies); why != nil {
			return nil, resultOf(why), why
		}
		message = c.plain.Bytes
	}
	if c.encoding != inJSON {
		return message, ResultCounted, nil
	}
	if !utf8.Valid(message) { // each wrong byte would become three
		return nil, ResultUnread, errors.New("read spans in JSON: it is not UTF-8")
	}
	if c.protobuf = s.bodies.Take(otlpjson.ProtobufBytes(len(message))); c.protobuf == nil {
		return nil, ResultBusy, bodies.ErrNoRoom
	}
	if c.protobuf.Bytes, why = otlpjson.FromJSON(c.protobuf.Bytes, message); why != nil {
		return nil, ResultUnread, why
	}
	return c.protobuf.Bytes, ResultCounted, nil
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

// publish publishes what was counted, unless it was before.
func (s *Server) publish(c *call, from reader) (result Result, why error) {
	sum := s.counted.Sum(c.message)
	before := s.counted.Once(sum, func(counted func()) {
		result = ResultCounted
		commit := func() {
			s.propose(c, from)
			counted()
			c.sum = sum
		}
		reason, ok := s.publishers.Publish(commit, admit.Walked(from.batches), time.Now())
		if !ok {
			result, why = notAdmitted(reason)
		}
	})
	if before {
		c.sum = sum
		return ResultCountedBefore, nil
	}
	return result, why
}

// notAdmitted is what becomes of spans that were read and could not be published.
func notAdmitted(reason admit.Drop) (Result, error) {
	switch {
	case reason.IsPassing():
		return ResultNoRoom, errors.New(reason.String())
	case reason == admit.DropNotWanted:
		return ResultNotWanted, nil
	case reason == admit.DropBatchTooLarge:
		return ResultTooMany, errors.New("the request has more spans than the rings have slots: have the SDK export less at a time, or raise --ring-slots")
	}
	panic("BUG: a batch that was made here is " + reason.String())
}
