package admit

import (
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/ring"
)

// ringShare is what one publisher has in one ring. It keeps a tracer that floods from
// filling a ring that others need too: while there are others, a publisher that has slots
// in a ring may take more only up to what it leaves free. One that floods thus stops at a
// half; n of them leave 1/(n+1) where they grow together, and 1/2^n where each comes when
// the others have stopped. A publisher that is alone leaves an eighth, for whoever comes
// next. Whoever has nothing in the ring may take any room that there is for one batch, so
// none is refused for its size alone; one that is larger than what floods leave free
// waits, or is dropped, as long as they go on.
//
// What was published is kept as marks, each for a stretch of the ring, until the drainer
// has passed the stretch's end. That needs nobody's help but the ring's two cursors.
// While marks are few each is of one batch, and what is held is exact; where there are
// more, a mark is worth a part of the ring, so their number is fixed, and what is held
// seems larger than it is by no more than one of them.
type ringShare struct {
	marks [shareMarks]mark
	first int // index of the oldest
	count int
	held  int // slots, of all marks
}

// mark is slots that one publisher has in a stretch of a ring.
type mark struct {
	end   uint64 // the ring's position behind the last of them
	slots int
}

// shareMarks is how many stretches are told apart. Beyond the first exactMarks, a
// closed mark is worth at least 1/markPart of the ring, so what a ring can hold at
// once needs no more than markPart of them, and the one that is open, and one more
// that is half drained.
const (
	markPart   = 16
	exactMarks = 16
	shareMarks = exactMarks + markPart + 2
)

// shareOfFree is how many slots a publisher may hold for each that it leaves
// free. With 2 a flood could have two thirds, but then three that come one after the
// other leave no more than a twenty-seventh. Alone it is shareOfFreeAlone.
const (
	shareOfFree      = 1
	shareOfFreeAlone = 7
)

// allows says whether n slots more are within the share.
func (s *ringShare) allows(r *ring.Ring[aggregate.Slot], n int, alone bool) bool {
	for drained := r.Drained(); s.count > 0 && s.marks[s.first].end <= drained; s.count-- {
		s.held -= s.marks[s.first].slots
		s.first = (s.first + 1) % shareMarks
	}
	ofFree := shareOfFree
	if alone {
		ofFree = shareOfFreeAlone
	}
	return s.held == 0 || s.held+n <= ofFree*(r.Free()-n)
}

// add notes a run that is about to be published in a ring of that size.
func (s *ringShare) add(end uint64, n, size int) {
	s.held += n
	if s.count > exactMarks {
		last := &s.marks[(s.first+s.count-1)%shareMarks]
		if last.slots < size/markPart || s.count == shareMarks {
			last.end, last.slots = end, last.slots+n
			return
		}
	}
	s.marks[(s.first+s.count)%shareMarks] = mark{end, n}
	s.count++
}
