package main

import (
	"maps"
	"sync"
)

// slot is what tells spans apart: who sent them, and when, or in which request.
type slot struct{ service, name string }

// counts are spans by their slots.
type counts map[slot]uint64

func (c counts) sum() (all uint64) {
	for _, spans := range c {
		all += spans
	}
	return all
}

// account is what a client says: what it published, and what it names as not delivered.
type account struct {
	name      string
	isTight   bool
	published counts
	ambiguous uint64
	died      uint64
	lost      uint64   // for another reason
	unsettled uint64   // of those that left without knowing
	wrong     []string // that daemons said
}

func (a *account) merge(more *account) {
	maps.Copy(a.published, more.published)
	a.ambiguous += more.ambiguous
	a.died += more.died
	a.lost += more.lost
	a.unsettled += more.unsettled
	a.wrong = append(a.wrong, more.wrong...)
}

// request is one that a sender at an HTTP door has sent once.
type request struct {
	slot
	spans      uint64
	life       int // of the daemon that it was sent to
	isAnswered bool
}

// loss is what a daemon says that those killed before it took with them, by an HTTP door.
type loss struct {
	life      int // of the daemon that says it
	door      string
	names     []string // of the killed ones that it speaks of
	lost      uint64
	ambiguous uint64
}

// tally is what a destination counts.
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
