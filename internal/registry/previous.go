package registry

import (
	"math"
	"slices"
)

// previous is what an interval leaves to the next one. It never changes, and it holds hashes
// under a secret seed instead of text, so that it keeps nothing of the interval's registry.
type previous struct {
	known   map[uint64]recurrence      // values, tag keys and keys that had a row and recurred, by identity
	origins map[uint64]*previousOrigin // by identity
	tagKeys map[uint64]recurring       // tags that keep a row, by the identity of their tag key
	rows    recurring                  // keys that keep a row
	bytes   recurring                  // the memory of these keys and of all labels that keep a row
}

type previousOrigin struct {
	isStaying bool             // it was there in the interval before, too
	labels    [kinds]recurring // values that keep a row, by kind of scope
	masks     [kinds]int       // those of the values that are masks
	recurred  usage            // keys that recurred, and their memory with that of all labels that did
	kept      usage            // as much of it as is kept
}

// snapshot returns what the interval leaves. Batches of the interval that are still being
// admitted add nothing to it.
func (t *tables) snapshot() *previous {
	p := &previous{
		known:   make(map[uint64]recurrence, len(t.labels.list)+len(t.rows.list)),
		origins: make(map[uint64]*previousOrigin, len(t.origins.list)), tagKeys: map[uint64]recurring{},
	}
	for i := range t.origins.list {
		o := &t.origins.list[i]
		p.origins[o.identity] = &previousOrigin{isStaying: !o.isNew && o.identity != commonIdentity}
	}
	for _, was := range [...]recurrence{steady, held} { // if not all can be kept, the steady ones are
		for i := range t.labels.list {
			l := &t.labels.list[i]
			if l.recurred && !l.isBlocked && l.next == was {
				p.addLabel(t, l, was)
			}
		}
	}
	p.addRows(t)
	return p
}

func (p *previous) addLabel(t *tables, l *label, was recurrence) {
	o, kind := p.origins[t.origins.list[l.scope.origin].identity], l.scope.kind
	p.known[l.identity] = seen
	kept, limit, tagKey := o.labels[kind], t.limitOf(kind), uint64(0)
	if l.isTag() {
		of := &t.labels.list[l.tagKey]
		tagKey = of.identity
		kept, limit = p.tagKeys[tagKey], of.tags.limit
	}
	if kept.total() >= mostRecurring(limit) || l.isMask && o.masks[kind] >= limit/4 {
		return
	}
	p.known[l.identity] = was
	kept.add(was, 1)
	if l.isTag() {
		p.tagKeys[tagKey] = kept
	} else {
		o.labels[kind] = kept
	}
	if l.isMask {
		o.masks[kind]++
	}
	p.bytes.add(was, labelBytes(l))
	o.recurred.bytes += labelBytes(l)
	o.kept.bytes += labelBytes(l)
}

// addRows adds the keys that recurred. If they are more than the interval may keep, no origin
// keeps more than an equal share of them, except for what the others leave (max-min fairness).
func (p *previous) addRows(t *tables) {
	of := func(row *row) *previousOrigin { return p.origins[t.origins.list[row.words[wordOrigin]].identity] }
	for i := range t.rows.list {
		if row := &t.rows.list[i]; row.recurred {
			of(row).recurred.add(rowBytes(row.words))
		}
	}
	var rows, bytes []int
	for _, o := range p.origins {
		rows, bytes = append(rows, o.recurred.rows), append(bytes, o.recurred.bytes)
	}
	most := usage{
		rows:  fairLevel(rows, mostRecurring(t.config.MaxAggregates)),
		bytes: fairLevel(bytes, mostRecurring(t.config.LabelBytes)),
	}
	for _, was := range [...]recurrence{steady, held} {
		for i := range t.rows.list {
			row := &t.rows.list[i]
			if !row.recurred || row.next != was {
				continue
			}
			o := of(row)
			if !o.kept.isBelow(most) {
				p.known[row.identity] = seen
				continue
			}
			p.known[row.identity] = was
			o.kept.add(rowBytes(row.words))
			p.rows.add(was, 1)
			p.bytes.add(was, rowBytes(row.words))
		}
	}
}

// fairLevel returns the largest number that each amount can be cut to so that all of them
// together are within the limit.
func fairLevel(amounts []int, limit int) int {
	slices.Sort(amounts)
	for i, amount := range amounts {
		left := len(amounts) - i
		if amount > limit/left {
			return limit / left
		}
		limit -= amount
	}
	return math.MaxInt
}
