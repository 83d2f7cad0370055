package registry

import (
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// tags judges a list of tags.
func (j *judge) tags(list span.Label, tags []string) {
	j.words = append(j.words, uint32(len(tags)))
	j.anyBlocked[list-span.FirstList] = false
	for i, tag := range tags {
		j.words = append(j.words, j.tag(list, i, tag))
	}
}

// tag judges a tag, whose tag key may be the one that was found last in its place.
func (j *judge) tag(list span.Label, place int, tag string) labelID {
	if tag == span.Blocked {
		return j.blocked(list, blockedID)
	}
	last := &j.tagKeys[list-span.FirstList][place%fewTags]
	text, value, isLast := last.cut(tag)
	if !isLast && !j.findTagKey(list, text, last) {
		return j.tagOfNewKey(list, place, tag)
	}
	if !last.isMarked {
		last.isMarked = j.tagKeyAgain(last.id)
	}
	return j.tagOf(last.id, list, place, tag, text, value)
}

// tagOfNewKey judges a tag whose tag key has no number, once that is normal.
func (j *judge) tagOfNewKey(list span.Label, place int, tag string) labelID {
	if j.mustMend() {
		if normal := j.mender.Label(list, tag, j.lang); normal != tag {
			return j.mended(list, place, tag, normal)
		}
	}
	text, value, _ := strings.Cut(tag, ":")
	return j.tagOf(j.newTagKey(list, text), list, place, tag, text, value)
}

// tagOf judges a tag by the gate of its tag key.
func (j *judge) tagOf(keyID labelID, list span.Label, place int, tag, text, value string) labelID {
	switch {
	case keyID == blockedID:
		j.collapsed |= setOf(list)
		j.lostBy.labels = append(j.lostBy.labels, list)
		return j.blocked(list, blockedID)
	case value == span.Blocked:
		return j.blocked(list, j.blockedTag(list, keyID, text))
	}
	gate := height(firstSight)
	if keyID < freshID {
		table := &j.registry.budgets.labels
		gate = table.at(keyID).height() // before the tag is searched for
		if id, ok := table.lookUp(scopeOf(j.origin, list), tag); ok {
			return id
		}
	}
	if j.mustMend() {
		if id, ok := j.asItCame(list, place, keyID, gate, tag); ok {
			return id
		}
		if normal := j.mender.Label(list, tag, j.lang); normal != tag {
			return j.mended(list, place, tag, normal)
		}
	}
	if gate == shut {
		return j.loseTag(list, keyID)
	}
	return j.later(list, keyID, gate.asks(), len(j.words), tag)
}

// blocked notes that one of a list's tags has collapsed, here or in the tracer, into a label.
func (j *judge) blocked(list span.Label, into labelID) labelID {
	j.anyBlocked[list-span.FirstList] = true
	return into
}

// loseTag is what becomes of a tag that gets no number.
func (j *judge) loseTag(list span.Label, keyID labelID) labelID {
	key := j.registry.budgets.labels.at(keyID)
	j.collapsed |= setOf(list)
	j.lostBy.tags = append(j.lostBy.tags, key.tagKey)
	return j.blocked(list, j.blockedTag(list, keyID, key.text))
}

// giveTag gives a tag a number, and charges it to the budget of its tag key.
func (j *judge) giveTag(u *unnumbered, tag string) labelID {
	where, key := scopeOf(j.origin, u.label), j.registry.budgets.labels.at(u.tagKey).tagKey
	id := j.give(label{scope: where, hash: u.hash.in(where), text: tag, tagKey: key})
	j.registry.budgets.takeTag(key, u.known)
	return id
}

// cut cuts a tag behind its tag key, without a search where that is the one that was found
// last: a tag key has no colon.
func (f *found) cut(tag string) (key, value string, isLast bool) {
	if end := len(f.text); end > 0 && end < len(tag) && tag[end] == ':' && tag[:end] == f.text {
		return f.text, tag[end+1:], true
	}
	key, value, _ = strings.Cut(tag, ":")
	return key, value, key == f.text && key != ""
}

// findTagKey makes a tag key that has a number the one that was found last. It came again,
// whatever becomes of the tag.
func (j *judge) findTagKey(list span.Label, text string, last *found) bool {
	table := &j.registry.budgets.labels
	id, ok := table.lookUp(tagKeyScope(j.origin, list), text)
	if ok {
		*last = found{text: table.at(id).text, id: id}
	}
	return ok
}

// newTagKey judges a tag key that has no number by the gate of its list. One that does not pass
// is blockedID.
func (j *judge) newTagKey(list span.Label, text string) labelID {
	gate, where := j.gates.of(list), tagKeyScope(j.origin, list)
	if gate == shut {
		return blockedID
	}
	hash := textHash(text)
	identity := hash.identity(j.identity, tagKeyKind(list))
	at := j.registry.sights.spotOf(identity)
	known := j.sight(gate.asks(), j.came(gate.asks(), at), identity)
	switch {
	case !j.pass(gate.asks(), known, at):
		return blockedID
	case !j.gives:
		j.freshBy.labels = append(j.freshBy.labels, list)
		return j.freshOne(hash)
	}
	b := &j.registry.budgets
	id := j.give(label{scope: where, hash: hash.in(where), text: text, tagKey: uint32(len(b.tagKeys))})
	b.tagKeys = append(b.tagKeys, tagKey{id: id, list: list, places: places{kept: j.registry.past.tagKeys[identity]}})
	b.raiseTag(uint32(len(b.tagKeys) - 1))
	j.bytes += tagKeyBytes * 5 / 4
	b.take(j.origin, list, known)
	j.gates = j.state().load()
	return id
}

// tagKeyAgain notes that a tag key came again, unless it comes again by a retry or for a number,
// and reports whether it did.
func (j *judge) tagKeyAgain(id labelID) bool {
	if j.isRetry || j.gives {
		return false
	}
	j.registry.repeats.labels.mark(id)
	return true
}

// blockedTag is what a tag with this key becomes that gets no number of its own. It is
// charged to no budget.
func (j *judge) blockedTag(list span.Label, keyID labelID, key string) labelID {
	table, where := &j.registry.budgets.labels, scopeOf(j.origin, list)
	if keyID < freshID {
		if into := table.at(keyID).into(); into != absentID {
			return into
		}
	}
	tag := key + ":" + span.Blocked
	hash := textHash(tag)
	if id, ok := table.find(where, hash.in(where), tag); ok {
		return id
	}
	if !j.gives {
		return j.freshOne(hash)
	}
	id := j.give(label{scope: where, hash: hash.in(where), text: tag, isBlocked: true})
	table.collapse(keyID, id)
	return id
}
