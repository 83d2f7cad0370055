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

// BufferedRequest is a request whose body is held in memory until it is answered.
type BufferedRequest struct {
	HTTP      *http.Request
	Conn      *conns.Conn  // nil in tests
	Body      *bodies.Body // nil before it is read
	Result    int          // index in Setup.Results
	IsCounted bool         // its spans are counted, by it or by an earlier attempt

	server  *Server
	owned   []*bodies.Body // released with the request, besides Body
	unacked []unackedSpans
}

// unackedSpans are counted spans whose sender has no response yet, and may retry.
type unackedSpans struct{ cycle, spans uint64 }

// Exchange is a request and its response in the API of a receiver. Its methods are called in this order.
type Exchange interface {
	// Count counts the spans of the body, unless reading it has failed. It returns nil if the request is to
	// be forwarded, otherwise the response.
	Count(readErr error) Response
	// Outbound returns the request to forward.
	Outbound() OutboundRequest
	// Translate returns the response for the upstream's response, or for the error of forwarding.
	Translate(fromUpstream *http.Response, err error) Response
}

// Response writes the response to a sender. The connection is closed if it fails.
type Response func(w http.ResponseWriter) error

// CloseConnection is the response that ends a connection without a response.
func CloseConnection(http.ResponseWriter) error { return http.ErrAbortHandler }

// NewRequest returns a request whose body is not read yet.
func (s *Server) NewRequest(r *http.Request) *BufferedRequest {
	return &BufferedRequest{HTTP: r, Conn: conns.FromContext(r.Context()), server: s}
}

// Header returns the header of the request.
func (r *BufferedRequest) Header() http.Header { return r.HTTP.Header }

// IsCanceled reports whether the sender is known to have closed its connection or its stream.
func (r *BufferedRequest) IsCanceled() bool { return r.HTTP.Context().Err() != nil }

// Own takes over a body, such as the decompressed one: Release releases it too. The body may be nil.
func (r *BufferedRequest) Own(b *bodies.Body) *bodies.Body {
	if b != nil {
		r.owned = append(r.owned, b)
	}
	return b
}

// Size returns the bytes of memory that the request holds.
func (r *BufferedRequest) Size() (bytes int) {
	for _, b := range r.owned {
		bytes += cap(b.Bytes)
	}
	return bytes + cap(r.Body.Bytes)
}

// Release returns the memory of the bodies. It may be called repeatedly.
func (r *BufferedRequest) Release() {
	if r.Body != nil {
		r.Body.Release()
	}
	for _, b := range r.owned {
		b.Release()
	}
	r.owned = nil
}

// MayBeRetry reports whether a body that was not read whole may have been counted before. It can't be
// hashed, so its length decides.
func (r *BufferedRequest) MayBeRetry() bool {
	p := r.server.publishers
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counted.HasLength(r.HTTP.ContentLength, time.Now())
}

// ForwardedSpan is a span of a batch that is forwarded, and may become an exemplar.
type ForwardedSpan struct {
	Batch, Index              int
	TraceHigh, TraceLow, Span uint64
}

// Publish publishes all batches of a message or none, unless an equal message was published before. If it
// succeeds, the request is counted, whatever happens to it later. Forwarded spans become candidates for
// exemplars.
func (r *BufferedRequest) Publish(
	message []byte, batches Batches, forwarded iter.Seq[ForwardedSpan],
) (isDuplicate bool, reason admit.DropReason, ok bool) {
	p, now := r.server.publishers, time.Now()
	sum := p.counted.Sum(message)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.counted.Has(sum, now) {
		r.IsCounted = true
		return true, 0, true
	}
	if !p.prepare(batches, now) {
		return false, admit.DropShutdown, false
	}
	defer clear(p.parts)
	reason, ok = p.admit.PublishTogether(func() {
		r.IsCounted = true
		isProbe := !slices.ContainsFunc(p.parts, hasSpans) // senders repeat empty bodies to probe a server
		if !isProbe {
			p.counted.Add(sum, len(message), now)
			r.offerExemplars(forwarded)
		}
		for i := range p.parts {
			publisher := p.parts[i].Publisher
			r.unacked = append(r.unacked, unackedSpans{publisher.Cycle(), uint64(publisher.Counting())})
		}
	}, p.parts...)
	return false, reason, ok
}

func hasSpans(part admit.BatchPart) bool { return len(part.Batch.Snapshots) > 0 }

// Merge merges statistics that a sender has computed, unless an equal body was merged before.
func (r *BufferedRequest) Merge(origin span.Origin, groups []aggregate.Group, width uint64,
) (isDuplicate bool, err error) {
	p, now := r.server.publishers, time.Now()
	sum := p.counted.Sum(r.Body.Bytes)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.counted.Has(sum, now) {
		r.IsCounted = true
		return true, nil
	}
	if p.isClosed {
		return false, admit.ErrStopping
	}
	publisher := p.get(origin, now)
	err = publisher.Merge(func(spans uint64) {
		r.IsCounted = true
		p.counted.Add(sum, len(r.Body.Bytes), now)
		r.unacked = append(r.unacked, unackedSpans{publisher.Cycle(), spans})
	}, groups, width, now)
	return false, err //nolint:wrapcheck // its own words
}

// offerExemplars offers forwarded spans as exemplars of their keys, while their batches are published.
func (r *BufferedRequest) offerExemplars(forwarded iter.Seq[ForwardedSpan]) {
	table := r.server.config.Exemplars
	if table == nil || forwarded == nil {
		return
	}
	parts := r.server.publishers.parts
	table.Offer(func(yield func(exemplars.Span) bool) {
		for s := range forwarded {
			cycle, slot := parts[s.Batch].Publisher.Counted(s.Index)
			if !yield(exemplars.Span{
				Cycle: cycle, Key: uint32(slot.Key), IsError: slot.Flags&span.Error != 0,
				Exemplar: exemplars.Exemplar{
					TraceHigh: s.TraceHigh, TraceLow: s.TraceLow, Span: s.Span,
					Duration: slot.Duration, End: slot.End,
				},
			}) {
				return
			}
		}
	})
}

// ack reports that the sender is about to get a response: from then on only this daemon has the spans.
func (r *BufferedRequest) ack() {
	for _, u := range r.unacked {
		if on := r.server.config.OnAck; on != nil {
			on(u.cycle, u.spans)
		}
	}
	r.unacked = nil
}

// IsTrue parses a flag in a header as the Datadog agent does: any value except a false one is true.
func IsTrue(value string) bool {
	isTrue, err := strconv.ParseBool(value)
	isOtherText := value != "" && err != nil
	return isTrue || isOtherText
}
