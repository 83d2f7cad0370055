package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/spanstatsd/spanstatsd/internal/flush"
	"github.com/spanstatsd/spanstatsd/internal/flush/request"
)

// manner is how the agent takes a body, as far as is known.
//
// A payload that was written whole and never answered may have been counted, so it is
// lost as ambiguous. An agent that hangs takes connections and bytes all the same,
// because its kernel does. So a payload's body is sent only when the agent asks for it
// (Expect: 100-continue); what was not asked for has certainly not arrived.
//
// There are servers before an agent that never ask, though every server should. A
// silence alone does not tell them from an agent that hangs. Therefore whoever is silent
// is sent a probe, a payload without statistics: nothing of it can be counted, neither
// once nor twice. Its body goes unasked after a second, and who answers it takes bodies.
//
//	in doubt      at first, and when nobody answers or nobody asks
//	  offer a payload; asked for it within a second?   asks always
//	  answered 417, which is to know no Expect?        asks never
//	  else withdraw the payload and probe
//	distrusted    when a payload was written whole and not answered
//	  probe
//	a probe
//	  asked for its body, and answered?                asks always
//	  answered?                                        asks never
//	  else the payload waits, for another try
//	asks always
//	  offer a payload, and wait for as long as a request may take
//	asks never
//	  send a payload unasked
//
// So no payload is sent unasked because of a silence, however often the agent is asked
// what it wants, and an agent that falls silent costs what was under way to it, once: all
// else waits until a probe is answered.
//
// All deliveries share what is known. Several may learn at once, and the last is
// believed; what it may have wrong is a wait, not a payload.
type manner int32

const (
	inDoubt manner = iota
	distrusted
	asksAlways
	asksNever
)

// known says whether payloads may go without a probe.
func (m manner) known() bool { return m == asksAlways || m == asksNever }

// atomicManner is what all deliveries know.
type atomicManner struct{ now atomic.Int32 }

func (m *atomicManner) load() manner   { return manner(m.now.Load()) }
func (m *atomicManner) store(n manner) { m.now.Store(int32(n)) }

// notice takes a silence into account, of an attempt that was made as was known then.
func (m *atomicManner) notice(a attempt, then manner) {
	switch {
	case a.Outcome == flush.OutcomeUnknown:
		m.store(distrusted)
	case a.Silent:
		m.now.CompareAndSwap(int32(then), int32(inDoubt))
	}
}

// errNotAsked is why a payload was withdrawn.
var errNotAsked = errors.New("the agent does not ask for the body")

// post offers the agent a payload once: as the agent is known to take it, or as it turns
// out that it does.
func (h *httpAgent) post(ctx context.Context, p *flush.Payload) attempt {
	now := h.manner.load()
	a := failed(flush.OutcomeNotYet, true, errNotAsked)
	if now != distrusted {
		a = h.offer(ctx, p, now)
	}
	switch {
	case errors.Is(a.Err, errNotAsked):
		if err := h.probe(ctx); err != nil {
			return failed(flush.OutcomeNotYet, true, err)
		}
	case a.status == http.StatusExpectationFailed && now != asksNever:
		h.manner.store(asksNever)
	default:
		h.manner.notice(a, now)
		return a
	}
	now = h.manner.load()
	a = h.offer(ctx, p, now)
	h.manner.notice(a, now)
	return a
}

// noStatistics is a payload with none: an empty map.
var noStatistics = []byte{0x80}

// probe finds out how a silent agent takes a body, and fails where nobody answers. One
// is under way at a time; who waits for it uses what it finds.
func (h *httpAgent) probe(ctx context.Context) error {
	select {
	case h.probing <- struct{}{}:
		defer func() { <-h.probing }()
	case <-ctx.Done():
		return fmt.Errorf("probe agent at %s: %w", h.url, errNotAsked)
	}
	if h.manner.load().known() {
		return nil
	}
	var body request.Body
	req, err := h.request(body.Trace(ctx), http.MethodPost, "/v0.6/stats")
	if err != nil {
		return err
	}
	body.Reset(noStatistics)
	req.Body, req.ContentLength = &body, int64(len(noStatistics))
	req.Header.Set("Content-Type", "application/msgpack")
	req.Header.Set("Expect", "100-continue")
	resp, err := h.unasked.RoundTrip(req)
	if err != nil {
		return fmt.Errorf("probe agent at %s, which was silent: %w", h.url, err)
	}
	_ = resp.Body.Close()
	if body.Asked() {
		h.manner.store(asksAlways)
	} else {
		h.manner.store(asksNever)
	}
	return nil
}
