package main

import (
	"maps"
	"sync"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// slot identifies spans by their sender and by the time window or request in which they were sent.
type slot struct{ service, name string }

// counts are numbers of spans by slot.
type counts map[slot]uint64

func (c counts) sum() (all uint64) {
	for _, spans := range c {
		all += spans
	}
	return all
}

// collapsed returns the number of spans that were counted without their name. A daemon with little
// memory has too few rows for all names when several clients resend spans at the same time.
func (c counts) collapsed() (all uint64) {
	for s, spans := range c {
		if s.name == span.Blocked {
			all += spans
		}
	}
	return all
}

// account is a client's account: published spans, and spans reported as not delivered.
type account struct {
	name            string
	hasLowCapacity  bool // the client can't keep all its spans
	published       counts
	ambiguous       uint64   // reported as ambiguous
	died            uint64   // reported as daemon_died
	lost            uint64   // reported as lost for another reason than daemon_died
	unsettled       uint64   // spans of clients that disconnected before they received the outcome
	invalidOutcomes []string // invalid outcomes reported by daemons
}

func (a *account) merge(more *account) {
	maps.Copy(a.published, more.published)
	a.ambiguous += more.ambiguous
	a.died += more.died
	a.lost += more.lost
	a.unsettled += more.unsettled
	a.invalidOutcomes = append(a.invalidOutcomes, more.invalidOutcomes...)
}

// request is a request that a sender has sent to an HTTP receiver, once.
type request struct {
	slot
	spans          uint64
	life           int // life of the daemon that received it
	isAcknowledged bool
}

// loss is the number of spans from one receiver that a daemon reports as lost with a killed daemon.
type loss struct {
	life      int // life of the killed daemon
	receiver  string
	by        int    // life of the reporting daemon
	line      string // message of the log line, and name of the killed daemon
	lost      uint64
	ambiguous uint64
}

// tally holds the spans that a destination has counted.
type tally struct {
	mu      sync.Mutex
	counted counts
}

func (t *tally) add(s slot, spans uint64) {
	if t.counted == nil {
		t.counted = counts{}
	}
	t.counted[s] += spans
}
