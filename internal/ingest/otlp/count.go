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

// headerComputedStats marks a request whose spans are already counted. Senders that compute their own statistics set
// it, and forwarded requests have it so that a Datadog agent does not count the spans again.
const headerComputedStats = "Datadog-Client-Computed-Stats"

// Count counts the spans of the call. It returns nil if the call is to be forwarded, and the response otherwise. A call
// that can't be counted is forwarded without the counted marker, unless a retry can succeed or its body is too large.
func (c *call) Count(readErr error) receiver.Response {
	if c.signal != signalTraces && !c.server.config.Forward.IsSet() {
		return c.discard(readErr)
	}
	if refusal := c.unframe(readErr); refusal != nil {
		return c.refuse(refusal)
	}
	s, result, refusal := c.server, ResultOther, (*reply)(nil)
	switch c.signal {
	case signalTraces:
		if panicked := s.Contain(func() { result, refusal = s.count(c) }); panicked {
			c.sampled = sampled{}
			refusal = refuse(ResultBug, otlpanswer.Internal, "internal error; see the log of spanstatsd")
			refusal.http = http.StatusInternalServerError
		}
		if refusal != nil {
			result = refusal.result
		}
	case signalMetrics:
		s.Contain(func() { s.readSDKMetrics(c) })
	}
	c.Result = int(result)
	endsHere := !s.config.Forward.IsSet()
	switch result {
	case ResultTooLarge, ResultBusy, ResultNoRoom:
		endsHere = true
	case ResultUnread:
		s.Log.Write(slog.LevelWarn, "spans of an SDK can't be read",
			append(c.senderAttributes(), "error", refusal.Message)...)
	}
	switch {
	case endsHere && refusal != nil:
		return c.refuse(refusal)
	case endsHere, c.sampled.isEmpty:
		return c.respond(accepted())
	case !c.encode():
		return c.refuseUnforwardable()
	}
	return nil
}

// discard returns the response to a request with metrics or logs, which are of no use without an upstream. It is a
// success, so that an SDK with one endpoint for all signals logs no error at each export. A partial success would be
// more precise, but some SDKs log it each time. A body that does not fit in memory is discarded like others.
func (c *call) discard(readErr error) receiver.Response {
	s := c.server
	isTooLong := errors.Is(readErr, bodies.ErrTooLarge) || errors.Is(readErr, bodies.ErrNoRoom)
	if !isTooLong {
		if refusal := c.unframe(readErr); refusal != nil {
			return c.refuse(refusal)
		}
		if c.signal == signalMetrics {
			s.Contain(func() { s.readSDKMetrics(c) })
		}
	}
	if d := &s.discarded[c.signal]; d.Add(1) == 1 {
		s.config.Log.Info(signals[c.signal].name+" are accepted and discarded, because there is no --otlp-forward; "+
			"disable that exporter in the SDK, or set --otlp-forward",
			c.senderAttributes()...)
	}
	c.Result = int(ResultOther)
	return c.respond(accepted())
}

// count counts the spans of a call and prepares the forwarded message. It returns a refusal if the spans can't be
// counted; the result is valid only without a refusal.
func (s *Server) count(c *call) (result Result, refusal *reply) {
	isCounted := receiver.IsTrue(c.Header().Get(headerComputedStats))
	if isCounted && c.isForwardable() && s.config.Semantics == SemanticsOTel {
		return ResultByTracer, nil
	}
	defer c.sampled.releaseUnused()
	w := <-s.workers
	defer func() { s.workers <- w }()
	defer w.release()
	message, refusal := s.toProtobuf(c, w)
	if refusal != nil {
		return 0, refusal
	}
	s.ParsedBytes.Add(uint64(len(message)))
	result, err := w.reader.read(message, isCounted)
	if err != nil {
		return 0, refuse(result, otlpanswer.InvalidArgument, err.Error())
	}
	if result != ResultCounted {
		return result, nil
	}
	selection, refusal := s.selectSpans(c, w)
	if refusal != nil {
		return 0, refusal
	}
	isDuplicate, reason, ok := c.Publish(message, w.reader.Batches, w.forwardedSpans)
	if !ok {
		return notAdmitted(reason)
	}
	if isDuplicate {
		result = ResultCountedBefore
	}
	s.writeSelected(c, w, selection, isDuplicate)
	return result, nil
}

// toProtobuf returns the message of a call in uncompressed protobuf. It stores a converted message in c.protobuf.
func (s *Server) toProtobuf(c *call, w *worker) (message []byte, refusal *reply) {
	message = c.message
	if c.compression != bodies.Plain {
		plain, err := w.decompressor.Decompress(message, c.compression, &s.Bodies)
		if c.Own(plain); err != nil {
			return nil, s.refuseUnreadable(err, ResultUnread)
		}
		message = plain.Bytes
		c.protobuf = message
	}
	if c.encoding != inJSON {
		return message, nil
	}
	c.protobuf = nil
	if !utf8.Valid(message) { // the conversion replaces each invalid byte by three, which exceeds ProtobufBytes
		return nil, s.refuseUnreadable(errors.New("read spans in JSON: it is not UTF-8"), ResultUnread)
	}
	converted := c.Own(s.Bodies.Take(otlpjson.ProtobufBytes(len(message))))
	if converted == nil {
		return nil, s.refuseUnreadable(bodies.ErrNoRoom, ResultBusy)
	}
	var err error
	if converted.Bytes, err = otlpjson.FromJSON(converted.Bytes, message); err != nil {
		return nil, s.refuseUnreadable(err, ResultUnread)
	}
	c.protobuf = converted.Bytes
	return c.protobuf, nil
}

// notAdmitted returns the result or the refusal for spans that admission has dropped for a reason.
func notAdmitted(reason admit.DropReason) (Result, *reply) {
	switch {
	case reason.IsPassing():
		return 0, later(ResultNoRoom, "the daemon can't count these spans at the moment; retry later: "+
			""+reason.String())
	case reason == admit.DropNotWanted:
		return ResultNotWanted, nil
	case reason == admit.DropBatchTooLarge:
		return 0, refuse(ResultTooMany, otlpanswer.ResourceExhausted, "the request has more spans than "+
			"--ring-slots; configure smaller batches in the SDK, or raise it")
	}
	panic(fmt.Sprint("BUG: a batch that was made here is ", reason))
}

// readSDKMetrics adds the span counts that SDKs report in a metrics request to the server's sums. It ignores
// unparsable requests, and requests in JSON.
func (s *Server) readSDKMetrics(c *call) {
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
	s.sdkSums.Add(message)
}
