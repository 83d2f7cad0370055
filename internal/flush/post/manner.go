package post

import (
	"sync/atomic"

	"github.com/spanstatsd/spanstatsd/internal/flush"
)

// manner is how the destination takes a body, as far as is known.
//
// A body that was written whole and never answered may have been counted, so it is lost as
// ambiguous. A destination that hangs takes connections and bytes all the same, because its
// kernel does. So a body is sent only when it is asked for (Expect: 100-continue); what was
// not asked for has certainly not arrived.
//
// There are servers before a destination that never ask, though every server should. A
// silence alone does not tell them from one that hangs. Therefore whoever is silent is sent
// a probe, a body of which nothing can be counted, neither once nor twice. It goes unasked
// after a second, and who answers it takes bodies.
//
//	in doubt      at first, and when nobody answers or nobody asks
//	  offer a body; asked for it within a second?      asks always
//	  answered 417, which is to know no Expect?        asks never
//	  else withdraw the body and probe
//	distrusted    when a body was written whole and not answered
//	  probe
//	a probe
//	  asked for its body, and answered?                asks always
//	  answered?                                        asks never
//	  else what was to be sent waits, for another try
//	asks always
//	  offer a body; asked for it in half of the time that a request has?
//	  else withdraw the body: in doubt
//	asks never
//	  send a body unasked
//
// So nothing is sent unasked because of a silence, and a destination that falls silent costs
// what was under way to it, once: all else waits until a probe is answered.
//
// All requests share what is known. Several may learn at once, and the last is believed;
// what it may have wrong is a wait, not a payload.
type manner int32

const (
	inDoubt manner = iota
	distrusted
	asksAlways
	asksNever
)

// known says whether bodies may go without a probe.
func (m manner) known() bool { return m == asksAlways || m == asksNever }

// atomicManner is what all requests know.
type atomicManner struct{ now atomic.Int32 }

func (m *atomicManner) load() manner   { return manner(m.now.Load()) }
func (m *atomicManner) store(n manner) { m.now.Store(int32(n)) }

// notice takes a silence into account, of a request that was made as was known then.
func (m *atomicManner) notice(a flush.Attempt, then manner) {
	switch {
	case a.Outcome == flush.OutcomeUnknown:
		m.store(distrusted)
	case a.Silent:
		m.doubt(then)
	}
}

// doubt forgets what was known, unless another request has learnt something since.
func (m *atomicManner) doubt(then manner) { m.now.CompareAndSwap(int32(then), int32(inDoubt)) }
