package ingest

import (
	"math"
	"sync/atomic"

	"github.com/spanstatsd/spanstatsd/internal/registry"

	"golang.org/x/sys/cpu"
)

// lostReasons are the losses that tracers report under their own names. What
// has another name is counted as other, so that no tracer can make the list
// longer.
var lostReasons = [...]string{"buffer_full", "disconnected", "not_wanted", "too_large", "closed", "other"}

// counters are added to once a batch or less, by every connection.
type counters struct {
	_         cpu.CacheLinePad
	received  atomic.Uint64
	frames    atomic.Uint64
	_         cpu.CacheLinePad
	dropped   [drops]atomic.Uint64
	collapsed [registry.Fields]atomic.Uint64
	faults    [faults]atomic.Uint64
	accepted  atomic.Uint64
	decoded   atomic.Uint64 // keys
	uncached  atomic.Uint64 // keys that were decoded and found no room in their connection's table
	cut       atomic.Uint64 // keys with a label that had to be changed
	throttled atomic.Uint64 // reads put off
	lost      [len(lostReasons)]atomic.Uint64
}

func (c *counters) countLost(reason string, spans uint64) {
	for i, known := range lostReasons {
		if reason == known || i == len(lostReasons)-1 {
			addUpTo(&c.lost[i], spans)
			return
		}
	}
}

// addUpTo adds a number that a tracer may choose: at the largest the sum stands
// still, where it would go back to the start.
func addUpTo(sum *atomic.Uint64, n uint64) {
	for {
		before := sum.Load()
		if sum.CompareAndSwap(before, before+min(n, math.MaxUint64-before)) {
			return
		}
	}
}

// Stats is what the outside sees of ingest. Every reason is present, also at 0.
type Stats struct {
	Received         uint64
	Frames           uint64
	Dropped          map[string]uint64 // by reason
	Collapsed        map[string]uint64 // by field
	Faults           map[string]uint64 // by reason
	ClientLost       map[string]uint64 // by reason
	Connections      int
	ConnectionsTotal uint64
	KeysDecoded      uint64
	KeysUncached     uint64
	KeysNormalised   uint64
	ReadsThrottled   uint64
	FramesWaited     uint64 // large ones, for room
}

// DroppedTotal is the sum over all reasons.
func (s *Stats) DroppedTotal() (total uint64) {
	for _, n := range s.Dropped {
		total += n
	}
	return total
}

// Stats reads the counters without disturbing those who write them. Received is
// read last: a batch counts as received after it was published or dropped, so
// the parts never exceed the whole by a batch that is not in it yet.
func (s *Server) Stats() Stats {
	c := &s.counters
	stats := Stats{
		Frames: c.frames.Load(), ConnectionsTotal: c.accepted.Load(),
		KeysDecoded: c.decoded.Load(), KeysUncached: c.uncached.Load(),
		KeysNormalised: c.cut.Load(), ReadsThrottled: c.throttled.Load(),
		FramesWaited: s.space.waits.Load(),
		Dropped:      make(map[string]uint64, drops),
		Collapsed:    make(map[string]uint64, registry.Fields),
		Faults:       make(map[string]uint64, faults),
		ClientLost:   make(map[string]uint64, len(lostReasons)),
	}
	for d := range drops {
		stats.Dropped[Drop(d).String()] = c.dropped[d].Load()
	}
	for f := range registry.Fields {
		stats.Collapsed[registry.Field(f).String()] = c.collapsed[f].Load()
	}
	for f := range faults {
		stats.Faults[Fault(f).String()] = c.faults[f].Load()
	}
	for i, reason := range lostReasons {
		stats.ClientLost[reason] = c.lost[i].Load()
	}
	s.mu.Lock()
	stats.Connections = len(s.conns)
	s.mu.Unlock()
	stats.Received = c.received.Load()
	return stats
}
