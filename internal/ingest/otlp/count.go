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

// Handle counts the spans of the request. It returns nil if the request is to be forwarded to the upstream, and
// otherwise the response to the sender. readErr is the error of reading the body, or nil. Spans that the daemon
// can't read are not counted, but they are forwarded.
func (c *call) Handle(readErr error) receiver.Response {
	hasUpstream := c.server.config.Forward.IsSet()
	isOnlyForwarded := c.signal != signalTraces // metrics or logs
	if isOnlyForwarded && !hasUpstream {
		return c.discard(readErr)
	}
	if refusal := c.readMessage(readErr); refusal != nil {
		return c.respondError(refusal)
	}
	result, refusal := c.processMessage()
	c.Result = int(result)
	if result == ResultUnparsable {
		c.logUnparsable(refusal)
	}
	mustForward := hasUpstream && !result.preventsForwarding()
	if mustForward {
		return c.prepareForwarding() // instead of a refusal, the sender gets the upstream's response
	}
	if refusal != nil {
		return c.respondError(refusal)
	}
	return c.respond(successReply())
}

func (c *call) logUnparsable(refusal *reply) {
	c.server.Log.Write(slog.LevelWarn, "spans of an SDK can't be read",
		append(c.senderAttributes(), "error", refusal.Message)...)
}

// prepareForwarding sets c.forwarded to the message to forward, and returns nil. It returns a response instead if all
// spans are sampled out, or if the upstream can't read the message.
func (c *call) prepareForwarding() receiver.Response {
	if c.sampled.isEmpty {
		return c.respond(successReply())
	}
	canForward := c.setForwarded()
	if !canForward {
		return c.refuseUnforwardable()
	}
	return nil
}

// preventsForwarding reports whether a request with this result is refused even if there is an upstream: because it
// is too large, or because the daemon has no memory for it now, but may have some when the sender retries.
func (r Result) preventsForwarding() bool {
	switch r {
	case ResultTooLarge, ResultBusy, ResultNoRoom:
		return true
	}
	return false
}

// processMessage counts the spans of a trace request, and returns an error reply if that fails. In a metrics request,
// it only reads the numbers of spans that SDKs report about themselves.
func (c *call) processMessage() (result Result, refusal *reply) {
	if c.signal == signalTraces {
		return c.countSpans()
	}
	if c.signal == signalMetrics {
		c.readSDKMetrics()
	}
	return ResultOther, nil
}

// countSpans counts the spans of a trace request. It returns an error reply if that fails or panics.
func (c *call) countSpans() (result Result, refusal *reply) {
	panicked := c.server.CatchPanic(func() { result, refusal = c.server.count(c) })
	if panicked {
		c.sampled = sampled{} // it may be incomplete
		refusal = newRefusal(ResultBug, otlpanswer.Internal, "internal error; see the log of spanstatsd")
		refusal.httpStatus = http.StatusInternalServerError
	}
	if refusal != nil {
		return refusal.result, refusal
	}
	return result, nil
}

// discard responds to a metrics or logs request that is not forwarded, because there is no upstream. It returns an
// error only if the body is incomplete or has an invalid gRPC prefix. Many SDKs send all signals to one endpoint, and
// would log other errors at each export.
func (c *call) discard(readErr error) receiver.Response {
	exceedsLimit := errors.Is(readErr, bodies.ErrTooLarge) || errors.Is(readErr, bodies.ErrNoRoom)
	if exceedsLimit {
		return c.acceptDiscarded()
	}
	if refusal := c.readMessage(readErr); refusal != nil {
		return c.respondError(refusal)
	}
	if c.signal == signalMetrics {
		c.readSDKMetrics()
	}
	return c.acceptDiscarded()
}

// acceptDiscarded counts a discarded request, and returns a success.
func (c *call) acceptDiscarded() receiver.Response {
	c.noteDiscarded()
	c.Result = int(ResultOther)
	return c.respond(successReply())
}

// noteDiscarded counts a discarded request, and logs the first one of each signal.
func (c *call) noteDiscarded() {
	requests := c.server.discarded[c.signal].Add(1)
	if requests == 1 {
		c.server.config.Log.Info(signals[c.signal].name+" are accepted and discarded, because there is no --otlp-forward; "+
			"disable that exporter in the SDK, or set --otlp-forward",
			c.senderAttributes()...)
	}
}

// count counts the spans of a trace request. It waits for an idle workspace, which contains the memory for decoding.
// It returns an error reply instead of a result if the spans can't be counted.
func (s *Server) count(c *call) (result Result, refusal *reply) {
	isCountedBySender := receiver.IsTrue(c.Header().Get(headerComputedStats))
	attributesOverrideHeader := s.config.Semantics == SemanticsDatadog
	mayHaveUncounted := !isCountedBySender || attributesOverrideHeader
	mustConvert := !c.canForwardReceived() // to an encoding that the upstream can read
	if !mayHaveUncounted && !mustConvert {
		return ResultComputedByClient, nil
	}
	ws := <-s.workspaces
	defer func() { s.workspaces <- ws }()
	defer ws.release()
	return s.countMessage(c, ws, isCountedBySender)
}

// countMessage decodes the message of a trace request and counts its spans. isCountedBySender is true if the header of
// the request says that the sender has counted them. countMessage returns an error reply instead of a result if the
// spans can't be counted.
func (s *Server) countMessage(c *call, ws *workspace, isCountedBySender bool) (result Result, refusal *reply) {
	message, refusal := s.toProtobuf(c, ws)
	if refusal != nil {
		return 0, refusal
	}
	s.ParsedBytes.Add(uint64(len(message)))
	result, err := ws.reader.read(message, isCountedBySender)
	if err != nil {
		return 0, newRefusal(result, otlpanswer.InvalidArgument, err.Error()) // counts the request under result
	}
	if result != ResultCounted {
		return result, nil
	}
	return s.publishCounted(c, ws, message)
}

