package registry

// Rows, and the memory of what names them, are a budget of all origins together, with a
// gate before it as every budget has. For what repeated in the last interval a place is
// kept: first for each origin's up to its fair share, which is all rows divided by the
// origins that had such rows, and then for what some have beyond that, as far as there is
// room. So shares follow the origins that are there, what one doesn't use is for whoever
// needs it, and an origin that came once leaves nothing behind it.
//
// Beyond all rows there is a reserve, a quarter as much, from which an origin below its fair
// share may take its part. So a newcomer has room for a quarter of its fair share at the
// least, whatever the others have taken, and a quarter more in each interval until it has
// all of it.

// shares are one interval's rows, and who has how many.
type shares struct {
	all     allowance
	kept    allowance    // for what repeated
	others  allowance    // taken of the rest
	beyond  store        // of what is kept, what origins have beyond their fair share
	reserve store        // beyond all rows
	share   allowance    // the fair share of those that were there
	present int          // origins that are there, or were
	origins []originRows // by OriginID
}

// store is so much, and what was taken of it.
type store struct{ limit, taken allowance }

func (s *store) isOpen() bool { return s.taken.isBelow(s.limit) }

// originRows are the rows of one origin.
type originRows struct {
	own     store     // what is kept for it up to its fair share
	reserve allowance // taken of the reserve
	taken   allowance // in all
}

func newShares(all, reserve allowance, past *past) shares {
	s := shares{all: all}
	s.reserve.limit = reserve
	for _, left := range past.origins {
		if left.rows.rows > 0 {
			s.present++
		}
	}
	if s.present > 0 {
		s.share = allowance{s.all.rows / s.present, s.all.bytes / s.present}
	}
	var beyond allowance
	for _, left := range past.origins {
		own := left.rows.atMost(s.share)
		s.kept, beyond = s.kept.plus(own), beyond.plus(left.rows.minus(own))
	}
	s.beyond.limit = beyond.atMost(s.all.minus(s.kept))
	s.kept = s.kept.plus(s.beyond.limit)
	return s
}

// fair is the fair share of each origin by now.
func (s *shares) fair() allowance { return s.all.over(max(1, s.present)) }

// join adds an origin with what it has left in the last interval.
func (s *shares) join(left heritage) {
	if left.rows.rows == 0 {
		s.present++
	}
	s.origins = append(s.origins, originRows{own: store{limit: left.rows.atMost(s.share)}})
}

// gate is how well a row of an origin must be known.
func (s *shares) gate(origin OriginID) familiarity {
	gate := s.all.gate(s.others, s.kept)
	if s.mayReserve(origin) {
		gate = min(gate, s.fair().gate(s.origins[origin].taken, allowance{}))
	}
	return gate
}

// mayReserve says whether there is a part of the reserve for an origin.
func (s *shares) mayReserve(origin OriginID) bool {
	rows, parts := &s.origins[origin], max(1, s.present)
	return s.reserve.isOpen() && rows.taken.isBelow(s.fair()) &&
		rows.reserve.isBelow(s.reserve.limit.over(parts))
}

// source is where a row is taken from.
type source uint8

const (
	noSource source = iota // there is no room
	ownShare
	beyondShare
	sharedRows
	fromReserve
)

// find returns where an origin may take a row that is known so well.
func (s *shares) find(origin OriginID, known familiarity) source {
	rows := &s.origins[origin]
	switch {
	case known == repeated && rows.own.isOpen():
		return ownShare
	case known == repeated && s.beyond.isOpen():
		return beyondShare
	case s.others.plus(s.kept).isBelow(s.all) && known >= s.all.gate(s.others, s.kept):
		return sharedRows
	case s.mayReserve(origin) && known >= s.fair().gate(rows.taken, allowance{}):
		return fromReserve
	}
	return noSource
}

// take takes a row from where find has found it. Its key may take more bytes than are left
// there, but no other after it.
func (s *shares) take(origin OriginID, from source, bytes int) {
	rows := &s.origins[origin]
	rows.taken.add(bytes)
	switch from {
	case ownShare:
		rows.own.taken.add(bytes)
	case beyondShare:
		s.beyond.taken.add(bytes)
	case sharedRows:
		s.others.add(bytes)
	case fromReserve:
		rows.reserve.add(bytes)
		s.reserve.taken.add(bytes)
	}
}
