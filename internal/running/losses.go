package running

// Losses is what daemons that were killed have taken with them, in spans.
type Losses struct {
	// Unknown is of how many nobody knows it, because their files are another version's, or damaged.
	Unknown int             `json:"unknown_daemons"`
	Doors   map[string]Loss `json:"doors"`
	Awaited uint64          `json:"awaited"` // that clients had handed over and may come back with
}

// Loss is what was lost by one door.
type Loss struct {
	Lost      uint64 `json:"lost"`      // no destination has them
	Ambiguous uint64 `json:"ambiguous"` // one may have
}

// Sum is over all doors.
func (l *Losses) Sum() (sum Loss) {
	for _, loss := range l.Doors {
		sum.add(loss)
	}
	return sum
}

// losses are those of the daemons that nobody has read before this one. They never fall.
func (p *predecessors) losses() Losses {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := Losses{Doors: map[string]Loss{}}
	var by [doors]Loss
	for _, d := range p.dead {
		switch {
		case !d.isNew:
		case d.layout == nil:
			all.Unknown++
		default:
			d.countCycles(&by)
			connected := d.connected()
			if p.isAwaited() {
				all.Awaited += connected.Lost + connected.Ambiguous
			} else {
				by[Socket].add(connected)
			}
		}
	}
	for door := range by {
		all.Doors[Door(door).String()] = by[door]
	}
	return all
}

func (l *Loss) add(more Loss) { l.Lost, l.Ambiguous = l.Lost+more.Lost, l.Ambiguous+more.Ambiguous }

// countCycles counts what lies in cycles that are not settled.
func (d *Dead) countCycles(by *[doors]Loss) {
	for door := range by {
		by[door].Lost += d.layout.older[door].Load()
	}
	for i := range d.layout.cycles {
		c := &d.layout.cycles[i]
		for door := range by {
			by[door].add(lossIn(state(c.state.Load()&3), c.spans[door].Load()))
		}
	}
}

// connected is what clients had handed over that were connected, and have not come back.
func (d *Dead) connected() (loss Loss) {
	for i, r := range d.records {
		if d.isBack[i] {
			continue
		}
		before := r.settled.Load()
		for m := range r.ranges {
			if m.upTo > before && m.last >= m.first {
				loss.add(lossIn(d.layout.combined(m.first, m.last), m.upTo-before))
				before = m.upTo
			}
		}
	}
	return loss
}

func lossIn(s state, spans uint64) Loss {
	switch s {
	case settled:
		return Loss{}
	case open:
		return Loss{Lost: spans}
	}
	return Loss{Ambiguous: spans}
}
