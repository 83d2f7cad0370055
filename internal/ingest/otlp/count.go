package otlp

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"unicode/utf8"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/decode/otlpjson"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver/bodies"
	"github.com/spanstatsd/spanstatsd/internal/wire/otlpanswer"
)

// headerComputedStats marks a request as counted, for a Datadog agent and from senders that compute
// their statistics themselves.
const headerComputedStats = "Datadog-Client-Computed-Stats"

// Count counts the spans of a call. A call that can't be counted is forwarded without the mark, unless it
// exceeds the limits of a body.
func (c *call) Count(readErr error) receiver.Response {
	if no := c.unframe(readErr); no != nil {
		return c.refuse(no)
	}
	s, result, no := c.server, ResultOther, (*reply)(nil)
	switch c.signal {
	case signalTraces:
		if s.Contain(func() { result, no = s.count(c) }) {
			c.sampled = sampled{}
			no = refuse(ResultBug, otlpanswer.Internal, "a defect of spanstatsd; its log says more")
			no.http = http.StatusInternalServerError
		}
		if no != nil {
			result = no.result
		}
	case signalMetrics:
		s.Contain(func() { s.hear(c) })
	}
	c.Result = int(result)
	endsHere := !s.config.Forward.IsSet()
	switch result {
	case ResultTooLarge, ResultBusy, ResultNoRoom:
		endsHere = true
	case ResultUnread:
		s.Log.Write(slog.LevelWarn, "spans of an SDK can't be read", append(c.who(), "error", no.Message)...)
	}
	switch {
	case endsHere && no != nil:
		return c.refuse(no)
	case endsHere, c.sampled.isEmpty:
		return c.respond(accepted())
	case !c.encode():
		return c.unfit()
	}
	return nil
}

// count counts a call's spans, or returns why none is counted: a result that is no fault, or a
// refusal.
func (s *Server) count(c *call) (result Result, no *reply) {
	isCounted := receiver.IsTrue(c.Header().Get(headerComputedStats))
	if isCounted && c.isForwardable() && s.config.Reading == ReadingOTel {
		return ResultByTracer, nil
	}
	defer c.sampled.releaseUnused()
	w := <-s.workers
	defer func() { s.workers <- w }()
	defer w.release()
	message, no := s.readable(c, w)
	if no != nil {
		return 0, no
	}
	s.ParsedBytes.Add(uint64(len(message)))
	result, err := w.reader.read(message, isCounted)
	if err != nil {
		return 0, refuse(result, otlpanswer.InvalidArgument, err.Error())
	}
	if result != ResultCounted {
		return result, nil
	}
	part, no := s.selectSpans(c, w)
	if no != nil {
		return 0, no
	}
	isDuplicate, reason, ok := c.Publish(message, w.reader.Batches, w.forwardedSpans)
	if !ok {
		return notAdmitted(reason)
	}
	if isDuplicate {
		result = ResultCountedBefore
	}
	s.writeSelected(c, w, part, isDuplicate)
	return result, nil
}

// readable returns a call's message as a reader reads it: decompressed and in protobuf.
func (s *Server) readable(c *call, w *worker) (message []byte, no *reply) {
	message = c.message
	if c.compression != bodies.Plain {
		plain, err := w.decompressor.Decompress(message, c.compression, &s.Bodies)
		if c.Own(plain); err != nil {
			return nil, s.notRead(err, ResultUnread)
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
	written := c.Own(s.Bodies.Take(otlpjson.ProtobufBytes(len(message))))
	if written == nil {
		return nil, s.notRead(bodies.ErrNoRoom, ResultBusy)
	}
	var err error
	if written.Bytes, err = otlpjson.FromJSON(written.Bytes, message); err != nil {
		return nil, s.notRead(err, ResultUnread)
	}
	c.protobuf = written.Bytes
	return c.protobuf, nil
}

// notAdmitted returns the result of spans that could not be published.
func notAdmitted(reason admit.DropReason) (Result, *reply) {
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

// hear reads in forwarded metrics how many spans SDKs report of themselves. Metrics that can't be read, or
// are in JSON, are ignored.
func (s *Server) hear(c *call) {
	if c.encoding == inJSON {
		return
	}
	message := c.message
	if c.compression != bodies.Plain {
		w := <-s.workers
		defer func() { s.workers <- w }()
		plain, err := w.decompressor.Decompress(message, c.compression, &s.Bodies)
		defer plain.Release()
		if err != nil {
			return
		}
		message = plain.Bytes
	}
	s.said.Hear(message)
}
