package running

// state is how far the destinations are with a cycle.
type state uint64

const (
	open     state = iota // none has anything of it
	doubtful              // one may have
	settled
)

// wordOf is a cycle's number and its state, in the one word that says both.
func wordOf(number uint64, s state) uint64 { return number<<2 | uint64(s) }

func (l *layout) at(number uint64) *cycle { return &l.cycles[number%mostCycles] }

// stateOf is how far a cycle is. One whose place another one has was settled long ago, or nobody
// knows.
func (l *layout) stateOf(number uint64) state {
	w := l.at(number).state.Load()
	switch at := w >> 2; {
	case at > number:
		return doubtful
	case at < number:
		return open // nobody has begun it
	}
	return state(w & 3)
}

// combined is how far several cycles are together: all alike, or doubtful.
func (l *layout) combined(first, last uint64) state {
	all := l.stateOf(last)
	if last-first >= mostCycles {
		return doubtful
	}
	for ; first < last; first++ {
		if l.stateOf(first) != all {
			return doubtful
		}
	}
	return all
}

// span is a range of a connection's spans, up to one, and the cycles that they lie in.
type span struct{ first, last, upTo uint64 }

// ranges go through the spans that are not settled. What the record says beyond its marks, as in a
// file that is damaged, is left out.
func (r *record) ranges(yield func(span) bool) {
	head, tail := r.head.Load(), r.tail.Load()
	if head < tail || head-tail > marks {
		return
	}
	for ; tail < head; tail++ {
		m := &r.marks[tail%marks]
		if !yield(span{m.first.Load(), m.last.Load(), m.upTo.Load()}) {
			return
		}
	}
	if current := r.current.Load(); current > 0 {
		yield(span{current - 1, current - 1, r.received.Load()})
	}
}
