package ingest

import (
	"fmt"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// enterCycle makes the connection ready for the cycle that it is in: at the
// first batch of one, its origin is admitted and its key table aged. It reports
// false where the cycle has no room for the origin.
func (c *admission) enterCycle(cycle *aggregate.Cycle) bool {
	if c.cycle == cycle.Number()+1 {
		return true
	}
	origin, ok := cycle.AdmitOrigin(c.origin)
	if !ok {
		return false
	}
	c.keys.sweep(c.cycle)
	c.originID, c.cycle = origin, cycle.Number()+1
	return true
}

// find resolves a snapshot's key. A hit is one hash and one comparison, or for
// a number one index.
func (c *admission) find(cycle *aggregate.Cycle, s *wire.Snapshot) (resolved, error) {
	var index int
	if s.Numbered {
		if index = c.keys.numbered(s.Number); index == none {
			return resolved{}, fmt.Errorf("resolve key: number %d is not defined on this connection", s.Number)
		}
	} else if index = c.keys.find(s.Key); index == none {
		return c.miss(cycle, s.Key)
	}
	known := &c.keys.known[index]
	if known.cycle != c.cycle {
		known.resolved = c.readmit(cycle, known)
	}
	return known.resolved, nil
}

// miss decodes a key that the connection does not know, and remembers it if
// there is room.
func (c *admission) miss(cycle *aggregate.Cycle, raw []byte) (resolved, error) {
	key, err := c.decode(raw)
	if err != nil {
		return resolved{}, err
	}
	to := c.readmit(cycle, &knownKey{key: key})
	if index := c.keys.add(raw, key); index != none {
		c.keys.known[index].resolved = to
	} else {
		c.server.counters.uncached.Add(1)
	}
	return to, nil
}

// decode makes of a raw key what the statistics will show.
func (c *admission) decode(raw []byte) (span.Key, error) {
	key, err := wire.DecodeKey(raw)
	if err != nil {
		return span.Key{}, err
	}
	c.server.counters.decoded.Add(1)
	changed := key.Normalize(c.origin.Lang)
	if most := c.server.config.MaxResource; len(key.Resource) > most {
		key.Resource, changed = span.Text(key.Resource, most), true
	}
	if changed {
		c.server.counters.cut.Add(1)
	}
	return key, nil
}

func (c *admission) readmit(cycle *aggregate.Cycle, known *knownKey) resolved {
	a := cycle.Admit(c.originID, &known.key)
	return resolved{cycle: c.cycle, id: a.ID, hash: a.Hash, collapsed: a.Collapsed}
}

// define gives numbers to keys. It admits nothing: a key that is only defined
// costs no budget.
func (c *conn) define(body []byte) error {
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
		index, err := c.learn(raw)
		if err != nil {
			return err
		}
		c.keys.define(number, index)
	}
	if err := walker.Err(); err != nil {
		return &fault{FaultBadMessage, err}
	}
	return nil
}

// learn returns the index of a key that is about to get a number, making room
// for it at the cost of keys that have none.
func (c *admission) learn(raw []byte) (int, error) {
	if index := c.keys.find(raw); index != none {
		return index, nil
	}
	key, err := c.decode(raw)
	if err != nil {
		return none, &fault{FaultBadMessage, err}
	}
	if index := c.keys.add(raw, key); index != none {
		return index, nil
	}
	if c.keys.worthSweeping() {
		c.keys.sweep(c.cycle + 1)
		if index := c.keys.add(raw, key); index != none {
			return index, nil
		}
	}
	return none, faultf(FaultTooManyKeys, "define key: no room for more keys with numbers in %d bytes a connection and %d in all; see --max-key-bytes and --max-key-bytes-in-all",
		c.server.config.MaxKeyBytes, c.server.config.MaxKeyBytesInAll)
}
