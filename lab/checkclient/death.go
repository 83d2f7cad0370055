package checkclient

import "sync"

// dieAt is the batch of the first connection with which the daemon that is played dies, if it is to.
// Then the first batch is settled, which it has said, the second is doubtful, and no destination has
// those from the third on.
const dieAt = 3

// death is what the daemon leaves behind it. Who connects next is to ask about it.
type death struct {
	mu      sync.Mutex
	batches [][]uint64 // of the first connection, a fingerprint for each span
	isOver  bool
	isAsked bool
}

// aftermath is what the connection behind a death has to do.
type aftermath struct {
	again     []uint64 // spans that are to come next
	twice     []uint64 // spans that are not to come
	ambiguous uint64   // spans to be reported
}
