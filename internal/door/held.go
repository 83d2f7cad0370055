package door

import (
	"context"
	"iter"
	"net/http"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/door/bodies"
	"github.com/spanstatsd/spanstatsd/internal/door/http1"
	"github.com/spanstatsd/spanstatsd/internal/exemplars"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// IsHTTP2 says whether it came by HTTP/2.
func (h *Held) IsHTTP2() bool { return h.HTTP != nil && h.HTTP.ProtoMajor == 2 }

// HasLeft says whether its sender is known to have given it up.
func (h *Held) HasLeft() bool { return h.HTTP != nil && h.HTTP.Context().Err() != nil }

// IsCounted says whether its spans are counted, by it or by a request before it.
func (h *Held) IsCounted() bool { return h.sum != 0 }

// Keep has a body released with the request. It may be nil.
func (h *Held) Keep(b *bodies.Body) *bodies.Body {
	if b != nil {
		h.more = append(h.more, b)
	}
	return b
}

// Size is the bytes of the memory that the request has.
func (h *Held) Size() (bytes int) {
	for _, b := range h.more {
		bytes += cap(b.Bytes)
	}
	return bytes + cap(h.Body.Bytes)
}

// Release gives its memory back. It may be called repeatedly.
func (h *Held) Release() {
	if h.Body != nil {
		h.Body.Release()
	}
	for _, b := range h.more {
		b.Release()
	}
	h.more = nil
}

// Going is a span of a batch that goes on: it may become an exemplar.
type Going struct {
	Batch, At                 int
	TraceHigh, TraceLow, Span uint64
}

// Publish publishes all that was counted of a message, or nothing, unless it was published before.
// From there on the request is counted, whatever goes wrong. Spans that go on are offered as
// exemplars.
func (h *Held) Publish(
	message []byte, batches Batches, going iter.Seq[Going],
) (before bool, why admit.Drop, ok bool) {
	s := h.server
	sum := s.counted.Sum(message)
	before = s.counted.Once(sum, func(counted func()) {
		why, ok = s.publishers.Publish(func() {
			h.offer(going)
			h.owed = s.publishers.appendOwed(h.owed)
			counted()
			h.sum = sum
		}, batches, time.Now())
	})
	if before {
		h.sum = sum
	}
	return before, why, ok || before
}

// Merge is the same of statistics that a sender has computed itself.
func (h *Held) Merge(origin span.Origin, groups []aggregate.Group, width uint64) (before bool, err error) {
	s := h.server
	sum := s.counted.Sum(h.Body.Bytes)
	before = s.counted.Once(sum, func(counted func()) {
		err = s.publishers.Merge(func(of owed) {
			h.owed = append(h.owed, of)
			counted()
			h.sum = sum
		}, origin, groups, width, time.Now())
	})
	if before {
		h.sum = sum
	}
	return before, err
}

// offer offers the spans that are forwarded as exemplars of the keys that they are counted under.
func (h *Held) offer(going iter.Seq[Going]) {
	table := h.server.config.Exemplars
	if table == nil || going == nil {
		return
	}
	table.Offer(func(yield func(exemplars.Span) bool) {
		for g := range going {
			cycle, slot := h.server.publishers.Counted(g.Batch, g.At)
			if !yield(exemplars.Span{
				Cycle: cycle, Key: uint32(slot.Key), IsError: slot.Flags&span.Error != 0,
				Exemplar: exemplars.Exemplar{
					TraceHigh: g.TraceHigh, TraceLow: g.TraceLow, Span: g.Span,
					Duration: slot.Duration, End: slot.End,
				},
			}) {
				return
			}
		}
	})
}

// reply ends a request with what its sender is told, and reports whether all of that was written.
func (h *Held) reply(w http.ResponseWriter, r *Reply) (isWritten bool) {
	defer h.Release()
	h.server.results[h.Result].Add(1)
	h.answered()
	if h.IsHTTP2() {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(h.server.setup.Write))
	}
	if r.Write != nil {
		isWritten = r.Write(w) == nil
	}
	if plain, is := w.(*http1.Writer); is && isWritten {
		isWritten = plain.FlushError() == nil
	}
	if h.sum != 0 {
		h.awaitReceipt(isWritten, r.IsFinal)
	}
	return isWritten
}

