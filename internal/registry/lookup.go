package registry

import "github.com/spanstatsd/spanstatsd/internal/span"

// Lookup admits, without the Registry's lock, the keys that change nothing: those whose
// every label was admitted before or collapses. In a flood these are nearly all keys, from
// the first seconds of an interval on. Of any other key it says that it doesn't know, and
// Registry.Admit must be asked. What it says is what Registry.Admit would have said, but of
// labels that it leaves unmended (mending.go). Without a Mender its keys must be mended, as the
// Registry's own.
//
// It needs no lock because what it reads only grows: it reads which budgets are used up,
// and then searches for labels. A label that it doesn't find after it saw its budget used
// up was not admitted, and never will be in this interval.
//
// A Lookup belongs to one publisher, who uses it inside a cycle of the interval.
type Lookup struct {
	judge
	lastRow foundRow
}

// foundRow is the row of a key that was found. In a flood, keys differ only in labels that
// collapse, and have the same row.
type foundRow struct {
	words     []uint32 // as they were judged; none before the first
	id        KeyID
	partition uint32
}

// Begin makes it one of an origin of the registry's interval. What it counted before must
// have been reported.
func (l *Lookup) Begin(r *Registry, origin OriginID) {
	l.begin(r, origin, r.identityOf(origin))
	l.lastRow.words = l.lastRow.words[:0]
	l.losses.clear()
	l.folder.beginInterval()
}

// MendWith has it mend labels by itself, for keys that are normal but for their labels, of which
// none is missing. It leaves in the key what it has mended.
func (l *Lookup) MendWith(mender *span.Mender, lang string) { l.mender, l.lang = mender, lang }

// Admit says what Registry.Admit would say of the key, or reports false where it doesn't
// know. Of the labels that were Numbered in the last key, those that it has again are not
// searched for.
func (l *Lookup) Admit(k *span.Key, again span.Labels, isRetry bool) (a Admission, ok bool) {
	l.isOnce = false
	return l.admit(k, again, isRetry)
}

// AdmitOnce is Admit for a key that probably never comes again: what collapses of it need not
// be mended.
func (l *Lookup) AdmitOnce(k *span.Key, again span.Labels) (a Admission, ok bool) {
	l.isOnce = true
	l.dice = l.dice*6364136223846793005 + 1442695040888963407
	return l.admit(k, again, false)
}

func (l *Lookup) admit(k *span.Key, again span.Labels, isRetry bool) (a Admission, ok bool) {
	l.isRetry, l.numbered, l.of = isRetry, again, k
	l.key(k)
	l.of = nil // or it would keep the message
	if l.findRow() {
		return l.found(l.lastRow.id, l.lastRow.partition), true
	}
	gate := l.gates.of(span.WholeKey).asks()
	if gate == firstSight {
		return Admission{}, false
	}
	identity := l.rowIdentity()
	if l.rowSight(identity, gate) >= gate {
		return Admission{}, false
	}
	return l.overflow(gate, identity), true
}

// AnyMended says whether a label of the last key was mended to another.
func (l *Lookup) AnyMended() bool { return l.anyMended }

// Numbered are the texts of the last key that have numbers of their own, which they keep
// until the interval ends.
func (l *Lookup) Numbered() span.Labels { return l.numbered }

// findRow makes lastRow the row with the key's words, and reports whether there is one. Where
// not, the words are in order.
func (l *Lookup) findRow() bool {
	last := &l.lastRow
	if equalWords(last.words, l.words) {
		return true
	}
	last.words = append(last.words[:0], l.words...)
	l.order()
	id, partition, ok := l.find()
	if !ok {
		last.words = last.words[:0]
		return false
	}
	last.id, last.partition = id, partition
	return true
}

// Report tells the Registry what keys have lost since the last report. It must come
// before the publisher leaves the cycle.
func (l *Lookup) Report() {
	l.folder.report()
	if l.losses.isEmpty() {
		return
	}
	l.registry.mu.Lock()
	defer l.registry.mu.Unlock()
	l.registry.budgets.report(&l.losses)
}
