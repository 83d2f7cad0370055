package registry

import (
	"math"
	"slices"
)

// previous is the part of an interval's state that the next interval uses. It is immutable. It
// contains hashes with a secret seed instead of texts, so it retains no memory of the interval's
// registry.
type previous struct {
	priorities map[uint64]rowPriority     // priorities of values, tag keys and keys that had a row and recurred, by hash
	origins    map[uint64]*previousOrigin // by hash
	keptTags   map[uint64]keptRows        // tags that keep a row, by the hash of their tag key
	keptRows   keptRows                   // keys that keep a row
	keptBytes  keptRows                   // memory of these keys, and of all labels that keep a row
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
		priorities: make(map[uint64]rowPriority, len(t.labels.byID)+len(t.rows.byID)),
		origins:    make(map[uint64]*previousOrigin, len(t.origins.byID)),
		keptTags:   map[uint64]keptRows{},
	}
	for i := range t.origins.byID {
		o := &t.origins.byID[i]
		isStable := !o.isNew && o.hash != commonHash
		prev.origins[o.hash] = &previousOrigin{isStable: isStable}
	}
	prev.addLabels(t, priorityStable) // used twice in each of two intervals: these keep their rows first
	prev.addLabels(t, priorityRecent) // as long as the limits allow it
	prev.addRows(t)
	return prev
}

// addLabels adds the labels that recurred and have the given priority in the next interval.
func (p *previous) addLabels(t *tables, priority rowPriority) {
	for i := range t.labels.byID {
		l := &t.labels.byID[i]
		if l.recurred && !l.isBlocked && l.nextPriority == priority {
			p.addLabel(t, l)
		}
	}
}

// addLabel adds a label value that was used at least twice in the interval. The value keeps its row, a place
// within the limit on different values, if not too many values do. Otherwise it only precedes values that
// were not used twice.
func (p *previous) addLabel(t *tables, l *labelValue) {
	origin := p.recordOf(t, l.scope.origin)
	if !p.mayKeep(t, origin, l) {
		p.priorities[l.hash] = prioritySeen
		return
	}
	p.priorities[l.hash] = l.nextPriority
	p.countKept(t, origin, l)
	bytes := labelBytes(l)
	p.keptBytes.add(l.nextPriority, bytes)
	origin.kept.bytes += bytes
	origin.recurred.bytes += bytes
}

// mayKeep reports whether a label value of the origin o can keep its row, a place within the limit on
// different values, in the next interval. All values of a label can keep maxKept rows, and masks, texts
// such as /users/{id}, at most a quarter of the limit. Tags have one limit per tag key.
func (p *previous) mayKeep(t *tables, o *previousOrigin, l *labelValue) bool {
	if l.isTag() {
		tagKey := &t.labels.byID[l.tagKey]
		keptTags := p.keptTags[tagKey.hash].total()
		return keptTags < maxKept(tagKey.values.limit)
	}
	kind := l.scope.kind
	limit := t.limitOf(kind)
	keptValues, keptMasks := o.labels[kind].total(), o.masks[kind]
	if l.isMask && keptMasks >= limit/4 {
		return false
	}
	return keptValues < maxKept(limit)
}

// countKept counts a label of the origin o as one that keeps its row in the next interval.
func (p *previous) countKept(t *tables, o *previousOrigin, l *labelValue) {
	if l.isTag() {
		tagKey := &t.labels.byID[l.tagKey]
		kept := p.keptTags[tagKey.hash]
		kept.add(l.nextPriority, 1)
		p.keptTags[tagKey.hash] = kept
	} else {
		o.labels[l.scope.kind].add(l.nextPriority, 1)
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
	for _, priority := range [...]rowPriority{priorityStable, priorityRecent} {
		for i := range t.rows.byID {
			row := &t.rows.byID[i]
			if row.recurred && row.nextPriority == priority {
				origin := p.recordOf(t, row.encoded.origin())
				p.addRow(row, origin, limitPerOrigin)
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
		p.priorities[row.hash] = prioritySeen
		return
	}
	bytes := rowBytes(row.encoded)
	p.priorities[row.hash] = row.nextPriority
	o.kept.add(bytes)
	p.keptRows.add(row.nextPriority, 1)
	p.keptBytes.add(row.nextPriority, bytes)
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
		rows:  fairCap(rows, maxKept(config.MaxAggregates)),
		bytes: fairCap(bytes, maxKept(config.LabelBytes)),
	}
}

// fairCap returns the cap to which large amounts must be cut, so that the sum of all amounts is at most
// limit (max-min fairness). For 1, 5 and 9 with the limit 9, the cap is 4: 1+4+4. It returns math.MaxInt
// if no amount must be cut. It sorts amounts.
func fairCap(amounts []int, limit int) int {
	slices.Sort(amounts)
	available := limit
	for i, amount := range amounts {
		remainingAmounts := len(amounts) - i
		equalShare := available / remainingAmounts
		if amount > equalShare {
			return equalShare
		}
		available -= amount
	}
	return math.MaxInt
}
