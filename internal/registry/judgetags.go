package registry

import (
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// tags judges a list of tags.
func (j *judge) tags(list span.Label, tags []string) {
	count, anyBlocked := len(j.words), false
	j.words = append(j.words, 0)
	for i, tag := range tags {
		id, is := j.tag(list, tag, &j.tagKeys[list-span.FirstList][i%fewTags])
		switch is {
		case collapsed:
			j.collapsed |= setOf(list)
			anyBlocked = true
		case named:
			anyBlocked = anyBlocked || id == blockedID || id < freshID && j.registry.budgets.labels.at(id).isBlocked
		}
		j.words = append(j.words, id)
	}
	j.words = endTags(j.words, count, anyBlocked)
}

// tag judges a tag by the gate of its tag key, which may be the one that was found last.
func (j *judge) tag(list span.Label, tag string, last *found) (labelID, outcome) {
	if tag == span.Blocked {
		return blockedID, named
	}
	table := &j.registry.budgets.labels
	text, value := last.cut(tag)
	keyID, key := j.tagKey(list, text, last)
	if key == collapsed {
		j.lostBy.labels = append(j.lostBy.labels, list)
		return blockedID, collapsed
	}
	gate, into, where := firstSight, absentID, scopeOf(j.origin, list)
	if keyID < freshID {
		gate, into = table.at(keyID).state() // before the tag is searched for
		if id, ok := table.lookUp(where, tag); ok {
			return id, named
		}
	}
	if value == span.Blocked {
		return j.blockedTag(where, keyID, into, text), named
	}
	hash := textHash(tag)
	known, is := j.pass(gate, hash.identity(j.identity, int(list)))
	switch {
	case is == passed && j.gives:
		return j.giveTag(where, keyID, hash, tag, known), passed
	case is == passed:
		if keyID < freshID {
			j.freshBy.tags = append(j.freshBy.tags, table.at(keyID).tagKey)
		}
		return j.freshOne(hash), passed
	}
	j.lostBy.tags = append(j.lostBy.tags, table.at(keyID).tagKey)
	return j.blockedTag(where, keyID, into, text), collapsed
}

// giveTag gives a tag a number, and charges it to the budget of its tag key.
func (j *judge) giveTag(where scope, keyID labelID, hash hashedText, tag string, known sight) labelID {
	key := j.registry.budgets.labels.at(keyID).tagKey
	id := j.give(label{scope: where, hash: hash.in(where), text: tag, tagKey: key})
	j.registry.budgets.takeTag(key, known)
	return id
}

// cut cuts a tag behind its tag key, without a search where that is the one that was found
// last: a tag key has no colon.
func (f *found) cut(tag string) (key, value string) {
	if end := len(f.text); end > 0 && end < len(tag) && tag[end] == ':' && tag[:end] == f.text {
		return f.text, tag[end+1:]
	}
	key, value, _ = strings.Cut(tag, ":")
	return key, value
}

// tagKey judges a tag key by the gate of its list. One that is found is a tag key that came
// again, whatever becomes of the tag.
func (j *judge) tagKey(list span.Label, text string, last *found) (labelID, outcome) {
	if text == last.text && text != "" {
		return j.tagKeyAgain(last.id), named
	}
	gate, where, hash := j.gates.of(list), tagKeyScope(j.origin, list), textHash(text)
	table := &j.registry.budgets.labels
	if id, ok := table.find(where, hash.in(where), text); ok {
		*last = found{table.at(id).text, id}
		return j.tagKeyAgain(id), named
	}
	identity := hash.identity(j.identity, tagKeyKind(list))
	known, is := j.pass(gate, identity)
	switch {
	case is == collapsed:
		return blockedID, collapsed
	case !j.gives:
		j.freshBy.labels = append(j.freshBy.labels, list)
		return j.freshOne(hash), passed
	}
	b := &j.registry.budgets
	id := j.give(label{scope: where, hash: hash.in(where), text: text, tagKey: uint32(len(b.tagKeys))})
	b.tagKeys = append(b.tagKeys, tagKey{id: id, list: list, places: places{kept: j.registry.past.tagKeys[identity]}})
	b.raiseTag(uint32(len(b.tagKeys) - 1))
	j.bytes += tagKeyBytes * 5 / 4
	b.take(j.origin, list, known)
	j.gates = j.state().load()
	return id, passed
}

// tagKeyAgain notes that a tag key came again.
func (j *judge) tagKeyAgain(id labelID) labelID {
	if !j.isRetry && !j.gives {
		j.registry.repeats.labels.mark(id)
	}
	return id
}

// blockedTag is what a tag with this key becomes that gets no number of its own. It is
// charged to no budget.
func (j *judge) blockedTag(where scope, keyID, into labelID, key string) labelID {
	if into != absentID {
		return into
	}
	tag := key + ":" + span.Blocked
	hash := textHash(tag)
	if id, ok := j.registry.budgets.labels.find(where, hash.in(where), tag); ok {
		return id
	}
	if !j.gives {
		return j.freshOne(hash)
	}
	id := j.give(label{scope: where, hash: hash.in(where), text: tag, isBlocked: true})
	j.registry.budgets.labels.collapse(keyID, id)
	return id
}
