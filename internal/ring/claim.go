package ring

// Claim is a run of slots that one producer fills. It is a value of the
// producer's own: one goroutine uses it, ends it with exactly one Publish or
// Skip, and touches no slot of it afterwards.
//
// A claim that is never ended stops the consumer for ever at its first slot. Where code
// between claim and publish might panic, guard it with a deferred Abandon. The two forms below
// allocate nothing:
//
//	c, result := r.Claim(n)
//	if result != ring.Claimed { ... }
//	defer c.Abandon()
//	... fill ...
//	c.Publish()
//
// A batch that claims from several rings keeps its claims in a slice that it
// reuses, and one deferred call abandons each of them. Abandoning the zero Claim
// does nothing, so it need not know which were made.
type Claim[T any] struct {
	ring *Ring[T] // nil once the run is ended
	at   uint64
	n    uint64
}

// Claim takes a run of n adjacent slots, or none. n below 1 is a bug.
func (r *Ring[T]) Claim(n int) (Claim[T], Result) {
	if n < 1 {
		panic("BUG: a ring was asked for a run of no slots")
	}
	at, result := r.claim(uint64(n))
	if result != Claimed {
		return Claim[T]{}, result
	}
	return Claim[T]{ring: r, at: at, n: uint64(n)}, Claimed
}

// Len is how many slots the run has, 0 once it is ended.
func (c *Claim[T]) Len() int {
	if c.ring == nil {
		return 0
	}
	return int(c.n)
}

// End is the position behind the run's last slot. The run has been consumed and
// freed once Drained has come this far.
func (c *Claim[T]) End() uint64 { return c.at + c.n }

// Slot is the i'th slot of the run. It holds what an earlier lap left there.
func (c *Claim[T]) Slot(i int) *T {
	if uint64(i) >= c.n {
		panic("BUG: a slot was asked for beyond the end of its run")
	}
	return &c.ring.slots[(c.at+uint64(i))&c.ring.mask]
}

// Segments is the run as slices, in order; the second is empty unless the run
// wraps round the ring's end.
func (c *Claim[T]) Segments() (a, b []T) { return c.ring.segments(c.at, c.n) }

// Publish hands the run to the consumer.
func (c *Claim[T]) Publish() { c.end(false) }

// Skip gives the run back unread: the consumer passes over it.
func (c *Claim[T]) Skip() { c.end(true) }

// Abandon skips a run that was neither published nor skipped, as one that goes with
// another that found no room, or that a panic left behind, and counts its slots as
// such. It does nothing to any other claim, and does not recover the panic.
func (c *Claim[T]) Abandon() {
	if c.ring == nil {
		return
	}
	c.ring.abandoned.Add(c.n)
	c.end(true)
}

// end publishes the run and lets go of it, so that a second end is noticed
// instead of corrupting whoever holds those positions by then.
func (c *Claim[T]) end(skip bool) {
	r := c.ring
	if r == nil {
		panic("BUG: a claimed run was published or skipped twice")
	}
	c.ring = nil
	r.publish(c.at, c.n, skip)
}

// publish hands a claimed run to the consumer, waking it if it waits for that.
func (s *sequence) publish(at, n uint64, skip bool) {
	s.words[at&s.mask].Store(uint64(wordOf(at, n, skip, s.shift)))
	s.wakeFor()
}
