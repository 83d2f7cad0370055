package ingest

import (
	"slices"
	"sync/atomic"
)

// lostReasons are the reasons for lost spans that clients can report. Other reasons are counted as
// "other", so that clients can't increase the number of reasons.
var lostReasons = [...]string{
	"buffer_full", "disconnected", "not_wanted", "too_large", "closed",
	"daemon_died", "ambiguous", "other",
}

// counters are the counters of all connections. They change at most once per frame.
type counters struct {
	frames    atomic.Uint64
	faults    [faults]atomic.Uint64
	accepted  atomic.Uint64
	throttled atomic.Uint64 // reads delayed by MaxByteRate
	lost      [len(lostReasons)]atomic.Uint64
}

// countLost adds a number of spans, which a client has lost for the given reason, to the counter of this reason. A
// reason that is not in lostReasons is counted as "other".
func (c *counters) countLost(reason string, spans uint64) {
	i := slices.Index(lostReasons[:], reason)
	if i < 0 {
		i = slices.Index(lostReasons[:], "other")
	}
	addLost(&c.lost[i], spans)
}

// maxLost is the maximum value of a counter of lost spans. Prometheus can't represent all integers above
// it.
const maxLost = 1 << 53

// addLost adds a number of lost spans, which a client has reported, to a counter. If the sum exceeds maxLost, the
// counter restarts at the added number, and Prometheus sees a counter reset. A counter that stopped at its maximum
// would hide later losses.
func addLost(counter *atomic.Uint64, spans uint64) {
	for {
		old := counter.Load()
		sum := old + spans
		if sum > maxLost {
			sum = spans
		}
		if counter.CompareAndSwap(old, sum) {
			return
		}
	}
}

// Stats are the statistics of a Server. The maps contain all reasons, including those with count 0.
type Stats struct {
	Frames           uint64
	Faults           map[string]uint64 // closed connections, by reason
	ClientLost       map[string]uint64 // spans that clients report as lost, by reason
	Connections      int               // current number
	ConnectionsTotal uint64
	ReadsThrottled   uint64
	FramesWaited     uint64 // large frames that had to wait for a buffer
}

// stats returns a copy of the counters, with the names of all reasons.
func (c *counters) stats() Stats {
	stats := Stats{
		Frames: c.frames.Load(), ConnectionsTotal: c.accepted.Load(), ReadsThrottled: c.throttled.Load(),
		Faults:     make(map[string]uint64, faults),
		ClientLost: make(map[string]uint64, len(lostReasons)),
	}
	for reason := range faults {
		stats.Faults[Fault(reason).String()] = c.faults[reason].Load()
	}
	for i, reason := range lostReasons {
		stats.ClientLost[reason] = c.lost[i].Load()
	}
	return stats
}
