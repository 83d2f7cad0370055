package running

import (
	"math"

	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// earlier says what became of the spans of the connection with an id of a daemon of that name. Where its file
// can't be read any of them may have been delivered.
func (p *predecessors) earlier(name string, id uint64) []uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range p.dead {
		if d.name != name {
			continue
		}
		if d.layout == nil {
			return wire.AppendOutcome(wire.AppendOutcome(nil, 0, wire.Settled), math.MaxInt64, wire.Doubtful)
		}
		for i := range d.records {
			if d.records[i].id.Load() == id {
				d.isBack[i] = d.isBack[i] || p.isAwaited() // else it counts as lost already
				return d.outcomes(d.records[i])
			}
		}
	}
	return nil
}

// outcomes are those of a connection's spans. What a damaged file says out of order is left out.
func (d *Dead) outcomes(r *record) []uint64 {
	at := r.settled.Load()
	list := wire.AppendOutcome(nil, at, wire.Settled)
	for m := range r.ranges {
		if m.upTo <= at || m.last < m.first {
			continue
		}
		at = m.upTo
		list = wire.AppendOutcome(list, at, outcomeOf[d.layout.combined(m.first, m.last)])
	}
	return list
}

var outcomeOf = [...]wire.Outcome{
	open: wire.Again, doubtful: wire.Doubtful, settled: wire.Settled, 3: wire.Doubtful,
}
