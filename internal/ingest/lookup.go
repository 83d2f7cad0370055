package ingest

import (
	"fmt"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// enterCycle makes the publisher ready for the cycle that it is in: at the
// first batch of an interval, its origin is admitted and its key table aged. It
// reports false where the interval has no room for the origin.
func (a *admission) enterCycle(cycle *aggregate.Cycle) bool {
	if a.interval == cycle.Interval()+1 {
		return true
	}
	origin, ok := cycle.AdmitOrigin(a.origin)
	if !ok {
		return false
	}
	a.keys.sweep(a.interval)
	a.originID, a.interval = origin, cycle.Interval()+1
	a.glance.Begin(cycle.Registry(), origin)
	return true
}

// lookUp resolves a snapshot's key by its bytes or, where it has none, by its number. The
// answer is valid until the next.
func (a *admission) lookUp(cycle *aggregate.Cycle, key []byte, number uint32) (*resolved, error) {
	switch {
	case key == nil:
		index := a.keys.numbered(number)
		if index == none {
			return nil, fmt.Errorf("resolve key: number %d is not defined on this connection", number)
		}
		return a.use(cycle, index)
	case !a.keys.isWorthLooking():
		return a.miss(cycle, key)
	}
	index, hash := a.keys.find(key)
	return a.sought(cycle, key, index, hash)
}

// sought resolves a key that was found, or was not.
func (a *admission) sought(cycle *aggregate.Cycle, key []byte, index int, hash uint64) (*resolved, error) {
	if index == none {
		return a.remember(cycle, key, hash)
	}
	a.keys.came(index)
	return a.use(cycle, index)
}

// use resolves a known key: once an interval there is something to do for it.
func (a *admission) use(cycle *aggregate.Cycle, index int) (*resolved, error) {
	known := &a.keys.known[index]
	if known.interval != a.interval {
		first := known.interval == 0 // it was defined, and not used
		changed, err := a.resolveRaw(cycle, known.raw, &known.resolved)
		if err != nil {
			panic("BUG: a key that was read before can't be: " + err.Error())
		}
		if first {
			a.misses.count(changed)
		}
	}
	return &known.resolved, nil
}

// misses are counted here and made known once a batch.
type misses struct {
	decoded  uint64
	uncached uint64
	cut      uint64
}

// count counts a key that came for the first time.
func (m *misses) count(changed bool) {
	m.decoded++
	if changed {
		m.cut++
	}
}

// countMisses makes the misses of a batch known, once however often it is tried.
func (a *admission) countMisses() {
	if a.misses == (misses{}) {
		return
	}
	if counters := &a.server.counters; !a.wasTried {
		counters.decoded.Add(a.misses.decoded)
		counters.uncached.Add(a.misses.uncached)
		counters.cut.Add(a.misses.cut)
	}
	a.misses = misses{}
	a.key.Clear() // or it would keep the message's buffer
}

// miss resolves a key that the connection does not know.
func (a *admission) miss(cycle *aggregate.Cycle, raw []byte) (*resolved, error) {
	changed, err := a.resolveRaw(cycle, raw, &a.once)
	if err != nil {
		return nil, err
	}
	a.misses.count(changed)
	if a.once.collapsed == 0 {
		a.keys.missed = 0 // it is none of a flood
	}
	return &a.once, nil
}

// remember is miss, and remembers the key if there is room, and it came before or is one
// of the few that lose nothing. It has not come before for being tried again.
func (a *admission) remember(cycle *aggregate.Cycle, raw []byte, hash uint64) (*resolved, error) {
	to, err := a.miss(cycle, raw)
	if err != nil || to.collapsed != 0 && (a.wasTried || !a.keys.again(hash)) {
		return to, err
	}
	if index := a.keys.add(raw, hash, keyCached); index != none {
		a.keys.known[index].resolved = *to
	} else {
		a.misses.uncached++
	}
	return to, nil
}

// check says what is wrong with the bytes of a key.
func (a *admission) check(raw []byte) error {
	if wire.OutlineKey(&a.outline, raw) {
		return nil
	}
	return wire.ReadKey(&a.key, raw)
}

// decode makes of a raw key what the statistics will show, in c.key. Its labels are
// parts of raw where they can be.
func (a *admission) decode(raw []byte) (changed bool, err error) {
	if err := wire.ReadKey(&a.key, raw); err != nil {
		return false, err
	}
	return a.normalize(&a.key), nil
}

// resolveRaw admits a raw key: at a glance, if that is enough.
func (a *admission) resolveRaw(cycle *aggregate.Cycle, raw []byte, to *resolved) (changed bool, err error) {
	var admitted registry.Admission
	ok := wire.OutlineKey(&a.outline, raw)
	if ok {
		admitted, ok = a.glance.Admit(raw, &a.outline, a.server.config.MaxResource)
	}
	if !ok {
		if changed, err = a.decode(raw); err != nil {
			return false, err
		}
		admitted = cycle.Admit(a.originID, &a.key)
	}
	to.interval, to.id, to.hash, to.collapsed = a.interval, admitted.ID, admitted.Hash, admitted.Collapsed
	return changed, nil
}

// define gives numbers to keys. It admits nothing: a key that is only defined
// costs no budget.
func (c *conn) define(body []byte) error {
	defer c.key.Clear() // or it would keep the message's buffer
	walker, err := wire.WalkDefine(body)
	if err != nil {
		return &fault{FaultBadMessage, err}
	}
	for {
		number, raw, ok := walker.Next()
		if !ok {
			break
		}
		if int64(number) >= int64(c.server.config.MaxKeys) {
			return faultf(FaultBadMessage, "define key: number %d is not below the %d of the welcome", number, c.server.config.MaxKeys)
		}
		if err := c.learn(number, raw); err != nil {
			return err
		}
	}
	if err := walker.Err(); err != nil {
		return &fault{FaultBadMessage, err}
	}
	return nil
}

// learn makes a number stand for a key, making room for both at the cost of keys
// that have none.
func (a *admission) learn(number uint32, raw []byte) error {
	index, hash := a.keys.find(raw)
	if index == none {
		if err := a.check(raw); err != nil {
			return &fault{FaultBadMessage, err}
		}
	}
	if a.keys.learnAt(number, raw, index, hash) {
		return nil
	}
	if a.keys.worthSweeping() {
		a.keys.sweep(a.interval + 1)
		if a.keys.learn(number, raw) {
			return nil
		}
	}
	return faultf(FaultTooManyKeys, "define key: no room for more keys with numbers in %d bytes a connection and %d in all; see --max-key-bytes and --max-key-bytes-in-all",
		a.server.config.MaxKeyBytes, a.server.config.MaxKeyBytesInAll)
}
