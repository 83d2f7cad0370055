package otlp

import "time"

// window is the time that a cycle's points stand for, nanoseconds since the Unix epoch.
type window struct{ start, end uint64 }

// next is the window behind this one, of a cycle that is encoded. The first begins when its
// cycle did, and each later one where the last ended, over cycles in which nothing was
// counted too: so a gap says that something was lost, and nothing else does. None is empty,
// and none overlaps another, though the wall clock be set back: whoever adds up deltas
// refuses a point that ends no later than the last.
//
// A daemon keeps nothing for the one after it, and needs not: what was counted before a
// daemon ends is sent before it ends, in a window that ends then.
func (w window) next(start, end time.Time) window {
	from := w.end
	if from == 0 {
		from = uint64(max(0, start.UnixNano()))
	}
	return window{from, max(from+1, uint64(max(0, end.UnixNano())))}
}
