package otlp

import (
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/intake"
	"github.com/spanstatsd/spanstatsd/internal/oteltraces"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// maxBatches bounds the origins of one body. Each takes a publisher.
const maxBatches = oteltraces.MaxBatches

// countingBytes is what counting a body of that length takes, and publishing it.
func countingBytes(body int) int {
	return oteltraces.CounterBytes(body) + oteltraces.MaxSpans(body)*admit.SpanBytes + inflaterBytes + jsonBytes*body
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
	result, why := ResultOther, error(nil)
	if c.signal == traces {
		result, why = s.count(c, r)
	}
	if s.forward == nil || result == ResultTooLarge || result == ResultBusy {
		return s.endsHere(result, why), result
	}
	if c.kept.isEmpty {
		return taken(), result
	}
	return s.forward.send(r, c), result
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
func (s *Server) count(c *call, r *http.Request) (result Result, why error) {
	defer func() {
		if p := recover(); p != nil {
			result, why = ResultBug, fmt.Errorf("count spans: %v", p)
			c.keepAll()
			s.log.Bug(p)
		}
	}()
	if isTrue(r.Header.Get(headerComputedStats)) {
		return ResultByTracer, nil
	}
	w := <-s.counting
	defer func() {
		w.counter = w.counter.Next()
		s.counting <- w
	}()
	message, result, why := s.readable(c, w)
	if why != nil {
		return result, why
	}
	room, why := s.keepRoom(message)
	if why != nil {
		return ResultBusy, why
	}
	if room != nil {
		defer room.Release()
	}
	s.counters.bytes.Add(uint64(len(message)))
	if err := w.counter.Count(message, s.policy); err != nil {
		s.log.Write(slog.LevelWarn, "spans of an SDK can't be read", "error", err)
		return ResultUnread, err //nolint:wrapcheck // it says what to do
	}
	if result, why = s.publish(c, w.counter); c.sum != 0 && room != nil {
		s.keep(c, w, message, room, result == ResultCountedBefore)
	}
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
	if c.protobuf = s.bodies.Take(len(message)); c.protobuf == nil {
		return nil, ResultBusy, intake.ErrNoRoom
	}
	// It is shorter than its JSON, so that it stays where there is room for it.
	if c.protobuf.Bytes, why = oteltraces.FromJSON(c.protobuf.Bytes, message); why != nil {
		return nil, ResultUnread, why
	}
	return c.protobuf.Bytes, ResultCounted, nil
}

// resultOf is what becomes of a body that could not be inflated.
func resultOf(err error) Result {
	switch {
	case errors.Is(err, intake.ErrTooLarge):
		return ResultTooLarge
	case errors.Is(err, intake.ErrNoRoom):
		return ResultBusy
	}
	return ResultUnread
}

// publish publishes what was counted, unless it was before.
func (s *Server) publish(c *call, counter *oteltraces.Counter) (result Result, why error) {
	sum := s.counted.Sum(c.message)
	before := s.counted.Once(sum, func(counted func()) {
		result = ResultCounted
		commit := func() { counted(); c.sum = sum }
		reason, ok := s.publishers.Publish(commit, normalized(counter), time.Now())
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
	switch reason {
	case admit.DropNotWanted:
		return ResultNotWanted, nil
	case admit.DropBatchTooLarge:
		return ResultTooMany, errors.New("the request has more spans than the rings have slots: have the SDK export less at a time, or raise --ring-slots")
	}
	return ResultNoRoom, errors.New(reason.String())
}

// normalized are the batches of a counted body, each with its origin as it may be kept.
func normalized(c *oteltraces.Counter) iter.Seq2[span.Origin, []byte] {
	return func(yield func(span.Origin, []byte) bool) {
		for origin, spans := range c.Batches {
			if origin.Normalize(); !yield(origin, spans) {
				return
			}
		}
	}
}
