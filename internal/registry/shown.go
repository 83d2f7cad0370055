package registry

import (
	"sync/atomic"
	"unsafe"
)

// shown is a list as it is shown to those who read it without the lock under which
// others append to it: with all of its room, of which a reader touches what it has
// been told of by an atomic store that came after it was written. A list that had to
// move leaves what was shown of it before as it was.
type shown[T any] struct{ room atomic.Pointer[[]T] }

// update shows a list that was appended to.
func (s *shown[T]) update(list []T) {
	if now := s.room.Load(); now != nil && unsafe.SliceData(*now) == unsafe.SliceData(list) {
		return
	}
	room := list[:cap(list)]
	s.room.Store(&room)
}

func (s *shown[T]) list() []T { return *s.room.Load() }
