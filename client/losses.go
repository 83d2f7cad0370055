package client

import "sync/atomic"

// The reasons under which a span is refused or lost: the keys of Stats.Refused
// and Stats.Lost, and of what the daemon is told.
const (
	ReasonBufferFull   = "buffer_full"  // no buffer was free, or every shard was being written to
	ReasonDisconnected = "disconnected" // the daemon was away for longer than Config.MaxAway
	ReasonTooLarge     = "too_large"    // the batch needs more than all buffers
	ReasonNotWanted    = "not_wanted"   // the agent behind the daemon takes no stats
	ReasonClosed       = "closed"       // published after Close, or not sent by the end of it
)

// The reasons under which the daemon is told of Stats.Unconfirmed and Stats.Ambiguous.
const (
	ReasonDaemonDied = "daemon_died"
	ReasonAmbiguous  = "ambiguous"
)

// reason is an index, because a publisher counts by it.
type reason uint8

const (
	none reason = iota
	bufferFull
	disconnected
	tooLarge
	notWanted
	closed
	daemonDied // this and the next are of what was sent
	ambiguous
	reasons
)

var reasonNames = [reasons]string{
	none: "", ReasonBufferFull, ReasonDisconnected, ReasonTooLarge,
	ReasonNotWanted, ReasonClosed, ReasonDaemonDied, ReasonAmbiguous,
}

// losses counts spans by reason.
type losses [reasons]atomic.Uint64

func (l *losses) add(why reason, spans int) { l[why].Add(uint64(spans)) }

// addTo adds the counts to a total.
func (l *losses) addTo(total *[reasons]uint64) {
	for i := range l {
		total[i] += l[i].Load()
	}
}

// named is the counts of what was not sent by the names of their reasons, each of which is there.
func named(counts [reasons]uint64) map[string]uint64 {
	m := make(map[string]uint64, len(counts))
	for why := none + 1; why < daemonDied; why++ {
		m[reasonNames[why]] = counts[why]
	}
	return m
}
