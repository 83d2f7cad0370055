package admit

import (
	"fmt"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// finder finds the keys of one publisher's spans. It owns the publisher's key table, with the
// numbers that stand for keys, and the scratch of the key at hand.
type finder struct {
	shared   *Publishers
	lang     string // of the origin
	originID registry.OriginID
	interval uint64 // number of the interval plus one that originID is valid in
	keys     *keyTable
	misses   misses

	key      span.Key // after each batch it holds nothing of its bytes
	uncached resolved // what a key is that has no place in the table
}

// begin begins an interval, in which the origin has that number.
func (f *finder) begin(interval uint64, origin registry.OriginID) {
	f.keys.sweep(f.interval)
	f.originID, f.interval = origin, interval
}

// A snapshot's key is found in the first of these ways that fits:
//
//	way        when                                 cost                            what follows
//	numbered   the snapshot has a number for a key  an index                        nothing
//	predicted  it is the key that followed the      a comparison of bytes           nothing
//	           last one the last time
//	cached     the key's bytes are in the table     a hash, a comparison            it is predicted next
//	admitted   they are not, or this is the first   its labels are read,            the table takes it
//	           or second use in the interval        normalized and looked up in     if there is room
//	                                                the registry
//
// A key that lost a label to a budget, or has a mask, is put into the table at its second use,
// because each key of a flood comes once. A key of the table is admitted at its first two uses
// in an interval: so the registry knows that it recurs, and keeps its row in the next interval.
// An undefined number is malformed. A span that its receiver has marked as ignored is looked up
// nowhere, and a key that a rule ignores is cached like any other, and admitted to no registry.
// The result is valid until the next call.
func (f *finder) find(cycle *aggregate.Cycle, s *wire.Snapshot) (*resolved, error) {
	index, hash := none, uint64(0)
	if s.Flags&span.Ignored != 0 {
		f.uncached = resolved{id: ignoredKey}
		return &f.uncached, nil
	}
	if s.Numbered {
		if index = f.keys.numbered(s.Number); index == none {
			if f.keys.isUnlabelled(s.Number) {
				f.uncached = f.resolved(cycle.AdmitUnlabelled(f.originID))
				return &f.uncached, nil
			}
			return nil, fmt.Errorf("resolve key: number %d is not defined on this connection", s.Number)
		}
	} else if index = f.keys.predict(s.Key); index == none {
		if index, hash = f.keys.find(s.Key); index == none {
			return f.findNew(cycle, s.Key, hash)
		}
		f.keys.train(index)
	}
	known := &f.keys.known[index]
	if known.used != useIn(f.interval).second() {
		if err := f.admitKnown(cycle, known); err != nil {
			return nil, err
		}
	}
	return &known.resolved, nil
}

// findNew admits a key that is not in the table, and puts it there if there is room.
func (f *finder) findNew(cycle *aggregate.Cycle, raw []byte, hash uint64) (*resolved, error) {
	admission, changed, err := f.admit(cycle, raw)
	if err != nil {
		return nil, err
	}
	f.misses.count(changed)
	f.uncached = f.resolved(admission)
	if !admission.Whole() && !admission.Recurs {
		return &f.uncached, nil
	}
	index := f.keys.add(raw, hash, keyCached)
	if index == none {
		f.misses.uncached++
		return &f.uncached, nil
	}
	known := &f.keys.known[index]
	if known.resolved = f.uncached; !admission.Whole() {
		known.used = known.used.second()
	}
	return &known.resolved, nil
}

// admitKnown admits a key of the table at its first and at its second use in an interval.
func (f *finder) admitKnown(cycle *aggregate.Cycle, known *knownKey) error {
	isFirst, isSecond := known.used == 0, known.used.isIn(f.interval) // at 0 it was only defined
	admission, changed, err := f.admit(cycle, known.raw)
	if err != nil {
		return err
	}
	if known.resolved = f.resolved(admission); isSecond {
		known.used = known.used.second()
	}
	if isFirst {
		f.misses.count(changed)
	}
	return nil
}

// admit charges a raw key to its origin's budgets, unless its spans are ignored.
func (f *finder) admit(
	cycle *aggregate.Cycle, raw []byte,
) (a registry.Admission, changed bool, err error) {
	if err = wire.ReadKey(&f.key, raw); err != nil {
		return a, false, err //nolint:wrapcheck // the message's own words
	}
	changed = f.normalize(&f.key)
	if f.shared.config.Ignore.Key(&f.key) {
		return registry.Admission{ID: ignoredKey}, changed, nil
	}
	return cycle.Admit(f.originID, &f.key), changed, nil
}

func (f *finder) resolved(a registry.Admission) resolved {
	return resolved{useIn(f.interval), a.ID, a.Hash, a.Collapsed}
}

// normalize gives a key the labels that the statistics will show. The order of its tags means
// nothing to a registry.
func (f *finder) normalize(k *span.Key) (changed bool) {
	changed = k.NormalizeLabels(f.lang)
	if most := f.shared.config.MaxResource; len(k.Resource) > most {
		k.Resource, changed = span.Shorten(k.Resource, most), true
	}
	return changed
}

// define makes a number below MaxKeys stand for a key, making room for both at the cost
// of keys that have none. If there is none left, the number is unlabelled. It admits
// nothing: a key that is only defined costs no budget. The error says what is malformed
// about the key.
func (f *finder) define(number uint32, raw []byte) error {
	index, hash := f.keys.find(raw)
	if index == none {
		defer f.key.Clear() // or it would keep the message's buffer
		if err := wire.ReadKey(&f.key, raw); err != nil {
			return err //nolint:wrapcheck // the message's own words
		}
	}
	if f.keys.assign(number, raw, index, hash) {
		return nil
	}
	if f.keys.worthSweeping() {
		f.keys.sweep(f.interval + 1)
		index, hash = f.keys.find(raw)
		if f.keys.assign(number, raw, index, hash) {
			return nil
		}
	}
	f.keys.disown(number)
	f.shared.books.unnumbered.Add(1)
	return nil
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

// countMisses adds the misses of a batch to the books.
func (f *finder) countMisses() {
	if f.misses == (misses{}) {
		return
	}
	books := &f.shared.books
	books.decoded.Add(f.misses.decoded)
	books.uncached.Add(f.misses.uncached)
	books.normalised.Add(f.misses.normalised)
	f.misses = misses{}
	f.key.Clear() // or it would keep the message's buffer
}
