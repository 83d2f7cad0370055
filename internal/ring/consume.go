package ring

// Consume is the consumer's loop, on the caller's goroutine; a ring has one at a time. It
// returns after it delivered Stop. Slots that are published later stay in the ring, and
// another Consume would find them.
//
// onSlots is given published slots in order, as slices of the ring itself: they
// are freed after it returned, so it keeps none of them. One turn takes the runs
// that are there, as long as they are not more than limit slots together, but
// never less than one run. onSignal is given the signals that are due between
// two turns.
//
// A panic of either leaves Consume; the slots of that turn are not freed.
func (r *Ring[T]) Consume(limit int, onSlots func([]T), onSignal func(Signal)) {
	if limit < 1 {
		panic("BUG: a ring's consumer was given no room for a turn")
	}
	if !r.consuming.CompareAndSwap(false, true) {
		panic("BUG: a ring was given a second consumer")
	}
	defer r.consuming.Store(false)
	sleeps := newIdle()
	defer sleeps.timer.Stop()
	at := r.head.Load()
	for {
		signal, signalled := r.take(at)
		if signalled {
			onSignal(signal)
			if signal.Kind == Stop {
				return
			}
		}
		next := r.turn(at, uint64(limit), onSlots)
		if next != at || signalled {
			sleeps.work()
		} else {
			r.await(at, sleeps)
		}
		at = next
	}
}

// turn hands over the runs published from a position on, frees them with one
// store, and returns where the next turn starts.
func (r *Ring[T]) turn(from, limit uint64, onSlots func([]T)) uint64 {
	start, at, skipped := from, from, uint64(0)
	for {
		w, published := r.read(at)
		if !published {
			break
		}
		n := w.length(r.mask)
		if at+n-from > limit && at != from {
			break
		}
		if w.skipped() {
			r.deliver(start, at, onSlots)
			start = at + n
			skipped += n
		}
		at += n
	}
	r.deliver(start, at, onSlots)
	if at != from {
		r.free(from, at, skipped)
	}
	return at
}

// deliver gives the consumer the slots between two positions, in one piece or,
// where the ring ends, two.
func (r *Ring[T]) deliver(start, end uint64, onSlots func([]T)) {
	if start == end {
		return
	}
	a, b := r.segments(start, end-start)
	onSlots(a)
	if len(b) > 0 {
		onSlots(b)
	}
}

// free gives the positions of a turn back to the producers and counts them.
//
// The ring is fullest just before that. A consumer that found less than its
// limit has seen all of it; only one that leaves something behind asks the
// producers' line how much.
func (s *sequence) free(from, to, skipped uint64) {
	used := to - from
	if _, more := s.read(to); more {
		used = min(s.tail.Load()-from, s.size)
	}
	if used > s.highWater.Load() {
		s.highWater.Store(used)
	}
	s.published.Store(s.published.Load() + to - from - skipped)
	if skipped != 0 {
		s.skipped.Store(s.skipped.Load() + skipped)
	}
	s.head.Store(to)
}
