package aggregate

import "time"

// Which bucket of a tracer can be merged, and into which it goes, so that the agent
// makes the same of it.
//
// The agent keeps what tracers have counted in slots of two seconds: that of the
// bucket's start; the oldest slot, which is between 17 and 20 s old, where the start
// is before that; the slot of now, where it is after now. So a start may be replaced
// by any other of its slot, and a bucket may reach the agent later as long as it is
// not 17 s old by then.
//
//   - A bucket of ours, a whole ten seconds of the wall clock, is taken for a minute.
//     Its tracer sends it when it is 20 s old, and the agent would have put it into
//     its oldest slot: so it still does, that much later.
//   - One that began at any other time, such as dd-trace-java's, which begin when they
//     are sent, is taken while it is mergedFresh old: it reaches the agent a flush
//     interval later at most. It goes to the start of its slot, and meets there what
//     other processes have sent in it, as it would have at the agent.
const (
	agentSlot   = int64(2 * time.Second)
	mergedFresh = int64(5 * time.Second)
	// mergedBack is how many buckets before a cycle's own are taken.
	mergedBack = 6
)

// bucketOf is the start under which a tracer's bucket is kept.
func (m *Merged) bucketOf(start, now int64) (bucket int64, ok bool) {
	switch {
	case start > now:
		return 0, false
	case start%m.width == 0:
		return start, start >= m.oldest
	default:
		return start - start%agentSlot, now-start <= mergedFresh
	}
}
