package checkclient

import "sync"

// dieAt is the number of the batch, in the first connection, at which a simulated crash happens.
// The first batch is then settled and its settlement was announced, the second is in doubt, and
// no destination has received the batches from the third on.
const dieAt = 3

// death is the state that a simulated crash leaves. Clients that connect afterwards have to ask
// about it.
type death struct {
	mu      sync.Mutex
	batches [][]uint64 // batches of the first connection, as one fingerprint per span
	isOver  bool
	isAsked bool
}

// aftermath is what a connection after a simulated crash has to do.
type aftermath struct {
	again     []uint64 // spans to replay, in this order
	twice     []uint64 // spans that must not be replayed, because they were counted
	ambiguous uint64   // number of spans to report as ambiguous
}
