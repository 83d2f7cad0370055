package registry

import (
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Lookup admits, without the Registry's lock, the keys that change nothing: those whose
// every label is normal, and was admitted before or collapses. In a flood these are nearly
// all keys, from the first seconds of an interval on. Of any other key it says that it
// doesn't know; it must be normalised, and Registry.Admit asked. What it says is what
// Registry.Admit would have said.
//
// It needs no lock because what it reads only grows: it reads which budgets are used up,
// and then searches for labels. A label that it doesn't find after it saw its budget used
// up was not admitted, and never will be in this interval.
//
// A Lookup belongs to one publisher, who uses it inside a cycle of the interval.
type Lookup struct {
	registry    *Registry
	origin      OriginID
	maxResource int
	lost        losses                // not yet reported
	last        [span.FirstList]found // by label, what was found last
	lastRow     foundRow

	// Of the key that is being looked up:
	exhausted  Collapsed
	words      []uint32
	collapsed  Collapsed
	lostLabels []span.Label
	lostTags   []uint32 // by index of the tag key, where that has a budget
}

// found is a text that was found. Types and kinds repeat even in a flood.
type found struct {
	text string // the Registry's own
	id   labelID
}

// foundRow is the row of a key that was found. In a flood, keys differ only in labels that
// collapse, and have the same row.
type foundRow struct {
	words     []uint32 // none before the first
	id        KeyID
	partition uint32
}

// outcome is what a lookup knows of a label.
type outcome uint8

const (
	admitted  outcome = iota // it was admitted, or is absent, or was collapsed by the tracer
	collapsed                // its budget is used up, and it is not among those admitted
	noRoom                   // it is new, and there is no row for a key with a new label
	unknown                  // only Registry.Admit can tell
)

// Begin makes it one of an origin of the registry's interval, in which a longer resource
// than this is cut. What it counted before must have been reported.
func (l *Lookup) Begin(r *Registry, origin OriginID, maxResource int) {
	l.registry, l.origin, l.maxResource = r, origin, maxResource
	l.last = [span.FirstList]found{}
	l.lastRow.words = l.lastRow.words[:0]
	l.lost.clear()
}

// Admit says what Registry.Admit would say of the key, or reports false where it doesn't
// know.
func (l *Lookup) Admit(k *span.Key) (a Admission, ok bool) {
	if len(k.Resource) > l.maxResource || k.TraceRoot > span.TraceRootFalse {
		return Admission{}, false
	}
	l.exhausted = l.state().load() // before anything is searched for
	l.words = beginWords(l.words[:0], l.origin, k)
	l.collapsed, l.lostLabels, l.lostTags = 0, l.lostLabels[:0], l.lostTags[:0]
	switch l.labels(k) {
	case unknown:
		return Admission{}, false
	case noRoom:
		return l.overflow(), true
	}
	switch {
	case l.findRow():
		l.count()
		return Admission{ID: l.lastRow.id, Hash: l.lastRow.partition, Collapsed: l.collapsed}, true
	case l.exhausted.Has(span.WholeKey):
		return l.overflow(), true
	}
	return Admission{}, false
}

// findRow makes lastRow the row with the key's words, and reports whether there is one.
func (l *Lookup) findRow() bool {
	last := &l.lastRow
	if equalWords(last.words, l.words) {
		return true
	}
	id, partition, ok := l.registry.rows.find(hashWords(l.words), l.words)
	if ok {
		*last = foundRow{append(last.words[:0], l.words...), id, partition}
	}
	return ok
}

// state is what is published of the origin's budgets.
func (l *Lookup) state() *exhausted { return &l.registry.budgets.exhausted[l.origin] }

// overflow is the admission of a key that finds no row.
func (l *Lookup) overflow() Admission {
	l.count()
	return l.state().overflow
}

// labels appends the numbers of all labels to the key's words, up to the first that
// decides about the key.
func (l *Lookup) labels(k *span.Key) outcome {
	for label := range span.FirstList {
		text := *k.Text(label)
		if text == "" && !label.IsRequired() {
			l.words = append(l.words, absentID)
			continue
		}
		id, is := l.text(label, text)
		if is != admitted {
			l.lostLabels = append(l.lostLabels, label)
		}
		switch is {
		case collapsed:
			l.collapsed |= setOf(label)
		case noRoom, unknown:
			return is
		}
		l.words = append(l.words, id)
	}
	for label := span.FirstList; label < span.WholeKey; label++ {
		if is := l.tags(label, *k.Tags(label)); is > collapsed {
			return is
		}
	}
	return admitted
}

// text finds the number of a text, unless that is absent and may be. One that is found is
// normal, as all are that were admitted.
func (l *Lookup) text(label span.Label, text string) (labelID, outcome) {
	last, isExhausted := &l.last[label], l.exhausted.Has(label)
	if text == "" {
		return absentID, unknown
	}
	if !isExhausted && text == last.text {
		return last.id, admitted
	}
	table, where := &l.registry.budgets.labels, scopeOf(l.origin, label)
	if id, ok := table.lookUp(where, text); ok {
		*last = found{table.at(id).text, id}
		return id, admitted
	}
	switch {
	case !label.IsNormal(text):
		return absentID, unknown
	case text == span.Blocked:
		return blockedID, admitted
	case isExhausted:
		return blockedID, collapsed
	}
	return absentID, l.newLabel()
}

// newLabel is the outcome of a label that has a budget and was not admitted yet.
func (l *Lookup) newLabel() outcome {
	if l.exhausted.Has(span.WholeKey) {
		return noRoom
	}
	return unknown
}

// count counts what the key has lost, for Report.
func (l *Lookup) count() {
	for _, label := range l.lostLabels {
		l.lost.labels[label]++
	}
	for _, tagKey := range l.lostTags {
		l.lost.addTag(tagKey)
	}
}

// Report tells the Registry what keys have lost since the last report. It must come
// before the publisher leaves the cycle.
func (l *Lookup) Report() {
	if l.lost.isEmpty() {
		return
	}
	l.registry.mu.Lock()
	defer l.registry.mu.Unlock()
	l.registry.budgets.report(&l.lost)
	l.lost.clear()
}

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
