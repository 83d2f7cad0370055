package registry

import (
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

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

func (c *charge) add(added label) labelID {
	c.hasNew = true
	c.bytes += labelBytes(added.text)
	return c.labels.add(added)
}

func (c *charge) tags(l span.Label, tags []string) (ok bool) {
	count, anyBlocked := len(c.words), false
	c.words = append(c.words, 0)
	for _, tag := range tags {
		id, ok := c.tag(l, tag)
		if !ok {
			return false
		}
		anyBlocked = anyBlocked || c.labels.at(id).isBlocked
		c.words = append(c.words, id)
	}
	c.words = endTags(c.words, count, anyBlocked)
	return true
}

// tag charges a tag to the budget of its tag key, and returns its number.
func (c *charge) tag(l span.Label, tag string) (id labelID, ok bool) {
	if tag == span.Blocked {
		return blockedID, true
	}
	where := scopeOf(c.origin, l)
	hash := hashOf(where, tag)
	if id, ok = c.labels.find(where, hash, tag); ok {
		return id, true
	}
	text, value, _ := strings.Cut(tag, ":")
	key, ok := c.tagKey(l, text)
	switch {
	case !ok:
		return absentID, false
	case key == nil:
		c.collapsed |= setOf(l)
		c.lost[l]++
		return blockedID, true
	case value == span.Blocked:
		return c.blockedTag(where, text, key)
	case key.used >= c.limits[l]:
		c.collapsed |= setOf(l)
		key.lost++
		return c.blockedTag(where, text, key)
	case !c.hasRoom:
		key.lost++
		return absentID, false
	}
	key.used++
	id = c.add(label{scope: where, hash: hash, text: tag})
	c.publishCollapse(key)
	return id, true
}

// tagKey finds the budget of a tag key, which is nil where the origin has too many of
// them. It reports false where a new one would be needed and there is no row.
func (c *charge) tagKey(l span.Label, text string) (key *tagKey, ok bool) {
	where := tagKeyScope(c.origin, l)
	hash := hashOf(where, text)
	if id, known := c.labels.find(where, hash, text); known {
		return &c.tagKeys[c.labels.at(id).tagKey], true
	}
	switch {
	case c.used[c.origin][l] >= MaxTagKeys:
		return nil, true
	case !c.hasRoom:
		c.lost[l]++
		return nil, false
	}
	index := len(c.tagKeys)
	id := c.add(label{scope: where, hash: hash, text: text, tagKey: uint32(index)})
	c.use(c.origin, l, MaxTagKeys)
	c.tagKeys = append(c.tagKeys, tagKey{id: id, list: l})
	c.bytes += tagKeyBytes * 5 / 4
	return &c.tagKeys[index], true
}

// blockedTag is what a tag with this key becomes over its budget. It is charged to
// none.
func (c *charge) blockedTag(where scope, text string, key *tagKey) (id labelID, ok bool) {
	if key.blocked == absentID {
		if !c.hasRoom {
			return absentID, false
		}
		tag := text + ":" + span.Blocked
		key.blocked = c.add(label{scope: where, hash: hashOf(where, tag), text: tag, isBlocked: true})
		c.publishCollapse(key)
	}
	return key.blocked, true
}

// publishCollapse tells lookups that the budget of a tag key is used up, once there is
// what its tags become. It comes after the last tag of the budget is findable.
func (c *charge) publishCollapse(key *tagKey) {
	if key.blocked != absentID && key.used >= c.limits[key.list] {
		c.labels.collapse(key.id, key.blocked)
	}
}
