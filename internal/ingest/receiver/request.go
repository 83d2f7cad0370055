package receiver

import (
	"iter"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/aggregate/exemplars"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver/bodies"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver/conns"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// BufferedRequest is a request whose body is kept in memory until the response is written.
type BufferedRequest struct {
	HTTP      *http.Request
	Conn      *conns.Conn  // nil in tests
	Body      *bodies.Body // nil before it is read
	Result    int          // index in Setup.Results
	IsCounted bool         // whether the spans are counted, in this or in an earlier attempt

	server  *Server
	owned   []*bodies.Body // bodies in addition to Body that Release releases
	unacked []unackedSpans
}

// unackedSpans is a number of spans, and of values of their attributes, that were counted in the given cycle, an export interval. The sender has no
// response yet, and can retry.
type unackedSpans struct{ cycle, spans, values uint64 }

// Exchange handles one buffered request in the protocol of a receiver. Its methods are called in the order below.
type Exchange interface {
	// Handle counts the spans of the body. It returns nil if the request is to be forwarded, and the response otherwise.
	// readErr is the error of reading the body; with an error, the body is incomplete and must not be counted.
	Handle(readErr error) Response
	// Outbound returns the request to forward.
	Outbound() OutboundRequest
	// Translate returns the response to the sender, for the upstream's response or for the error of forwarding.
	Translate(upstreamResponse *http.Response, err error) Response
}

// Response writes a response to a sender. If it returns an error, the connection is closed.
type Response func(w http.ResponseWriter) error

// CloseConnection is the Response that closes the connection without writing a response.
func CloseConnection(http.ResponseWriter) error { return http.ErrAbortHandler }

// NewRequest returns a BufferedRequest for r. The body is not read yet.
func (s *Server) NewRequest(r *http.Request) *BufferedRequest {
	return &BufferedRequest{HTTP: r, Conn: conns.FromContext(r.Context()), server: s}
}

// Header returns the header of the request.
func (r *BufferedRequest) Header() http.Header { return r.HTTP.Header }

// IsCanceled reports whether the sender has closed its connection or its stream, as far as net/http has noticed.
func (r *BufferedRequest) IsCanceled() bool { return r.HTTP.Context().Err() != nil }

// Own adds a body that Release releases too, for instance the decompressed body of the request. It returns the body, which
// can be nil.
func (r *BufferedRequest) Own(body *bodies.Body) *bodies.Body {
	if body != nil {
		r.owned = append(r.owned, body)
	}
	return body
}

// BodyBytes returns the memory of all bodies of the request.
func (r *BufferedRequest) BodyBytes() (bytes int) {
	bytes = cap(r.Body.Bytes)
	for _, body := range r.owned {
		bytes += cap(body.Bytes)
	}
	return bytes
}

// Release releases the memory of all bodies of the request. It can be called more than once.
func (r *BufferedRequest) Release() {
	if r.Body != nil {
		r.Body.Release()
	}
	for _, body := range r.owned {
		body.Release()
	}
	r.owned = nil
}

// MayBeRetry reports whether the request, whose body was not read completely, might be a retry of a request whose
// spans were counted. It returns true if a recently counted body has the same length as this one, or if any body
// was counted recently and the request has no Content-Length.
func (r *BufferedRequest) MayBeRetry() bool {
	p := r.server.publishers
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.HTTP.ContentLength < 0 {
		return p.countedBodies.HasAny(time.Now())
	}
	return p.countedBodies.HasLength(r.HTTP.ContentLength, time.Now())
}

// ForwardedSpan is a counted span that is forwarded, so that it can become an exemplar.
type ForwardedSpan struct {
	Batch, Index              int // index of the batch, and of the span in the batch
	TraceHigh, TraceLow, Span uint64
}

// PublishOutcome is the outcome of BufferedRequest.Publish for the spans of a message.
type PublishOutcome int

const (
	Published       PublishOutcome = iota
	PublishedBefore                // in an equal message, so that they were not published again
	NotPublished
)

// Publish publishes all batches of a message, or none of them. If an equal message was published before, it publishes
// nothing. reason says why the outcome is NotPublished. Metrics can refer to the spans in forwarded as exemplars.
func (r *BufferedRequest) Publish(
	message []byte, batches Batches, forwarded iter.Seq[ForwardedSpan],
) (outcome PublishOutcome, reason admit.DropReason) {
	now := time.Now()
	p := r.server.publishers
	hash := p.countedBodies.Hash(message)
	p.mu.Lock()
	defer p.mu.Unlock()
	isDuplicate := p.countedBodies.Has(hash, now)
	if isDuplicate {
		r.IsCounted = true // in an earlier attempt of the sender
		return PublishedBefore, 0
	}
	if p.isClosed {
		return NotPublished, admit.DropShutdown
	}
	p.setParts(batches, now)
	defer clear(p.parts)  // they refer to the memory of the message
	onPublish := func() { // called only if all batches are published
		r.IsCounted = true
		containsSpans := slices.ContainsFunc(p.parts, hasSpans)
		if containsSpans { // an equal message without spans can be a probe instead of a retry
			p.countedBodies.Add(hash, len(message), now)
			r.offerExemplars(forwarded)
		}
		r.addUnacked(p.parts)
	}
	reason, isPublished := p.admit.PublishTogether(onPublish, p.parts...)
	if !isPublished {
		return NotPublished, reason
	}
	return Published, 0
}

func hasSpans(part admit.BatchPart) bool { return len(part.Batch.Snapshots) > 0 }

// addUnacked records how many spans of each batch are counted, and in which cycle. It must be called while the batches are
// being published.
func (r *BufferedRequest) addUnacked(parts []admit.BatchPart) {
	for i := range parts {
		publisher := parts[i].Publisher
		r.unacked = append(r.unacked, unackedSpans{
			cycle: publisher.Cycle(), spans: uint64(publisher.CountedSpans()), values: uint64(publisher.CountedValues()),
		})
	}
}

// Merge adds groups, which contain statistics that a sender has computed, to the statistics of the daemon. width is
// the length of the sender's time buckets in nanoseconds. If an equal body was merged before, Merge adds nothing,
// and isDuplicate is true.
func (r *BufferedRequest) Merge(
	origin span.Origin, groups []aggregate.Group, width uint64,
) (isDuplicate bool, err error) {
	now := time.Now()
	body := r.Body.Bytes
	p := r.server.publishers
	hash := p.countedBodies.Hash(body)
	p.mu.Lock()
	defer p.mu.Unlock()
	isDuplicate = p.countedBodies.Has(hash, now)
	if isDuplicate {
		r.IsCounted = true // in an earlier attempt of the sender
		return true, nil
	}
	if p.isClosed {
		return false, admit.ErrStopping
	}
	publisher := p.getOrCreate(origin, now)
	// Merge calls recordMerge when nothing can prevent the merging any more, just before it adds the first group. So a
	// retry adds nothing, even if Merge panics.
	recordMerge := func(spans uint64) {
		r.IsCounted = true
		p.countedBodies.Add(hash, len(body), now)
		r.unacked = append(r.unacked, unackedSpans{cycle: publisher.Cycle(), spans: spans})
	}
	err = publisher.Merge(recordMerge, groups, width, now)
	return false, err //nolint:wrapcheck // its own words
}

// offerExemplars offers forwarded spans to the exemplar table. It must be called while their batches are being published.
func (r *BufferedRequest) offerExemplars(forwarded iter.Seq[ForwardedSpan]) {
	table := r.server.config.Exemplars
	if table == nil || forwarded == nil {
		return
	}
	parts := r.server.publishers.parts
	table.Offer(func(yield func(exemplars.Span) bool) {
		for forwardedSpan := range forwarded {
			if !yield(forwardedSpan.toCandidate(parts)) {
				return
			}
		}
	})
}

// toCandidate returns the span in the form in which the exemplar table accepts it. published are the batches of the
// request: f.Batch is the index of the span's batch, and f.Index the index of the span in it.
func (f ForwardedSpan) toCandidate(published []admit.BatchPart) exemplars.Span {
	publisher := published[f.Batch].Publisher
	cycle, counted := publisher.Counted(f.Index)
	isError := counted.Flags&span.Error != 0
	return exemplars.Span{
		Cycle: cycle, Key: uint32(counted.Key), IsError: isError,
		Exemplar: exemplars.Exemplar{
			TraceHigh: f.TraceHigh, TraceLow: f.TraceLow, Span: f.Span,
			Duration: counted.Duration, End: counted.End,
		},
	}
}

// acknowledge calls Config.OnAck with the counted spans of the request. It must be called before the response is
// written, because the sender drops its copy of the spans when it has the response.
func (r *BufferedRequest) acknowledge() {
	onAck := r.server.config.OnAck
	if onAck != nil {
		for _, counted := range r.unacked {
			onAck(counted.cycle, counted.spans, counted.values)
		}
	}
	r.unacked = nil
}

// IsTrue parses a boolean header like the Datadog agent: all values are true, except "" and the false values of
// strconv.ParseBool.
func IsTrue(value string) bool {
	isTrue, err := strconv.ParseBool(value)
	isOtherText := value != "" && err != nil
	return isTrue || isOtherText
}
