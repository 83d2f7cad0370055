package admit

import (
	"fmt"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// snapshot is a span of a batch, from a message of the native protocol or from a body that a receiver has
// counted.
type snapshot struct {
	wire.Snapshot               // Key is the fingerprint if there is a labeller
	labeller      span.Labeller // nil for the native protocol
	span          uint32        // its number for the labeller
}

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

// A snapshot's key is found in the first of these ways that fits. The table is searched by the snapshot's cache
// key: its fingerprint, or the bytes of its key in the native protocol.
//
//	way        when                                 cost                            what follows
//	numbered   the snapshot has a number for a key  an index                        nothing
//	predicted  it is the key that followed the      a comparison of bytes           nothing
//	           last one the last time
//	cached     the cache key is in the table        a hash, a comparison            it is predicted next
//	admitted   it is not, or this is the first      its labels are read,            the table takes it
//	           or second use in the interval        normalized and looked up in     if there is room
//	                                                the registry
//
// A key that lost a label to a budget, or has a mask, is put into the table at its second use, because each key
// of a flood comes once. A key of the table is admitted at its first two uses in an interval: so the registry
// knows that it recurs, and keeps its row in the next interval. An undefined number is malformed. A span that its
// receiver marked as ignored is not looked up, and a key that a rule ignores is cached like any other, and
// admitted to no registry. The result is valid until the next call.
func (f *finder) find(cycle *aggregate.Cycle, s *snapshot) (*resolved, error) {
	index, hash := none, uint64(0)
	switch {
	case s.Flags&span.Ignored != 0:
		f.uncached = resolved{id: ignoredKey}
		return &f.uncached, nil
	case s.Numbered:
		if index = f.keys.numbered(s.Number); index == none {
			if f.keys.isUnlabelled(s.Number) {
				f.uncached = f.resolved(cycle.AdmitUnlabelled(f.originID))
				return &f.uncached, nil
			}
			return nil, fmt.Errorf("resolve key: number %d is not defined on this connection", s.Number)
		}
	default:
		if index = f.keys.predict(s.Key); index != none {
			break
		}
		if index, hash = f.keys.find(s.Key); index == none {
			return f.findNew(cycle, s, hash)
		}
		f.keys.train(index)
	}
	known := &f.keys.known[index]
	if known.used != useIn(f.interval).second() {
		if err := f.admitKnown(cycle, s, known); err != nil {
			return nil, err
		}
	}
	return &known.resolved, nil
}

// findNew admits a key that is not in the table, and puts it there if it has a fingerprint and there is room.
func (f *finder) findNew(cycle *aggregate.Cycle, s *snapshot, hash uint64) (*resolved, error) {
	admission, changed, err := f.admit(cycle, s, s.Key)
	if err != nil {
		return nil, err
	}
	f.misses.count(changed)
	f.uncached = f.resolved(admission)
	if len(s.Key) == 0 || !admission.Whole() && !admission.Recurs {
		return &f.uncached, nil
	}
	index := f.keys.add(s.Key, hash, keyCached)
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
func (f *finder) admitKnown(cycle *aggregate.Cycle, s *snapshot, known *knownKey) error {
	isFirst, isSecond := known.used == 0, known.used.isIn(f.interval) // at 0 it was only defined
	admission, changed, err := f.admit(cycle, s, known.cacheKey)
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

// admit charges the key of a snapshot to its origin's budgets, unless its spans are ignored. native is the key in
// the native protocol, if the snapshot has no labeller.
func (f *finder) admit(
	cycle *aggregate.Cycle, s *snapshot, native []byte,
) (a registry.Admission, changed bool, err error) {
	key := &f.key
	if s.labeller != nil {
		key = s.labeller.Label(s.span)
	} else if err = wire.ReadKey(key, native); err != nil {
		return a, false, err //nolint:wrapcheck // the message's own words
	}
	changed = f.normalize(key)
	if f.shared.config.Ignore.Key(key) {
		return registry.Admission{ID: ignoredKey}, changed, nil
	}
	return cycle.Admit(f.originID, key), changed, nil
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
