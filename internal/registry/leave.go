package registry

// leave makes the past of an interval that is over. What comes afterwards, in the last batches
// of the interval, is not in it.
func (t *tables) leave() *past {
	p := &past{
		known:   make(map[uint64]familiarity, len(t.labels.list)+len(t.rows.list)),
		origins: map[uint64]*heritage{}, tagKeys: map[uint64]int{},
	}
	for i := range t.origins.list {
		o := &t.origins.list[i]
		p.origins[o.identity] = &heritage{hasStayed: !o.isNew && o.identity != commonIdentity}
	}
	for i := range t.labels.list {
		if l := &t.labels.list[i]; !l.isBlocked && labelID(i) >= firstID {
			p.leaveLabel(t, l)
		}
	}
	for i := range t.rows.list {
		if row := &t.rows.list[i]; row.words != nil && p.leaveIdentity(row.identity, row.cameAgain) {
			p.origins[t.origins.list[row.words[wordOrigin]].identity].rows.add(rowBytes(row.words))
		}
	}
	return p
}

// leaveIdentity leaves what had a place, and says whether it repeated.
func (p *past) leaveIdentity(identity uint64, hasCome bool) (isRepeated bool) {
	p.known[identity] = cameBefore
	if hasCome {
		p.known[identity] = repeated
	}
	return hasCome
}

func (p *past) leaveLabel(t *tables, l *label) {
	if !p.leaveIdentity(l.identity, l.cameAgain && !l.isMask) {
		return
	}
	left := p.origins[t.origins.list[l.scope.origin].identity]
	left.rows.bytes += labelBytes(l)
	if l.isTag() {
		p.tagKeys[t.labels.list[l.tagKey].identity]++
	} else {
		left.values[l.scope.kind]++
	}
}
