package registry

import (
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// tags charges a list of tags.
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
