package registry

// past is what an interval leaves to the next: which values and keys had a place, which of
// them came again, and how much each origin has of these. It never changes, and holds no text,
// so that it keeps nothing of the interval's registry: a value is known by a hash under a seed
// that nobody outside knows.
type past struct {
	known   map[uint64]familiarity // labels, tag keys and keys that had a place, by identity
	origins map[uint64]*heritage   // by identity
	tagKeys map[uint64]int         // tags that repeated, by the identity of their tag key
}

// heritage is what one origin has of what repeated, so that there is a place for all of it.
type heritage struct {
	hasStayed bool       // it was there in the interval before too, so that its own place is kept
	values    [kinds]int // by kind of scope
	rows      allowance  // and what they, and their labels, take
}

// noPast is that of the first interval.
func noPast() *past { return &past{} }

// of is what an origin has of what repeated. An origin that is new has nothing.
func (p *past) of(identity uint64) (left heritage, isNew bool) {
	if left, ok := p.origins[identity]; ok {
		return *left, false
	}
	return heritage{}, true
}
