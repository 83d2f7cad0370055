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

// collapsed returns the number of spans that were counted without their name. A daemon with little memory has rows for
// fewer names than the spans have that several clients resend at the same time.
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
	name      string
	isTight   bool
	published counts
	ambiguous uint64
	died      uint64
	lost      uint64   // reported as lost for another reason than daemon_died
	unsettled uint64   // spans of clients that left before they knew the outcome
	wrong     []string // invalid outcomes reported by daemons
}

func (a *account) merge(more *account) {
	maps.Copy(a.published, more.published)
	a.ambiguous += more.ambiguous
	a.died += more.died
	a.lost += more.lost
	a.unsettled += more.unsettled
	a.wrong = append(a.wrong, more.wrong...)
}

// request is a request that a sender has sent to an HTTP receiver, once.
type request struct {
	slot
	spans      uint64
	life       int // life of the daemon that received it
	isAnswered bool
}

// loss is the number of spans from one receiver that a daemon reports as lost with a killed one.
type loss struct {
	life      int // life of the killed daemon
	door      string
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
