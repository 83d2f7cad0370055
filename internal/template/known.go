package template

import (
	"iter"
	"sync/atomic"
)

// known are the templates that were learnt: a hash table from skeletons to levels. It is
// written under the lock of Templates and read by anybody. A slot's levels are there before
// its key. When it is full or holds what is not needed any more, another takes its place.
type known struct {
	slots  []slot // a power of two
	count  int
	scopes atomic.Uint64 // a bit for each, which others may share
}

type slot struct {
	key    atomic.Uint64 // 0 of an empty one
	varies atomic.Uint64 // levels
	used   atomic.Uint64 // the last interval in which it explained a value
	isNews atomic.Bool   // nobody was told yet
	scope  Scope
}

func newKnown(room int) *known {
	slots := 16
	for slots < 2*room {
		slots *= 2
	}
	return &known{slots: make([]slot, slots)}
}

// find returns the slot of a skeleton, or the empty one where it belongs.
func (k *known) find(key uint64) (s *slot, ok bool) {
	mask := uint64(len(k.slots) - 1)
	for i := key; ; i++ {
		s = &k.slots[i&mask]
		switch s.key.Load() {
		case key:
			return s, true
		case 0:
			return s, false
		}
	}
}

// put adds a skeleton that is not there. There must be room.
func (k *known) put(key uint64, scope Scope, varies levels, used uint64) *slot {
	s, _ := k.find(key)
	k.scopes.Or(scope.bit())
	s.scope = scope
	s.varies.Store(uint64(varies))
	s.used.Store(used)
	s.isNews.Store(true)
	s.key.Store(key)
	k.count++
	return s
}

// has says whether there may be a template of a scope. There is none, if the answer is no.
func (k *known) has(scope Scope) bool { return k.scopes.Load()&scope.bit() != 0 }

// bit is that of a scope among 64.
func (s Scope) bit() uint64 { return 1 << (mix(uint64(s.Origin), uint64(s.Label)) >> 58) }

func (k *known) isFull() bool { return 2*k.count >= len(k.slots) }

// without is a table of the templates that were used since an interval, with room for one
// more.
func (k *known) without(unusedSince uint64) *known {
	next := newKnown(k.count + 1)
	for s := range k.all() {
		if s.used.Load() >= unusedSince {
			next.put(s.key.Load(), s.scope, levels(s.varies.Load()), s.used.Load()).isNews.Store(s.isNews.Load())
		}
	}
	return next
}

// all are the slots that are taken.
func (k *known) all() iter.Seq[*slot] {
	return func(yield func(*slot) bool) {
		for i := range k.slots {
			if s := &k.slots[i]; s.key.Load() != 0 && !yield(s) {
				return
			}
		}
	}
}

func (k *known) ofOrigin(origin uint32) (count int) {
	for s := range k.all() {
		if s.scope.Origin == origin {
			count++
		}
	}
	return count
}

func (k *known) ofLabel(label uint8) (count int) {
	for s := range k.all() {
		if s.scope.Label == label {
			count++
		}
	}
	return count
}
