package ring

// Stats is what a ring did and holds. Counts never go back.
type Stats struct {
	Slots     int    // the ring's size
	Used      int    // slots claimed and not freed yet
	HighWater int    // the most that the consumer ever found in use when it freed
	Published uint64 // slots that the consumer was given and has freed
	Skipped   uint64 // slots that it passed over and has freed
	Abandoned uint64 // slots that Abandon skipped
	Parks     uint64 // times that the consumer went to sleep
	Wakes     uint64 // parks that a producer or a signal ended
}

// Free is how many slots a claim made now might find, and Drained the position
// up to which all have been consumed and freed. Both grow older as they are
// looked at. They cost a look at the consumer's own line.
func (r *Ring[T]) Free() int {
	head := r.head.Load() // first: a tail read before it might lie behind it
	return int(r.size - min(r.tail.Load()-head, r.size))
}

// Drained is explained at Free.
func (r *Ring[T]) Drained() uint64 { return r.head.Load() }

// Stats reads the counters. They are read one after another, while the ring
// goes on.
func (r *Ring[T]) Stats() Stats {
	head := r.head.Load()
	return Stats{
		Slots:     int(r.size),
		Used:      int(min(r.tail.Load()-head, r.size)),
		HighWater: int(r.highWater.Load()),
		Published: r.published.Load(),
		Skipped:   r.skipped.Load(),
		Abandoned: r.abandoned.Load(),
		Parks:     r.parks.Load(),
		Wakes:     r.wakes.Load(),
	}
}
