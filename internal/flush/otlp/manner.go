package otlp

import "sync/atomic"

// manner is how the receiver takes the body of a request, as far as is known.
//
// A payload that was written whole and never answered may have been counted, and OTLP has
// no mark by which a second copy could be told from the first, so it is lost as
// ambiguous. A receiver that hangs takes connections and bytes all the same, because its
// kernel does. So a body is sent when the receiver asks for it (Expect: 100-continue);
// what was not asked for has certainly not arrived.
//
// There are proxies that never ask. A silence alone does not tell them from a receiver
// that hangs, but a probe does: a request with no metrics, of which nothing can be counted
// once or twice. Its body goes unasked after a second. Whoever answers it takes bodies.
//
//	in doubt      at first, and after every silence
//	  probe; asked for its body, and answered?   asks
//	         answered?                           asks never
//	         else the payload waits, for another try
//	asks          offer a payload, and wait for as long as a request may take
//	asks never    send a payload unasked
//
// So a receiver that hangs, or goes, costs the payload that was under way to it at most,
// once, and nothing where it asks for bodies.
type manner int32

const (
	inDoubt manner = iota
	asks
	asksNever
)

// atomicManner is what is known now. Several deliveries may learn at once, and the last is
// believed: what it may have wrong is a wait, not a payload.
type atomicManner struct{ now atomic.Int32 }

func (m *atomicManner) load() manner   { return manner(m.now.Load()) }
func (m *atomicManner) store(n manner) { m.now.Store(int32(n)) }
