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
