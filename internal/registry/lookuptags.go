package registry

import (
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// tags appends the numbers of a list of tags to the key's words.
func (l *Lookup) tags(list span.Label, tags []string) outcome {
	if len(tags) > list.MaxTags() {
		return unknown
	}
	count, anyBlocked := len(l.words), false
	l.words = append(l.words, 0)
	for _, tag := range tags {
		id, is := l.tag(list, tag)
		if is > collapsed {
			return is
		}
		if is == collapsed {
			l.collapsed |= setOf(list)
		}
		anyBlocked = anyBlocked || l.registry.budgets.labels.at(id).isBlocked
		l.words = append(l.words, id)
	}
	l.words = endTags(l.words, count, anyBlocked)
	return admitted
}

// tag finds the number of a tag.
func (l *Lookup) tag(list span.Label, tag string) (labelID, outcome) {
	switch {
	case tag == span.Blocked:
		return blockedID, admitted
	case !list.IsNormal(tag):
		return absentID, unknown
	}
	table := &l.registry.budgets.labels
	text, value, _ := strings.Cut(tag, ":")
	keys := tagKeyScope(l.origin, list)
	keyID, hasKey := table.find(keys, hashOf(keys, text), text)
	key := table.at(keyID)
	into := key.collapsed() // before the tag is searched for
	where := scopeOf(l.origin, list)
	if id, ok := table.lookUp(where, tag); ok {
		return id, admitted
	}
	switch {
	case hasKey && value == span.Blocked && into == absentID:
		return absentID, unknown
	case hasKey:
		l.lostTags = append(l.lostTags, key.tagKey)
	default:
		l.lostLabels = append(l.lostLabels, list)
	}
	switch {
	case into != absentID:
		return into, collapsed
	case !hasKey && l.exhausted.Has(list):
		return blockedID, collapsed
	}
	return absentID, l.newLabel()
}