// answered says that the sender of what was counted has it no more, before it hears so.
func (h *Held) answered() {
	for _, of := range h.owed {
		if tell := h.server.config.Answered; tell != nil {
			tell(of.cycle, of.spans)
		}
	}
	h.owed = nil
}

// awaitReceipt ends a request whose body was counted. Of HTTP/1.1 the connection finds out whether
// the sender has an answer that was written; of HTTP/2 nothing shows that.
func (h *Held) awaitReceipt(isWritten, isFinal bool) {
	switch {
	case !isWritten || !isFinal:
		h.server.counted.Close(h.sum, false)
	case h.Conn != nil && !h.Conn.HTTP2.Load():
		h.Conn.Receipt.Await(h.sum)
	default:
		h.server.counted.CloseUnseen(h.sum)
	}
}

// Abandon ends a request that was begun and that nobody goes on with.
func (h *Held) Abandon() {
	if h.upstream != nil {
		h.upstream.Close()
	}
	h.reply(nil, &Reply{})
}

// Answer answers a request on its connection as long as nothing takes its time: where it goes on,
// there is a connection at hand, and who is behind takes the request at once and answers plainly.
// It reports whether the request is over; else net/http goes on with it, by finish.
func (h *Held) Answer(body *bodies.Body, broken error) (isOver bool) {
	s := h.server
	s.traffic.serving.Add(1)
	defer s.traffic.serving.Add(-1)
	h.Body = body
	if reply := h.request.Read(broken); reply != nil {
		if broken != nil {
			h.Conn.EndBehind()
		}
		h.reply(h.Conn.NewWriter(), reply)
		return true
	}
	if s.upstreams == nil {
		return false
	}
	for h.upstream == nil {
		c := s.upstreams.AtHand()
		if c == nil {
			return false
		}
		h.start(c)
	}
	c := h.upstream
	message, status := c.ReceiveAtOnce()
	if message == nil {
		return false
	}
	h.Body.Release() // who is behind has it
	a := &Answer{Status: status, Field: c.Answer.Fields.Get, whole: message, body: message[c.Answer.Length:]}
	h.reply(h.Conn.NewWriter(), h.request.Answer(a))
	_, _ = c.From.Discard(len(message)) // it is buffered
	c.IsRead = true
	s.upstreams.GiveBack(c)
	return true
}

// start begins to send the request on a connection, which is its own from then on, unless the other
// end has ended it before anything was written.
func (h *Held) start(c *http1.Upstream) {
	if !h.isBegun {
		h.parcel, h.isBegun = h.request.Begin(), true
	}
	h.server.setup.Behind.writeHead(&c.Head, &h.parcel)
	if !c.Start(c.Head.Bytes(), h.parcel.Message) {
		h.server.upstreams.GiveBack(c)
		return
	}
	h.upstream = c
}

// finish goes on with a request that net/http has, and whose body is read.
func (h *Held) finish(w http.ResponseWriter) {
	s := h.server
	ctx := h.HTTP.Context()
	if s.setup.Behind.Patience > 0 {
		within, cancel := context.WithTimeout(ctx, s.setup.Behind.Patience)
		defer cancel()
		ctx = within
	}
	isWritten := false
	if s.upstreams == nil {
		isWritten = h.reply(w, h.roundTrip(ctx))
	} else {
		isWritten = h.exchange(ctx, w)
	}
	if !isWritten {
		panic(http.ErrAbortHandler) // a part of the answer may be written, or nothing
	}
}

// exchange sends a request by a connection of ours, and replies as the answer comes.
func (h *Held) exchange(ctx context.Context, w http.ResponseWriter) (isWritten bool) {
	s := h.server
	for h.upstream == nil {
		c, err := s.upstreams.Connect(ctx)
		if err != nil {
			return h.reply(w, h.request.Unanswered(because(ctx, err)))
		}
		h.start(c)
	}
	c := h.upstream
	defer s.upstreams.GiveBack(c)
	c.Unwatch = context.AfterFunc(ctx, func() { c.Close() })
	c.Finish()
	answer, err := c.Receive(h.HTTP, func(early *http.Response) { showEarly(w, early) })
	if err != nil {
		return h.reply(w, h.request.Unanswered(because(ctx, err)))
	}
	h.Body.Release() // who is behind has it, or wants no more of it
	return h.reply(w, h.request.Answer(&Answer{
		Status: answer.StatusCode, Field: answer.Header.Get, rest: answer, from: c, ctx: ctx,
	}))
}
