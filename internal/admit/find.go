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
//	way        when                                 cost                            what follows
//	numbered   the snapshot has a number for a key  an index                        nothing
//	predicted  it is the key that followed the      a comparison of bytes           nothing
//	           last one the last time
//	cached     the key's bytes are in the table     a hash, a comparison            it is predicted the next time
//	admitted   they are not, or the key is new to   its labels are read, mended     it is put into the table, if
//	           the interval                         and looked up, and charged if   there is room
//	                                                there is anything to charge
//
// A key that lost a label to a budget, or has the name of a template, is put into the table when it comes again, or while
// the table is small: of a flood each key comes once. One that waits is looked up at each
// use. The second use of any other in an interval is told to the registry, which keeps a
// place for it in the next. A number that nobody defined is malformed. The answer is valid
// until the next one.
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
	isKept := p.keys.isSmall() || !p.isRetry && p.doorkeeper.hasSeen(hash) // whatever it loses
	changed, err := p.admit(cycle, raw, &p.uncached, !isKept && !p.isRetry)
	if err != nil {
		return nil, err
	}
	p.misses.count(changed)
	if (p.uncached.collapsed != 0 || p.uncached.folded) && !isKept {
		if !p.isRetry {
			p.doorkeeper.note(hash)
		}
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
	changed, err := p.admit(cycle, known.raw, &known.resolved, false)
	if isFirst {
		p.misses.count(changed)
	}
	return err
}

// admit charges a raw key to its origin's budgets. It takes no lock where that changes
// nothing in the interval's registry.
func (p *Publisher) admit(cycle *aggregate.Cycle, raw []byte, to *resolved, isOnce bool) (changed bool, err error) {
	again, err := p.reader.Read(&p.key, raw, p.kept)
	p.kept = 0
	if err != nil {
		return false, err //nolint:wrapcheck // the message's own words
	}
	mended, isNormal := p.beginMending(again)
	admission, ok := p.look(again, isOnce)
	p.kept = p.lookup.Numbered() &^ mended
	if !ok {
		if !isNormal {
			mended |= p.mender.MendLabels(again, &p.key, p.origin.Lang)
		}
		admission = cycle.Admit(p.originID, &p.key, p.isRetry)
	}
	*to = p.resolved(admission)
	return mended != 0 || p.lookup.AnyMended(), nil
}

// mostGrowth is how many bytes one becomes at most when a text is mended.
const mostGrowth = 3

// look has the lookup admit the key at hand.
func (p *Publisher) look(again span.Labels, isOnce bool) (registry.Admission, bool) {
	if isOnce {
		return p.lookup.AdmitOnce(&p.key, again)
	}
	return p.lookup.Admit(&p.key, again, p.isRetry)
}

// beginMending mends of the key what the lookup can't: all of it where a label is missing that
// none is without, or must be cut that need not be elsewhere.
func (p *Publisher) beginMending(normal span.Labels) (changed span.Labels, isNormal bool) {
	k := &p.key
	if k.Service == "" || k.Operation == "" || k.Resource == "" || len(k.Resource) > p.shared.config.MaxResource/mostGrowth {
		return p.mend(&p.mender, k, normal), true
	}
	return p.mender.Begin(k), false
}

// forgetKey lets go of the last key, or its message's buffer would be kept, and what is
// written there next be taken for it.
func (p *Publisher) forgetKey() {
	p.kept = 0
	p.reader.Forget()
}

func (p *Publisher) resolved(a registry.Admission) resolved {
	return resolved{useIn(p.interval), a.ID, a.Hash, a.Collapsed, a.Folded != 0, a.Waits}
}

// mend makes of a key what the statistics will show, but for the order of its tags, which
// means nothing to a registry. Some labels are known to be so already.
func (p *Publisher) mend(m *span.Mender, k *span.Key, normal span.Labels) (changed span.Labels) {
	changed = m.MendBut(normal, k, p.origin.Lang)
	if most := p.shared.config.MaxResource; len(k.Resource) > most {
		k.Resource, changed = span.Shorten(k.Resource, most), changed.With(span.LabelResource)
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

// countMisses ends the finding of a batch's keys: what labels they lost is charged, and
// misses are made known, once however often the batch is tried.
func (p *Publisher) countMisses() {
	p.lookup.Report()
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
