package registry

import (
	"math"
	"slices"
)

// previous is the part of an interval's state that the next interval uses. It is immutable. It
// contains hashes with a secret seed instead of texts, so it retains no memory of the interval's
// registry.
type previous struct {
	priorities map[uint64]slotPriority    // priorities of values, tag keys and keys that had a slot and recurred, by hash
	origins    map[uint64]*previousOrigin // by hash
	keptTags   map[uint64]*keptCount      // tags that keep their slots, by the hash of their tag key
	keptRows   keptCount                  // keys that keep their rows
	keptBytes  keptCount                  // memory of these keys, and of all labels that keep their slots
}

// previousOrigin is the part of an origin's state that the next interval uses.
type previousOrigin struct {
	isStable  bool                  // was also present in the interval before
	labels    [endOfKinds]keptCount // values that keep their slots, by kind of scope
	masks     [endOfKinds]int       // number of these values that are masks
	requested usage                 // rows and memory to keep all keys that recurred, and the labels that keep their slots
	kept      usage                 // part of requested that limitPerOrigin allows
}

// keepsRows reports whether keys of the origin keep their rows.
func (o *previousOrigin) keepsRows() bool { return o.kept.rows > 0 }

// snapshot returns the data of this interval that the next interval uses: its origins, and the labels and
// keys that were used at least twice. Batches that are still in this interval can admit more keys after
// the call. These are not included.
func (t *tables) snapshot() *previous {
	prev := &previous{
		priorities: make(map[uint64]slotPriority, len(t.labels.byID)+len(t.rows.byID)),
		origins:    make(map[uint64]*previousOrigin, len(t.origins.byID)),
		keptTags:   map[uint64]*keptCount{},
	}
	for i := range t.origins.byID {
		o := &t.origins.byID[i]
		isCommon := o.hash == commonHash
		isStable := !o.isNew && !isCommon // the common origin exists in addition to those with slots
		prev.origins[o.hash] = &previousOrigin{isStable: isStable}
	}
	// The labels that are added first keep their slots if the limits do not allow all to keep them.
	prev.addLabelsWithPriority(t, priorityStable)
	prev.addLabelsWithPriority(t, priorityRecent)
	prev.addRows(t)
	return prev
}

// addLabelsWithPriority adds the labels that recurred and have the given priority in the next interval.
func (p *previous) addLabelsWithPriority(t *tables, priority slotPriority) {
	for i := range t.labels.byID {
		l := &t.labels.byID[i]
		if l.recurred && !l.isBlocked && l.nextPriority == priority {
			p.addLabel(t, l)
		}
	}
}

// addLabel adds a label value that recurred, which means that it was used at least twice in this interval. If
// the limits allow it, the value keeps its slot. Otherwise it only gets prioritySeen in the next interval.
func (p *previous) addLabel(t *tables, l *labelValue) {
	origin := p.recordOf(t, l.scope.origin)
	keptValues := p.keptCountOf(t, l)
	keptMasks := &origin.masks[l.scope.kind]
	limit := t.limitOfLabel(l)
	hasTooManyMasks := l.isOnlyMask && *keptMasks >= maxMasks(limit)
	if hasTooManyMasks || keptValues.total() >= maxKept(limit) {
		p.priorities[l.hash] = prioritySeen
		return
	}
	p.priorities[l.hash] = l.nextPriority
	keptValues.add(l.nextPriority, 1)
	if l.isOnlyMask {
		*keptMasks++
	}
	bytes := labelBytes(l)
	p.keptBytes.add(l.nextPriority, bytes)
	origin.requested.bytes += bytes
	origin.kept.bytes += bytes // unlike a key, a label keeps all that it requests
}

// keptCountOf returns the number of kept values in the budget of a label value. Each tag key has a budget for its tags.
func (p *previous) keptCountOf(t *tables, l *labelValue) *keptCount {
	if !l.isTag() {
		return &p.recordOf(t, l.scope.origin).labels[l.scope.kind]
	}
	tagKey := &t.labels.byID[l.tagKey]
	if p.keptTags[tagKey.hash] == nil {
		p.keptTags[tagKey.hash] = new(keptCount)
	}
	return p.keptTags[tagKey.hash]
}

// keptTagsOf returns how many tags with a tag key keep their slots, given the hash of the tag key.
func (p *previous) keptTagsOf(tagKeyHash uint64) keptCount {
	kept, hasKept := p.keptTags[tagKeyHash]
	if !hasKept {
		return keptCount{}
	}
	return *kept
}

// limitOfLabel returns the limit of the budget of a label value.
func (t *tables) limitOfLabel(l *labelValue) int {
	if l.isTag() {
		return t.labels.byID[l.tagKey].values.limit
	}
	return t.limitOf(l.scope.kind)
}

// addRows adds the keys that were used at least twice in the interval, so that they keep their rows in the next
// one. If the limits do not allow all of them, each origin can keep the same number, and an origin that needs
// fewer leaves the rest to the others. Within an origin, keys with priorityStable come first.
func (p *previous) addRows(t *tables) {
	p.countRequested(t)
	limit := p.limitPerOrigin(t.config)
	p.addRowsWithPriority(t, priorityStable, limit)
	p.addRowsWithPriority(t, priorityRecent, limit)
}

// addRowsWithPriority adds the keys that recurred and have the given priority in the next interval.
func (p *previous) addRowsWithPriority(t *tables, priority slotPriority, limitPerOrigin usage) {
	for i := range t.rows.byID {
		row := &t.rows.byID[i]
		if row.recurred && row.nextPriority == priority {
			origin := p.recordOf(t, row.encoded.origin())
			p.addRow(row, origin, limitPerOrigin)
		}
	}
}

// countRequested counts the keys of each origin that were used at least twice in the interval.
func (p *previous) countRequested(t *tables) {
	for i := range t.rows.byID {
		row := &t.rows.byID[i]
		if row.recurred {
			origin := p.recordOf(t, row.encoded.origin())
			origin.requested.add(rowBytes(row.encoded))
		}
	}
}

// addRow adds a key that recurred. The key keeps its row if the kept rows of its origin are below the limit.
func (p *previous) addRow(row *row, o *previousOrigin, limitPerOrigin usage) {
	if !o.kept.isBelow(limitPerOrigin) {
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
	var rows, bytes []int // requested by each origin
	for _, o := range p.origins {
		rows = append(rows, o.requested.rows)
		bytes = append(bytes, o.requested.bytes)
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
