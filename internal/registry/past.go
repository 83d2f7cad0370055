package registry

import "github.com/spanstatsd/spanstatsd/internal/span"

// past is what an interval leaves to the next: which values and keys had a place, which of
// them repeated, and how much each origin has of these. It never changes, and holds no text,
// so that it keeps nothing of the interval's registry: a value is known by a hash of 63
// bits, under a seed that nobody outside knows.
type past struct {
	known   hashSet // labels, tag keys and keys that had a place
	origins map[uint64]*heritage
	tagKeys map[uint64]int // tags that repeated, by the hash of their tag key

	isInSights bool // what is known is in the sights too: it is not where nothing ever waited
}

// heritage is what one origin has of what repeated, so that there is a place for all of it.
type heritage struct {
	isNew  bool                 // it was not there
	values [span.LabelCount]int // of a list, tag keys
	rows   allowance            // and what they, and their labels, take
}

// leave makes the past of an interval that is over. What is marked afterwards, by the
// last batches of the interval, is not in it.
func (r *Registry) leave() *past {
	r.mu.Lock()
	defer r.mu.Unlock()
	labels, rows := r.budgets.labels.list.items, r.rows.list.items
	p := &past{
		known:   newHashSet(len(labels) + len(rows)),
		origins: map[uint64]*heritage{}, tagKeys: map[uint64]int{},
		isInSights: !r.sights.isEmpty(),
	}
	for _, identity := range r.identities {
		p.origins[identity] = &heritage{}
	}
	marks := r.repeatedLabels()
	for id := firstID; int(id) < len(labels); id++ {
		if l := &labels[id]; !l.isBlocked {
			p.leaveLabel(r, l, marks[id])
		}
	}
	for id := range rows {
		if row := &rows[id]; row.to > 0 { // or it is an overflow row
			isRepeated := r.repeats.rows.has(uint32(id))
			p.leaveHash(r, row.identity, isRepeated)
			if isRepeated {
				words := r.rows.words.items[row.from:row.to]
				p.origins[r.identities[words[wordOrigin]]].rows.add(rowBytes(words))
			}
		}
	}
	return p
}

// leaveHash leaves the hash of what had a place. It is among the sights too, so that nobody
// who finds it there in neither interval need look here.
func (p *past) leaveHash(r *Registry, hash uint64, isRepeated bool) {
	p.known.put(hash, isRepeated)
	if p.isInSights {
		r.sights.add(r.generation, r.sights.spotOf(hash))
	}
}

// leaveLabel leaves one label, or tag key.
func (p *past) leaveLabel(r *Registry, l *label, isRepeated bool) {
	origin, kind := l.scope.parts()
	identity := r.identities[origin]
	p.leaveHash(r, l.hashed().identity(identity, kind), isRepeated)
	if !isRepeated {
		return
	}
	left := p.origins[identity]
	left.rows.bytes += labelBytes(l.text)
	switch {
	case kind >= span.LabelCount:
		left.values[kind-span.LabelCount+int(span.FirstList)]++
	case !l.isTag():
		left.values[kind]++
	default:
		key := &r.budgets.labels.list.items[r.budgets.tagKeys[l.tagKey].id]
		_, keyKind := key.scope.parts()
		p.tagKeys[key.hashed().identity(identity, keyKind)]++
	}
}

// repeatedLabels is which labels repeated, by number. A tag key repeats when a tag does.
func (r *Registry) repeatedLabels() []bool {
	labels := r.budgets.labels.list.items
	marks := make([]bool, len(labels))
	for id := firstID; int(id) < len(labels); id++ {
		if r.repeats.labels.has(id) {
			marks[id] = true
			if l := &labels[id]; l.isTag() && !l.isBlocked {
				marks[r.budgets.tagKeys[l.tagKey].id] = true
			}
		}
	}
	return marks
}

// noPast is that of the first interval.
func noPast() *past { return &past{} }

// of is what an origin has of what repeated.
func (p *past) of(identity uint64) heritage {
	if left, ok := p.origins[identity]; ok {
		return *left
	}
	return heritage{isNew: true}
}

// repeats are the labels and rows of an interval that came at least twice since they have
// their places.
type repeats struct{ labels, rows marks }
