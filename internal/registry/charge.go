package registry

import "github.com/spanstatsd/spanstatsd/internal/span"

// charge is one key on its way to a number: each label is charged to its budget and
// becomes a number itself. A value over its budget becomes blocked before the key
// is looked up, so all such spans meet in one aggregate. A value that was admitted
// earlier in the interval keeps its name.
//
// A new value is charged only where there is a row for a new key: a key that finds
// the table full costs no budget and no memory. Where there is one, a key with a
// new value will take it, since no other key can have that value. So nothing ever
// has to be taken back.
type charge struct {
	*budgets
	origin    OriginID
	hasRoom   bool     // there is a row for a new key
	words     []uint32 // of the key
	hasNew    bool     // a value was charged
	bytes     int      // of the new values
	collapsed Collapsed
}

// begin makes it one of a new key.
func (c *charge) begin(origin OriginID, hasRoom bool) {
	c.origin, c.hasRoom, c.hasNew, c.bytes, c.collapsed = origin, hasRoom, false, 0, 0
}

// key charges a whole key. It reports false as soon as it meets a value that is
// new and that there is no row for.
func (c *charge) key(k *span.Key) (ok bool) {
	c.words = beginWords(c.words[:0], c.origin, k)
	for l := range span.FirstList {
		id, ok := c.text(l, *k.Text(l))
		if !ok {
			return false
		}
		c.words = append(c.words, id)
	}
	for l := span.FirstList; l < span.WholeKey; l++ {
		if !c.tags(l, *k.Tags(l)) {
			return false
		}
	}
	return true
}

// text charges a text and returns its number.
func (c *charge) text(l span.Label, text string) (id labelID, ok bool) {
	if text == "" {
		return absentID, true
	}
	where := scopeOf(c.origin, l)
	hash := hashOf(where, text)
	if id, ok = c.labels.find(where, hash, text); ok {
		return id, true
	}
	switch {
	case text == span.Blocked:
		// The tracer has budgets too. What it collapsed meets what we do.
		return blockedID, true
	case c.used[c.origin][l] >= c.limits[l]:
		c.collapsed |= setOf(l)
		c.lost[l]++
		return blockedID, true
	case !c.hasRoom:
		c.lost[l]++
		return absentID, false
	}
	id = c.add(label{scope: where, hash: hash, text: text})
	c.use(c.origin, l, c.limits[l])
	return id, true
}

// add numbers a text that is new.
func (c *charge) add(added label) labelID {
	c.hasNew = true
	c.bytes += labelBytes(added.text)
	return c.labels.add(added)
}
