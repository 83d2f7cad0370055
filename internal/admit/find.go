package admit

import (
	"fmt"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// A snapshot's key is found in the first of these ways that fits:
//
//	way        when                                 cost                           what follows
//	numbered   the snapshot has a number for a key  an index                       nothing
//	predicted  it is the key that followed the      a comparison of bytes          nothing
//	           last one the last time
//	cached     the key's bytes are in the table     a hash, a comparison           it is predicted next
//	admitted   they are not, or the key is new to   its labels are read, mended    the table takes it
//	           the interval                         and looked up in the registry  if there is room
//
// A key that lost a label to a budget, or has a mask, is put into the table when it comes
// again: of a flood each key comes once. One that waits is admitted at each use. The second
// use of any other in an interval is told to the registry, which keeps a place for it in the
// next. A number that nobody defined is malformed. The answer is valid until the next one.
func (p *Publisher) find(cycle *aggregate.Cycle, s *wire.Snapshot) (*resolved, error) {
	index, hash := none, uint64(0)
	if s.Numbered {
		if index = p.keys.numbered(s.Number); index == none {
			if p.keys.isNameless(s.Number) {
				return p.nameless(cycle), nil
			}
			return nil, fmt.Errorf("resolve key: number %d is not defined on this connection", s.Number)
		}
	} else if index = p.keys.predict(s.Key); index == none {
		if index, hash = p.keys.find(s.Key); index == none {
			return p.findNew(cycle, s.Key, hash)
		}
		p.keys.train(index)
	}
	known := &p.keys.known[index]
	if known.used != useIn(p.interval).again() {
		if err := p.use(cycle, known); err != nil {
			return nil, err
		}
	}
	return &known.resolved, nil
}

// use uses a key of the table for the first or the second time in an interval, or one that
// waits.
func (p *Publisher) use(cycle *aggregate.Cycle, known *knownKey) error {
	switch {
	case !known.used.isIn(p.interval) || known.waits:
		return p.admitKnown(cycle, known)
	case !p.isRetry:
		known.used = known.used.again()
		cycle.Repeat(known.id)
	}
	return nil
}

// nameless is what a number is counted as whose key found no room.
func (p *Publisher) nameless(cycle *aggregate.Cycle) *resolved {
	admission := cycle.AdmitNameless(p.originID)
	p.uncached = p.resolved(admission)
	return &p.uncached
}

// findNew admits a key that is not in the table, and puts it there if there is room.
func (p *Publisher) findNew(cycle *aggregate.Cycle, raw []byte, hash uint64) (*resolved, error) {
	admission, changed, err := p.admit(cycle, raw)
	if err != nil {
		return nil, err
	}
	p.misses.count(changed)
	p.uncached = p.resolved(admission)
	if !admission.Whole() && !admission.CameAgain {
		return &p.uncached, nil
	}
	index := p.keys.add(raw, hash, keyCached)
	if index == none {
		p.misses.uncached++
		return &p.uncached, nil
	}
	known := &p.keys.known[index]
	known.resolved = p.uncached
	return &known.resolved, nil
}

// admitKnown admits a key of the table at its first use in an interval, and at each while it
// waits.
func (p *Publisher) admitKnown(cycle *aggregate.Cycle, known *knownKey) error {
	isFirst := known.used == 0 // it was defined, and not used
	admission, changed, err := p.admit(cycle, known.raw)
	if err != nil {
		return err
	}
	known.resolved = p.resolved(admission)
	if isFirst {
		p.misses.count(changed)
	}
	return nil
}

// admit charges a raw key to its origin's budgets.
func (p *Publisher) admit(
	cycle *aggregate.Cycle, raw []byte,
) (a registry.Admission, changed bool, err error) {
	if err = wire.ReadKey(&p.key, raw); err != nil {
		return a, false, err //nolint:wrapcheck // the message's own words
	}
	changed = p.mend(&p.mender, &p.key)
	return cycle.Admit(p.originID, &p.key, p.isRetry), changed, nil
}

func (p *Publisher) resolved(a registry.Admission) resolved {
	return resolved{useIn(p.interval), a.ID, a.Hash, a.Collapsed, a.Waits}
}

// mend makes of a key what the statistics will show, but for the order of its tags, which
// means nothing to a registry.
func (p *Publisher) mend(m *span.Mender, k *span.Key) (changed bool) {
	changed = m.Mend(k, p.origin.Lang)
	if most := p.shared.config.MaxResource; len(k.Resource) > most {
		k.Resource, changed = span.Shorten(k.Resource, most), true
	}
	return changed
}

// check says what is wrong with the bytes of a key.
func (p *Publisher) check(raw []byte) error {
	defer p.key.Clear() // or it would keep the message's buffer
	return wire.ReadKey(&p.key, raw)
}

// misses are the keys of a batch that were not cached.
type misses struct {
	decoded    uint64
	uncached   uint64
	normalised uint64
}

// count counts a key that came for the first time.
func (m *misses) count(changed bool) {
	m.decoded++
	if changed {
		m.normalised++
	}
}

// countMisses makes the misses of a batch known, once however often the batch is tried.
func (p *Publisher) countMisses() {
	if p.misses == (misses{}) {
		return
	}
	if books := &p.shared.books; !p.isRetry {
		books.decoded.Add(p.misses.decoded)
		books.uncached.Add(p.misses.uncached)
		books.normalised.Add(p.misses.normalised)
	}
	p.misses = misses{}
	p.key.Clear() // or it would keep the message's buffer
}
