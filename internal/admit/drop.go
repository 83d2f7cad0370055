package admit

// Drop is why a batch that was received is not counted.
type Drop uint8

const (
	admitted          Drop = iota // it is counted
	DropRingFull                  // a ring has no room: the drainers can't keep up
	DropOverShare                 // its publisher has its share of a ring already, and there are others
	DropRingContended             // too many publishers claim at once
	DropMalformed                 // the frame is not what the protocol says
	DropBatchTooLarge             // more snapshots than MaxBatch, or than a ring has slots
	DropNotWanted                 // the agent does not take statistics
	DropRefused                   // behind what ended its connection, or on one that was refused
	DropShutdown                  // the last cycle is sealed
	DropLeftToAgent               // of a trace that is forwarded for the agent to count
	DropIgnored                   // a rule of --ignore is about it
	DropBug                       // a defect of ours, contained

	drops = int(DropBug) + 1
)

var dropNames = [drops]string{
	"", "ring_full", "over_share", "ring_contended", "malformed", "batch_too_large",
	"not_wanted", "refused", "shutdown", "left_to_agent", "ignored", "bug",
}

// String is the reason's name in metrics.
func (d Drop) String() string { return dropNames[d] }

// IsPassing says whether the same spans may be admitted at another time, be it by the next
// daemon.
func (d Drop) IsPassing() bool { return d.passes() || d == DropShutdown }

// passes says whether the reason goes away by itself, as the drainers go on.
func (d Drop) passes() bool {
	return d == DropRingFull || d == DropOverShare || d == DropRingContended
}