// publishCounted publishes the counted spans of a request: all of them, or none if an equal message was published
// before. Then it replaces the received message by the message to forward, which can have fewer spans. It returns an
// error reply instead of a result if the sender should retry, or should send smaller requests.
func (s *Server) publishCounted(c *call, ws *workspace, message []byte) (result Result, refusal *reply) {
	defer c.sampled.releaseReserved()          // if no message is written into the memory that selectSpans reserves
	selection, refusal := s.selectSpans(c, ws) // before publishing: after an error, the sender sends the spans again
	if refusal != nil {
		return 0, refusal
	}
	outcome, dropReason := c.Publish(message, ws.reader.Batches, ws.forwardedSpans)
	if outcome == receiver.NotPublished {
		return respondToDrop(dropReason)
	}
	savedBytes := s.replaceReceived(c, ws, selection) // also for a retry, which is forwarded again
	if outcome == receiver.PublishedBefore {
		return ResultDuplicate, nil
	}
	s.countRefusedValues(c, ws)
	isSampling := s.config.Keep != nil
	if isSampling {
		s.sampling.add(selection.Sampled, selection.SampledOut, savedBytes)
	}
	return ResultCounted, nil
}

// toProtobuf returns the message of a request in uncompressed protobuf. If it differs from the received message,
// toProtobuf also stores it in c.protobuf. It returns an error reply if the message can't be decompressed, or can't
// be converted from JSON.
func (s *Server) toProtobuf(c *call, ws *workspace) (message []byte, refusal *reply) {
	message, refusal = s.decompress(c, ws)
	if refusal != nil {
		return nil, refusal
	}
	isJSON := c.encoding == encodingJSON
	if isJSON {
		message, refusal = s.convertJSON(c, message)
		if refusal != nil {
			return nil, refusal
		}
	}
	if isJSON || c.compression != bodies.Plain {
		c.protobuf = message
	}
	return message, nil
}

// decompress returns the received message without compression. It returns an error reply if the message can't be
// decompressed, or if there is not enough free memory.
func (s *Server) decompress(c *call, ws *workspace) (message []byte, refusal *reply) {
	if c.compression == bodies.Plain {
		return c.message, nil
	}
	plain, err := ws.decompressor.Decompress(c.message, c.compression, &s.Bodies)
	c.Own(plain) // the request releases it, also after an error
	if err != nil {
		return nil, s.refuseUnreadable(err, ResultUnparsable)
	}
	return plain.Bytes, nil
}

// convertJSON converts a request from JSON to protobuf. It returns an error reply if the JSON is invalid, or if
// there is not enough free memory for the result.
func (s *Server) convertJSON(c *call, json []byte) (protobuf []byte, refusal *reply) {
	if !utf8.Valid(json) { // each invalid byte would become three bytes, more than the buffer has room for
		return nil, s.refuseUnreadable(errors.New("read spans in JSON: it is not UTF-8"), ResultUnparsable)
	}
	converted := s.Bodies.Take(otlpjson.ProtobufBytes(len(json)))
	hasMemory := converted != nil
	if !hasMemory {
		return nil, s.refuseUnreadable(bodies.ErrNoRoom, ResultBusy)
	}
	c.Own(converted)
	var err error
	converted.Bytes, err = otlpjson.FromJSON(converted.Bytes, json)
	if err != nil {
		return nil, s.refuseUnreadable(err, ResultUnparsable)
	}
	return converted.Bytes, nil
}

// respondToDrop returns the result for a request whose spans were dropped for the given reason. It returns an error
// reply instead if the sender should retry the request later, or should send smaller requests.
func respondToDrop(reason admit.DropReason) (result Result, refusal *reply) {
	isTemporary := reason.IsRetryable()
	switch {
	case isTemporary:
		return 0, retryableRefusal(ResultNoRoom, "the daemon can't count these spans at the moment; retry later: "+
			reason.String())
	case reason == admit.DropNotWanted:
		return ResultNotWanted, nil
	case reason == admit.DropBatchTooLarge:
		return 0, newRefusal(ResultTooMany, otlpanswer.ResourceExhausted, "the spans of the request, and "+
			"their values for --measure, exceed --ring-slots; configure smaller batches in the SDK, or raise it")
	}
	panic(fmt.Sprint("BUG: unexpected reason for dropping spans: ", reason))
}

// readSDKMetrics reads the numbers of spans that SDKs report about themselves in a metrics request. A panic is logged
// and does not affect the response.
func (c *call) readSDKMetrics() {
	c.server.CatchPanic(func() { c.server.addSDKMetrics(c) })
}

// addSDKMetrics adds the numbers of spans that SDKs report about themselves in a metrics request to s.sdkSums. It
// ignores requests in JSON and requests that it can't decompress.
func (s *Server) addSDKMetrics(c *call) {
	if c.encoding == encodingJSON {
		return
	}
	if c.compression == bodies.Plain {
		s.sdkSums.Add(c.message)
		return
	}
	ws := <-s.workspaces // waits until one is idle
	defer func() { s.workspaces <- ws }()
	plain, err := ws.decompressor.Decompress(c.message, c.compression, &s.Bodies)
	defer plain.Release() // also after an error
	if err != nil {
		return
	}
	s.sdkSums.Add(plain.Bytes)
}
