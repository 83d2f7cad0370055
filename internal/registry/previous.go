package registry

import (
	"math"
	"slices"
)

// previous is the part of an interval's state that the next interval uses. It is immutable. It
// contains hashes with a secret seed instead of texts, so it retains no memory of the interval's
// registry.
type previous struct {
	classes map[uint64]class           // classes of values, tag keys and keys that had a row and recurred, by identity
	origins map[uint64]*previousOrigin // by identity
	tagKeys map[uint64]keptRows        // tags that keep a row, by the identity of their tag key
	rows    keptRows                   // keys that keep a row
	bytes   keptRows                   // memory of these keys, and of all labels that keep a row
}

// previousOrigin is the part of an origin's state that the next interval uses.
type previousOrigin struct {
	isStable bool            // was also present in the interval before
	labels   [kinds]keptRows // values that keep a row, by kind of scope
	masks    [kinds]int      // number of these values that are masks
	recurred usage           // keys that recurred, and the memory of these and of all kept labels
	kept     usage           // part of recurred that keeps its rows
}

// snapshot returns the state that the next interval uses. Keys admitted later, by batches that are
// still in this interval, are not part of it.
func (t *tables) snapshot() *previous {
	prev := &previous{
		classes: make(map[uint64]class, len(t.labels.list)+len(t.rows.list)),
		origins: make(map[uint64]*previousOrigin, len(t.origins.list)), tagKeys: map[uint64]keptRows{},
	}
	for i := range t.origins.list {
		o := &t.origins.list[i]
		prev.origins[o.identity] = &previousOrigin{isStable: !o.isNew && o.identity != commonIdentity}
	}
	for _, class := range [...]class{classStable, classRecent} { // stable values first, as not all may fit
		for i := range t.labels.list {
			l := &t.labels.list[i]
			if l.recurred && !l.isBlocked && l.nextClass == class {
				prev.addLabel(t, l, class)
			}
		}
	}
	prev.addRows(t)
	return prev
}

// addLabel adds a label that recurred. The label keeps its row unless the rows for recurring
// values, or the rows for masks, are used up.
func (p *previous) addLabel(t *tables, l *label, class class) {
	o, kind := p.origins[t.origins.list[l.scope.origin].identity], l.scope.kind
	p.classes[l.identity] = classSeen // unless it keeps its row
	kept, limit, tagKey := o.labels[kind], t.limitOf(kind), uint64(0)
	if l.isTag() {
		key := &t.labels.list[l.tagKey]
		tagKey = key.identity
		kept, limit = p.tagKeys[tagKey], key.tags.limit
	}
	isFull := kept.total() >= maxKept(limit)
	if isFull || l.isMask && o.masks[kind] >= limit/4 {
		return
	}
	p.classes[l.identity] = class
	kept.add(class, 1)
	if l.isTag() {
		p.tagKeys[tagKey] = kept
	} else {
		o.labels[kind] = kept
	}
	if l.isMask {
		o.masks[kind]++
	}
	p.bytes.add(class, labelBytes(l))
	o.recurred.bytes += labelBytes(l)
	o.kept.bytes += labelBytes(l)
}

// addRows adds the keys that recurred. If the next interval cannot keep all their rows, no origin
// keeps more than an equal share, except for rows that other origins leave unused (max-min
// fairness).
func (p *previous) addRows(t *tables) {
	originOf := func(row *row) *previousOrigin {
		return p.origins[t.origins.list[row.words[wordOrigin]].identity]
	}
	for i := range t.rows.list {
		if row := &t.rows.list[i]; row.recurred {
			originOf(row).recurred.add(rowBytes(row.words))
		}
	}
	var rows, bytes []int
	for _, o := range p.origins {
		rows, bytes = append(rows, o.recurred.rows), append(bytes, o.recurred.bytes)
	}
	limitPerOrigin := usage{
		rows:  fairLevel(rows, maxKept(t.config.MaxAggregates)),
		bytes: fairLevel(bytes, maxKept(t.config.LabelBytes)),
	}
	for _, class := range [...]class{classStable, classRecent} {
		for i := range t.rows.list {
			row := &t.rows.list[i]
			if !row.recurred || row.nextClass != class {
				continue
			}
			o := originOf(row)
			if !o.kept.isBelow(limitPerOrigin) {
				p.classes[row.identity] = classSeen
				continue
			}
			p.classes[row.identity] = class
			o.kept.add(rowBytes(row.words))
			p.rows.add(class, 1)
			p.bytes.add(class, rowBytes(row.words))
		}
	}
}

// fairLevel returns the largest value to which each amount can be capped so that the sum of the
// capped amounts is at most limit.
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
