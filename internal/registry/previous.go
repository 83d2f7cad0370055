package registry

import (
	"math"
	"slices"
)

// previous is the part of an interval's state that the next interval uses. It is immutable. It
// contains hashes with a secret seed instead of texts, so it retains no memory of the interval's
// registry.
type previous struct {
	classes   map[uint64]class           // classes of values, tag keys and keys that had a row and recurred, by hash
	origins   map[uint64]*previousOrigin // by hash
	keptTags  map[uint64]keptRows        // tags that keep a row, by the hash of their tag key
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

// snapshot returns the data of this interval that the next interval uses: its origins, and the labels and
// keys that were used at least twice. Batches that are still in this interval can admit more keys after
// the call. These are not included.
func (t *tables) snapshot() *previous {
	prev := &previous{
		classes:  make(map[uint64]class, len(t.labels.byID)+len(t.rows.byID)),
		origins:  make(map[uint64]*previousOrigin, len(t.origins.byID)),
		keptTags: map[uint64]keptRows{},
	}
	for i := range t.origins.byID {
		o := &t.origins.byID[i]
		isStable := !o.isNew && o.hash != commonHash
		prev.origins[o.hash] = &previousOrigin{isStable: isStable}
	}
	prev.addLabels(t, classStable) // used twice in each of two intervals: these keep their rows first
	prev.addLabels(t, classRecent) // as long as the limits allow it
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

// addLabel adds a label value that was used at least twice in the interval. The value keeps its row, a place
// within the limit on different values, if not too many values do. Otherwise it only precedes values that
// were not used twice.
func (p *previous) addLabel(t *tables, l *labelValue) {
	o := p.recordOf(t, l.scope.origin)
	if !p.mayKeep(t, o, l) {
		p.classes[l.hash] = classSeen
		return
	}
	p.classes[l.hash] = l.nextClass
	p.countKept(t, o, l)
	bytes := labelBytes(l)
	p.keptBytes.add(l.nextClass, bytes)
	o.kept.bytes += bytes
	o.recurred.bytes += bytes
}

// mayKeep reports whether a label value of the origin o can keep its row, a place within the limit on
// different values, in the next interval. All values of a label can keep maxKept rows, and masks, texts
// such as /users/{id}, at most a quarter of the limit. Tags have one limit per tag key.
func (p *previous) mayKeep(t *tables, o *previousOrigin, l *labelValue) bool {
	if l.isTag() {
		tagKey := &t.labels.byID[l.tagKey]
		keptTags := p.keptTags[tagKey.hash]
		return keptTags.total() < maxKept(tagKey.values.limit)
	}
	kind := l.scope.kind
	limit := t.limitOf(kind)
	isFull := o.labels[kind].total() >= maxKept(limit)
	isExcessMask := l.isMask && o.masks[kind] >= limit/4
	return !isFull && !isExcessMask
}

// countKept counts a label of the origin o as one that keeps its row in the next interval.
func (p *previous) countKept(t *tables, o *previousOrigin, l *labelValue) {
	if l.isTag() {
		tagKey := &t.labels.byID[l.tagKey]
		kept := p.keptTags[tagKey.hash]
		kept.add(l.nextClass, 1)
		p.keptTags[tagKey.hash] = kept
	} else {
		o.labels[l.scope.kind].add(l.nextClass, 1)
	}
	if l.isMask {
		o.masks[l.scope.kind]++
	}
}

// addRows adds the keys that were used at least twice in the interval, so that their rows, or counters, are
// kept in the next one. If there is not enough space for all, each origin can keep the same number, and an
// origin that needs less leaves the rest to the others. Keys that were used in the previous interval, too, come
// first.
func (p *previous) addRows(t *tables) {
	p.countRecurred(t)
	limitPerOrigin := p.limitPerOrigin(t.config)
	for _, class := range [...]class{classStable, classRecent} {
		for i := range t.rows.byID {
			row := &t.rows.byID[i]
			if row.recurred && row.nextClass == class {
				p.addRow(row, p.recordOf(t, row.encoded.origin()), limitPerOrigin)
			}
		}
	}
}

// countRecurred counts the keys of each origin that were used at least twice in the interval.
func (p *previous) countRecurred(t *tables) {
	for i := range t.rows.byID {
		row := &t.rows.byID[i]
		if row.recurred {
			o := p.recordOf(t, row.encoded.origin())
			o.recurred.add(rowBytes(row.encoded))
		}
	}
}

// addRow adds a key that recurred. The key keeps its row if its origin keeps less than the limit.
func (p *previous) addRow(row *row, o *previousOrigin, limit usage) {
	if !o.kept.isBelow(limit) {
		p.classes[row.hash] = classSeen
		return
	}
	bytes := rowBytes(row.encoded)
	p.classes[row.hash] = row.nextClass
	o.kept.add(bytes)
	p.keptRows.add(row.nextClass, 1)
	p.keptBytes.add(row.nextClass, bytes)
}

// recordOf returns the record of an origin, given the ID of the origin in the interval that ends.
func (p *previous) recordOf(t *tables, id OriginID) *previousOrigin {
	hash := t.origins.byID[id].hash
	return p.origins[hash]
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
