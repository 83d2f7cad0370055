package aggregate

// wraps bounds how many counters of 16 bits have wrapped around, each of which takes
// a place in a map beside its page: a bin that says a million spans costs its sender no
// more than one that says one. A counter wraps because of a large bin, or because of
// so many spans in small ones.
type wraps struct {
	large uint64 // bins
	small uint64 // spans of all other bins
}

const (
	largeBin = 1 << 10
	// maxWraps is far above what is counted in an interval: a thousand million spans in
	// small bins, or sixteen thousand bins with a thousand spans of one process each.
	maxWraps  = 1 << 14
	wrapBytes = 40 // of the map, with its room for more
)

func (w *wraps) note(list []Bin) {
	for _, bin := range list {
		if bin.Spans >= largeBin {
			w.large++
		} else {
			w.small += bin.Spans
		}
	}
}

// most is how many counters can have wrapped.
func (w *wraps) most() uint64 { return w.large + w.small>>16 }
