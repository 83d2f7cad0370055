package ingest

import (
	"fmt"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// enterCycle makes the connection ready for the cycle that it is in: at the
// first batch of an interval, its origin is admitted and its key table aged. It
// reports false where the interval has no room for the origin.
func (c *admission) enterCycle(cycle *aggregate.Cycle) bool {
	if c.interval == cycle.Interval()+1 {
		return true
	}
	origin, ok := cycle.AdmitOrigin(c.origin)
	if !ok {
		return false
	}
	c.keys.sweep(c.interval)
	c.originID, c.interval = origin, cycle.Interval()+1
	return true
}

// find resolves a snapshot's key. A hit is one hash and one comparison, or for
// a number one index.
func (c *admission) find(cycle *aggregate.Cycle, s *wire.Snapshot) (resolved, error) {
	var index int
	var hash uint64
	if s.Numbered {
		if index = c.keys.numbered(s.Number); index == none {
			return resolved{}, fmt.Errorf("resolve key: number %d is not defined on this connection", s.Number)
		}
	} else if index, hash = c.keys.find(s.Key); index == none {
		return c.miss(cycle, s.Key, hash)
	}
	known := &c.keys.known[index]
	if known.interval != c.interval {
		if _, err := c.decode(known.raw); err != nil {
			panic("BUG: a key that was decoded before can't be: " + err.Error())
		}
		known.resolved = c.resolveKey(cycle)
	}
	return known.resolved, nil
}

// misses are counted here and made known once a batch.
type misses struct {
	decoded  uint64
	uncached uint64
	cut      uint64
}

// countMisses makes the misses of a batch known.
func (c *admission) countMisses() {
	if c.misses == (misses{}) {
		return
	}
	counters := &c.server.counters
	counters.decoded.Add(c.misses.decoded)
	counters.uncached.Add(c.misses.uncached)
	counters.cut.Add(c.misses.cut)
	c.misses = misses{}
	c.key.Clear() // or it would keep the message's buffer
}

// miss decodes a key that the connection does not know, and remembers it if
// there is room.
func (c *admission) miss(cycle *aggregate.Cycle, raw []byte, hash uint64) (resolved, error) {
	if err := c.decodeNew(raw); err != nil {
		return resolved{}, err
	}
	to := c.resolveKey(cycle)
	if index := c.keys.add(raw, hash, keyCached); index != none {
		c.keys.known[index].resolved = to
	} else {
		c.misses.uncached++
	}
	return to, nil
}

// decodeNew decodes a key that comes for the first time, and counts it.
func (c *admission) decodeNew(raw []byte) error {
	changed, err := c.decode(raw)
	if err != nil {
		return err
	}
	c.misses.decoded++
	if changed {
		c.misses.cut++
	}
	return nil
}

// decode makes of a raw key what the statistics will show, in c.key. Its labels are
// parts of raw where they can be.
func (c *admission) decode(raw []byte) (changed bool, err error) {
	if err := wire.ReadKey(&c.key, raw); err != nil {
		return false, err
	}
	return c.normalize(&c.key), nil
}

// resolveKey admits the decoded key.
func (c *admission) resolveKey(cycle *aggregate.Cycle) resolved {
	a := cycle.Admit(c.originID, &c.key)
	return resolved{interval: c.interval, id: a.ID, hash: a.Hash, collapsed: a.Collapsed}
}

// define gives numbers to keys. It admits nothing: a key that is only defined
// costs no budget.
func (c *conn) define(body []byte) error {
	defer c.countMisses()
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
func (c *admission) learn(number uint32, raw []byte) error {
	if index, _ := c.keys.find(raw); index == none {
		if err := c.decodeNew(raw); err != nil {
			return &fault{FaultBadMessage, err}
		}
	}
	if c.keys.learn(number, raw) {
		return nil
	}
	if c.keys.worthSweeping() {
		c.keys.sweep(c.interval + 1)
		if c.keys.learn(number, raw) {
			return nil
		}
	}
	return faultf(FaultTooManyKeys, "define key: no room for more keys with numbers in %d bytes a connection and %d in all; see --max-key-bytes and --max-key-bytes-in-all",
		c.server.config.MaxKeyBytes, c.server.config.MaxKeyBytesInAll)
}
