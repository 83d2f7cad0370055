package exemplars

// candidate is a span that becomes an exemplar if the agent takes its body.
type candidate struct {
	Exemplar
	cycle uint64
	place int32 // in the cycle
	next  int32 // of the same body, or unused: the place plus one
}

// candidates are those whose bodies have no answer yet, in memory that is used again.
type candidates struct {
	all    []candidate
	unused int32 // the first of a list, its place plus one
}

// add returns the place of a new one, -1 where there is no more room.
func (c *candidates) add() int32 {
	if at := c.unused - 1; at >= 0 {
		c.unused = c.all[at].next
		return at
	}
	if len(c.all) == cap(c.all) {
		return -1
	}
	c.all = c.all[:len(c.all)+1]
	return int32(len(c.all) - 1)
}

// remove takes one back.
func (c *candidates) remove(at int32) {
	c.all[at] = candidate{next: c.unused}
	c.unused = at + 1
}

// Candidates are those of one body, to be resolved once. The zero Candidates are none.
type Candidates struct{ first int32 } // of a list, the place plus one

// Body is a body whose spans are proposed, while the table's lock is held.
type Body struct {
	table *Table
	list  Candidates
}

// Choose has the spans of one body proposed, and returns what is to be resolved when the
// agent has answered.
func (t *Table) Choose(body func(*Body)) Candidates {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bodies++
	t.body = Body{table: t}
	body(&t.body)
	return t.body.list
}

// Propose proposes a span that is counted in a cycle under a key. Where it is slower than the
// exemplar that there is, and than this body's candidate, it returns where the exemplar is to
// be written, else nil. The result is valid until the next call.
func (b *Body) Propose(number uint64, key uint32, isError bool, duration uint64) *Exemplar {
	t := b.table
	k, place := t.at(number).place(nameOf(key, isError))
	switch {
	case k == nil:
		t.counts.NoRoom++
		return nil
	case k.isThere && duration <= k.Duration:
		return nil
	case k.body == t.bodies:
		if before := &t.candidates.all[k.candidate].Exemplar; duration > before.Duration {
			return before
		}
		return nil
	}
	at := t.candidates.add()
	if at < 0 {
		t.counts.NoRoom++
		return nil
	}
	k.body, k.candidate = t.bodies, at
	t.candidates.all[at] = candidate{cycle: number, place: place, next: b.list.first}
	b.list.first = at + 1
	return &t.candidates.all[at].Exemplar
}

// Resolve ends a body's candidates. Where the agent has taken the body, the slowest become
// exemplars, unless their cycle was sealed meanwhile.
func (t *Table) Resolve(list Candidates, isTaken bool) {
	if list.first == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for at := list.first - 1; at >= 0; {
		one := t.candidates.all[at]
		switch c := &t.cycles[one.cycle&1]; {
		case !isTaken:
			t.counts.Refused++
		case one.cycle < t.sealed || c.number != one.cycle+1:
			t.counts.Late++
		default:
			t.counts.Taken++
			c.keep(&one)
		}
		t.candidates.remove(at)
		at = one.next - 1
	}
}

func (c *cycle) keep(one *candidate) {
	if k := &c.kept[one.place]; !k.isThere || one.Duration > k.Duration {
		k.Exemplar, k.isThere = one.Exemplar, true
	}
}
