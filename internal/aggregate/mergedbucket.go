package aggregate

import "time"

// Which bucket of a tracer can be merged, and where it goes, so that the agent makes the
// same of it.
//
// The agent keeps what tracers have counted in slots of two seconds, by the bucket's
// start. A start before its oldest slot, which is between 17 and 20 s old, goes into that
// one; a start after now goes into the slot of now. So a start may be replaced by any
// other of its slot, and a bucket may reach the agent later as long as it is not 17 s old
// by then.
//
//   - A bucket of ours, a whole ten seconds of the wall clock, is taken for a minute.
//     Its tracer sends it when it is 20 s old, so the agent would have put it into its
//     oldest slot, and still does that much later.
//   - A bucket that began at any other time is taken while it is mergedMaxAge old at most:
//     it reaches the agent a flush interval later. dd-trace-java's begin when they are
//     sent. It goes to the start of its slot, where it meets what other processes have
//     sent, as it would have at the agent.
const (
	agentSlot    = int64(2 * time.Second)
	mergedMaxAge = int64(5 * time.Second)
	// mergedBackBuckets is how many buckets before a cycle's own are taken.
	mergedBackBuckets = 6
)

// mergedBuckets are those that a cycle takes.
type mergedBuckets struct {
	width  int64 // of a bucket
	oldest int64 // start of the oldest bucket of ours that is taken
}

// begin makes them those of a cycle that begins then.
func (m *mergedBuckets) begin(now time.Time) {
	m.oldest = now.UnixNano() - now.UnixNano()%m.width - mergedBackBuckets*m.width
}

// bucketOf is the start under which a tracer's bucket is kept.
func (m *mergedBuckets) bucketOf(start, now int64) (bucket int64, ok bool) {
	switch {
	case start > now:
		return 0, false
	case start%m.width == 0:
		return start, start >= m.oldest
	default:
		return start - start%agentSlot, now-start <= mergedMaxAge
	}
}
