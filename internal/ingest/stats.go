package ingest

import (
	"slices"
	"sync/atomic"
)

// lostReasons are the losses that tracers report under their own names. A loss with another
// name is counted as other, so that no tracer can make the list longer.
var lostReasons = [...]string{
	"buffer_full", "disconnected", "not_wanted", "too_large", "closed",
	"daemon_died", "ambiguous", "other",
}

// counters are added to once a frame or less, by every connection.
type counters struct {
	frames    atomic.Uint64
	faults    [faults]atomic.Uint64
	accepted  atomic.Uint64
	throttled atomic.Uint64 // reads put off
	lost      [len(lostReasons)]atomic.Uint64
}

func (c *counters) countLost(reason string, spans uint64) {
	known := slices.Index(lostReasons[:], reason)
	if known < 0 {
		known = len(lostReasons) - 1
	}
	addLost(&c.lost[known], spans)
}

// mostLost is what a counter of losses goes up to: as far as Prometheus counts by ones.
const mostLost = 1 << 53

// addLost adds a number that a tracer chose. A sum that would be too large for its readers
// begins anew, as after a restart: one that stood still would show no later loss.
func addLost(sum *atomic.Uint64, spans uint64) {
	for {
		before := sum.Load()
		after := before + spans
		if after > mostLost {
			after = spans
		}
		if sum.CompareAndSwap(before, after) {
			return
		}
	}
}

// Stats is what the outside sees of ingest. Every reason is present, also at 0.
type Stats struct {
	Frames           uint64
	Faults           map[string]uint64 // by reason
	ClientLost       map[string]uint64 // by reason
	Connections      int
	ConnectionsTotal uint64
	ReadsThrottled   uint64
	FramesWaited     uint64 // large ones, for room
}

// stats reads the counters without disturbing those who write them.
func (c *counters) stats() Stats {
	stats := Stats{
		Frames: c.frames.Load(), ConnectionsTotal: c.accepted.Load(), ReadsThrottled: c.throttled.Load(),
		Faults:     make(map[string]uint64, faults),
		ClientLost: make(map[string]uint64, len(lostReasons)),
	}
	for f := range faults {
		stats.Faults[Fault(f).String()] = c.faults[f].Load()
	}
	for i, reason := range lostReasons {
		stats.ClientLost[reason] = c.lost[i].Load()
	}
	return stats
}
