package aggregate

import "time"

// windowBuckets is how many buckets one cycle can write: the one before the
// cycle's own, its own, and the next, which a span can reach when it ends
// between a bucket's boundary and the seal that follows it.
const windowBuckets = 3

// oldestBucket is the start of the first of them, for a cycle that started then.
func oldestBucket(started time.Time, width int64) int64 {
	now := started.UnixNano()
	return now - now%width - width
}

// Window tells a publisher in which of a cycle's buckets a span is counted. It is
// made anew for each batch, after the batch was read: no span of it can have ended
// after the first time that the window has to look at the clock.
type Window struct {
	start int64  // of the cycle's own bucket
	width uint64 // of a bucket
	own   Place  // of a span that ended in it
	now   int64  // 0 until it was asked for
}

// NewWindow is the window of a cycle of that number that started then.
func NewWindow(number uint64, started time.Time, width time.Duration) Window {
	return Window{
		start: oldestBucket(started, int64(width)) + int64(width), width: uint64(width),
		own: Place{cycle: uint8(number & 1), bucket: 1},
	}
}

// Place is where a span with this end is counted.
func (w *Window) Place(end int64) Place {
	if uint64(end-w.start) < w.width {
		return w.own
	}
	return w.clamp(end)
}

// clamp finds the bucket of an end outside the cycle's own. A span can't have
// ended after now.
func (w *Window) clamp(end int64) Place {
	place := Place{cycle: w.own.cycle}
	width := int64(w.width)
	oldest := w.start - width
	if end < oldest {
		place.clamp = late
		return place
	}
	if end < w.start {
		return place
	}
	if w.now == 0 {
		w.now = time.Now().UnixNano()
	}
	// The wall clock may have stepped back below the window since the cycle
	// started; then now has no bucket here, and the cycle's own is the nearest.
	bucket, latest := (end-oldest)/width, (max(w.now, w.start)-oldest)/width
	if bucket > latest {
		bucket, place.clamp = latest, early
	}
	place.bucket = uint8(min(bucket, windowBuckets-1))
	return place
}
