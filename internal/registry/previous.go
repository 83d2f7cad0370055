package registry

import (
	"math"
	"slices"
)

// previous is the part of an interval's state that the next interval uses. It is immutable. It
// contains hashes with a secret seed instead of texts, so it retains no memory of the interval's
// registry.
type previous struct {
	classes   map[uint64]class           // classes of values, tag keys and keys that had a row and recurred, by identity
	origins   map[uint64]*previousOrigin // by identity
	keptTags  map[uint64]keptRows        // tags that keep a row, by the identity of their tag key
	keptRows  keptRows                   // keys that keep a row
	keptBytes keptRows                   // memory of these keys, and of all labels that keep a row
}

// previousOrigin is the part of an origin's state that the next interval uses.
type previousOrigin struct {
	isStable bool            // was also present in the interval before
	labels   [kinds]keptRows // values that keep a row, by kind of scope
	masks    [kinds]int      // number of these values that are masks
	recurred usage           // keys that recurred, and the memory of these and of all kept labels
	kept     usage           // part of recurred that keeps its rows
}

// snapshot returns the data of this interval that the next interval uses: its origins, and the labels
// and keys that recurred. Batches that are still in this interval can admit more keys after the call.
// These are not included.
func (t *tables) snapshot() *previous {
	prev := &previous{
		classes:  make(map[uint64]class, len(t.labels.byID)+len(t.rows.byID)),
		origins:  make(map[uint64]*previousOrigin, len(t.origins.byID)),
		keptTags: map[uint64]keptRows{},
	}
	for i := range t.origins.byID {
		o := &t.origins.byID[i]
		isStable := !o.isNew && o.identity != commonIdentity
		prev.origins[o.identity] = &previousOrigin{isStable: isStable}
	}
	prev.addLabels(t, classStable) // before the others, which may find no space
	prev.addLabels(t, classRecent)
	prev.addRows(t)
	return prev
}

// addLabels adds the labels that recurred and have the given class in the next interval.
func (p *previous) addLabels(t *tables, class class) {
	for i := range t.labels.byID {
		l := &t.labels.byID[i]
		if l.recurred && !l.isBlocked && l.nextClass == class {
			p.addLabel(t, l)
		}
	}
}

// addLabel adds a label that was used at least twice in the interval. The label keeps its row in the
// next interval, as long as not too many labels of the same kind do. Otherwise its class is classSeen.
func (p *previous) addLabel(t *tables, l *label) {
	o := p.origins[t.origins.byID[l.scope.origin].identity]
	if !p.hasSpaceFor(t, o, l) {
		p.classes[l.identity] = classSeen
		return
	}
	p.classes[l.identity] = l.nextClass
	p.countKept(t, o, l)
	bytes := labelBytes(l)
	p.keptBytes.add(l.nextClass, bytes)
	o.recurred.bytes += bytes
	o.kept.bytes += bytes
}

// hasSpaceFor reports whether the label l of the origin o can keep its row in the next interval. All values
// of a label, or of a tag key, together can keep maxKept rows. Masks, which are texts such as /users/{id},
// can keep at most a quarter of the limit.
func (p *previous) hasSpaceFor(t *tables, o *previousOrigin, l *label) bool {
	kind := l.scope.kind
	kept := o.labels[kind]
	limit := t.limitOf(kind)
	if l.isTag() {
		tagKey := &t.labels.byID[l.tagKey]
		kept = p.keptTags[tagKey.identity]
		limit = tagKey.values.limit
	}
	isFull := kept.total() >= maxKept(limit)
	isExcessMask := l.isMask && o.masks[kind] >= limit/4
	return !isFull && !isExcessMask
}

// countKept counts a label of the origin o as one that keeps its row in the next interval.
func (p *previous) countKept(t *tables, o *previousOrigin, l *label) {
	if l.isTag() {
		tagKey := &t.labels.byID[l.tagKey]
		kept := p.keptTags[tagKey.identity]
		kept.add(l.nextClass, 1)
		p.keptTags[tagKey.identity] = kept
	} else {
		o.labels[l.scope.kind].add(l.nextClass, 1)
	}
	if l.isMask {
		o.masks[l.scope.kind]++
	}
}

// addRows adds the keys that were used at least twice in the interval, so that their rows are kept in
// the next one. If there is not enough space for all, the origins keep equal shares, and an origin that
// needs less leaves the rest to the others.
func (p *previous) addRows(t *tables) {
	p.countRecurred(t)
	limitPerOrigin := p.limitPerOrigin(t.config)
	for _, class := range [...]class{classStable, classRecent} {
		for i := range t.rows.byID {
			row := &t.rows.byID[i]
			if row.recurred && row.nextClass == class {
				p.addRow(row, p.originOf(t, row), limitPerOrigin)
			}
		}
	}
}

// countRecurred counts the keys of each origin that were used at least twice in the interval.
func (p *previous) countRecurred(t *tables) {
	for i := range t.rows.byID {
		row := &t.rows.byID[i]
		if row.recurred {
			p.originOf(t, row).recurred.add(rowBytes(row.encoded))
		}
	}
}

// addRow adds a key that recurred. The key keeps its row if its origin keeps less than the limit.
func (p *previous) addRow(row *row, o *previousOrigin, limit usage) {
	if !o.kept.isBelow(limit) {
		p.classes[row.identity] = classSeen
		return
	}
	bytes := rowBytes(row.encoded)
	p.classes[row.identity] = row.nextClass
	o.kept.add(bytes)
	p.keptRows.add(row.nextClass, 1)
	p.keptBytes.add(row.nextClass, bytes)
}

// originOf returns the record of the origin of a row.
func (p *previous) originOf(t *tables, row *row) *previousOrigin {
	return p.origins[t.origins.byID[row.encoded[wordOrigin]].identity]
}

// limitPerOrigin returns the most rows and bytes that one origin can keep in the next interval.
func (p *previous) limitPerOrigin(config *Config) usage {
	var rows, bytes []int // of the keys that recurred, by origin
	for _, o := range p.origins {
		rows = append(rows, o.recurred.rows)
		bytes = append(bytes, o.recurred.bytes)
	}
	return usage{
		rows:  fairLevel(rows, maxKept(config.MaxAggregates)),
		bytes: fairLevel(bytes, maxKept(config.LabelBytes)),
	}
}

// fairLevel returns the cap to which large amounts must be cut, so that the sum of all amounts is at most
// limit (max-min fairness). For 1, 5 and 9 with the limit 9, the cap is 4: 1+4+4. It returns math.MaxInt
// if no amount must be cut. It sorts amounts.
func fairLevel(amounts []int, limit int) int {
	slices.Sort(amounts)
	for i, amount := range amounts {
		remaining := len(amounts) - i
		if amount > limit/remaining {
			return limit / remaining
		}
		limit -= amount
	}
	return math.MaxInt
}
