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
	extra   []*bodies.Body
	unacked []unackedSpans
}

// unackedSpans are counted spans whose sender has no response yet, and may retry.
type unackedSpans struct{ cycle, spans uint64 }

// Exchange is what a receiver does with one request. Its methods are called in this order.
type Exchange interface {
	// Count counts the body, or handles the error that reading it ended with. It returns the response
	// to a request that ends here, nil to forward it.
	Count(readErr error) Response
	// Outbound returns the request to forward.
	Outbound() OutboundRequest
	// Translate makes a response of the upstream's, or of the error that forwarding ended with.
	Translate(r *http.Response, err error) Response
}

// Response writes the response to a sender. The connection is closed if it fails.
type Response func(w http.ResponseWriter) error

// CloseConnection is the response that ends a connection without a response.
func CloseConnection(http.ResponseWriter) error { return http.ErrAbortHandler }

// Buffered returns a request whose body is not read yet.
func (s *Server) Buffered(r *http.Request) *BufferedRequest {
	return &BufferedRequest{HTTP: r, Conn: conns.Of(r.Context()), server: s}
}

// Header returns the header of the request.
func (r *BufferedRequest) Header() http.Header { return r.HTTP.Header }

// HasLeft reports whether the sender is known to have given up.
func (r *BufferedRequest) HasLeft() bool { return r.HTTP.Context().Err() != nil }

// Keep releases a body with the request. The body may be nil.
func (r *BufferedRequest) Keep(b *bodies.Body) *bodies.Body {
	if b != nil {
		r.extra = append(r.extra, b)
	}
	return b
}

// Size returns the bytes of memory that the request holds.
func (r *BufferedRequest) Size() (bytes int) {
	for _, b := range r.extra {
		bytes += cap(b.Bytes)
	}
	return bytes + cap(r.Body.Bytes)
}

// Release returns the memory of the bodies. It may be called repeatedly.
func (r *BufferedRequest) Release() {
	if r.Body != nil {
		r.Body.Release()
	}
	for _, b := range r.extra {
		b.Release()
	}
	r.extra = nil
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

// Publish publishes all batches of a message or none, unless an equal message was published before.
// If it succeeds the request is counted, whatever happens to it later. Forwarded spans are offered as
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
	if !p.resolve(batches, now) {
		return false, admit.DropShutdown, false
	}
	defer clear(p.parts)
	reason, ok = p.admit.PublishTogether(func() {
		r.IsCounted = true
		if slices.ContainsFunc(p.parts, hasSpans) { // senders repeat empty bodies to probe a server
			p.counted.Add(sum, len(message), now)
			r.offerExemplars(forwarded)
		}
		for i := range p.parts {
			by := p.parts[i].Publisher
			r.unacked = append(r.unacked, unackedSpans{by.Cycle(), uint64(by.Counting())})
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
	by := p.get(origin, now)
	err = by.Merge(func(spans uint64) {
		r.IsCounted = true
		p.counted.Add(sum, len(r.Body.Bytes), now)
		r.unacked = append(r.unacked, unackedSpans{by.Cycle(), spans})
	}, groups, width, now)
	return false, err //nolint:wrapcheck // its own words
}

// offerExemplars offers spans as exemplars of the keys that they are counted under. It is called while
// the batches are published.
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

// IsTrue reads a flag in a header as the agent does: any value but a false one is true.
func IsTrue(value string) bool {
	is, err := strconv.ParseBool(value)
	return value != "" && (is || err != nil)
}
