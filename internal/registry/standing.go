package registry

import "sync/atomic"

// standing is what a glance must know of an origin: what it has no more of. An origin
// that has used up a budget has done so until the interval ends, so what is said here
// stays true.
type standing struct {
	full      atomic.Uint32 // a bit for each field, and for FieldWholeKey
	overflows KeyID         // with FieldWholeKey: the overflow aggregate
	hash      uint32        // and its partition's hash
}

// set notes that a field's budget is used up: that of a list of tags, when there are
// as many names as there may be. It is set behind the last value that is admitted: who
// sees it finds that one.
func (s *standing) set(field uint32) {
	if full := s.full.Load(); full&field == 0 {
		s.full.Store(full | field) // one writes at a time
	}
}

// overflow notes that there is no row for a new key, and what becomes of it.
func (s *standing) overflow(id KeyID, hash uint32) {
	s.overflows, s.hash = id, hash
	s.set(1 << FieldWholeKey)
}

func (s *standing) clear() {
	s.full.Store(0)
	s.overflows, s.hash = 0, 0
}
