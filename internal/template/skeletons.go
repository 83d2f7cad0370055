package template

// skeletons are those of one origin that may become templates: a table of small sets, in
// which one with the fewest sights gives way, whichever the new one's hash says.
type skeletons struct {
	sets [candidateSets][candidatesASet]candidate
}

const (
	candidateSets   = 32
	candidatesASet  = 4
	windowIntervals = 2 // in which evidence adds up
)

// candidate is a skeleton with what was seen at its blanks.
type candidate struct {
	key    uint64 // 0 of none
	since  uint64 // the interval of the first sight
	sights int
	blanks [maxFills]evidence
}

// Sight is a value that got no name of its own, without its text: what there is to learn.
type Sight struct {
	key   uint64
	scope Scope
	count uint8
	marks [maxFills]mark
}

// mark is what is kept of a fill.
type mark struct {
	hash  uint8
	worth worth
}

// note adds a sight and returns what is known now of its skeleton. It reports false while
// a blank is undecided.
func (s *skeletons) note(seen *Sight, interval uint64) (varies levels, ok bool) {
	c := s.find(seen.key, interval)
	c.sights++
	ok = true
	for i, f := range seen.marks[:seen.count] {
		e := &c.blanks[i]
		e.note(f)
		least, isDecided := e.verdict(c.sights)
		if least != 0 {
			varies = varies.with(i, least)
		}
		ok = ok && isDecided
	}
	return varies, ok && varies != 0
}

// find returns the candidate of a skeleton, whose window may begin now.
func (s *skeletons) find(key, interval uint64) *candidate {
	set := &s.sets[key%candidateSets]
	least := &set[key>>32%candidatesASet]
	for i := range set {
		c := &set[i]
		if c.since+windowIntervals <= interval {
			c.sights = 0 // it is over
		}
		if c.key == key {
			least = c
			break
		}
		if c.sights < least.sights {
			least = c
		}
	}
	if least.key != key || least.sights == 0 {
		*least = candidate{key: key, since: interval}
	}
	return least
}
