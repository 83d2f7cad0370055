package export

import (
	"slices"
	"sync"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
)

// cycleState tracks the state of one sealed cycle at all destinations. It has three independent
// parts:
//
//	clients    unanswered > 0 ──── last response ─> answered, with the first error
//
//	spans      unsettled > 0 ──── last outcome ───> settled; final
//
//	recovery   clear ──── beginSend ───> in doubt ──── endSend, maybe delivered ───> in doubt, final
//	             ^                          |
//	             └── endSend, not delivered ┘
//
// A cycle is in doubt while anything with its spans is being sent, and permanently once a
// destination has, or may have, some of them. After a crash, the next daemon counts the spans of a
// cycle again unless it is in doubt or settled.
//
// Each payload of deltas counts as one in unanswered and unsettled. For running totals, and for
// scraped statistics, each destination counts as one. Clients can be answered before settlement:
// they do not wait for spans that are held for a later payload.
type cycleState struct {
	delivery *aggregate.Delivery

	mu             sync.Mutex
	unanswered     int
	unsettled      int
	inFlight       int   // payloads and scrapes in flight that contain its spans
	maybeDelivered bool  // a destination has, or may have, some of its spans
	err            error // first error
}

// add adds a payload without an outcome.
func (c *cycleState) add() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unanswered++
	c.unsettled++
}

// fail records that a destination will not get the whole cycle.
func (c *cycleState) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
}

// resolve records the outcome of one payload, both for waiting clients and for its spans.
func (c *cycleState) resolve(err error) {
	c.notifyClients(err)
	c.settle()
}

// notifyClients records the result of one payload for waiting clients. After the last payload, they
// get the first error.
func (c *cycleState) notifyClients(err error) {
	c.fail(err)
	c.mu.Lock()
	c.unanswered--
	isLast, first := c.unanswered == 0, c.err
	c.mu.Unlock()
	if isLast {
		c.delivery.Answer(first)
	}
}

// settle records that all spans of one payload have their outcome.
func (c *cycleState) settle() {
	c.mu.Lock()
	c.unsettled--
	isLast := c.unsettled == 0
	c.mu.Unlock()
	if isLast {
		c.delivery.Settle()
	}
}

// beginSend records that a payload or scrape with its spans is about to be sent.
func (c *cycleState) beginSend() { c.updateSend(1, false) }

// endSend records that the payload or scrape was sent, and whether it was, or may have been,
// delivered.
func (c *cycleState) endSend(maybeDelivered bool) { c.updateSend(-1, maybeDelivered) }

// updateSend updates inFlight and maybeDelivered. It reports a change of isInDoubt under the lock, so that
// reports are in order and precede settlement.
func (c *cycleState) updateSend(inFlight int, maybeDelivered bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	wasInDoubt := c.isInDoubt()
	c.inFlight += inFlight
	c.maybeDelivered = c.maybeDelivered || maybeDelivered
	if inDoubt := c.isInDoubt(); inDoubt != wasInDoubt && c.unsettled > 0 {
		c.delivery.SetInDoubt(inDoubt)
	}
}

func (c *cycleState) isInDoubt() bool { return c.inFlight > 0 || c.maybeDelivered }

// openCycle is a cycle with spans that have no outcome yet at one destination.
type openCycle struct {
	state      *cycleState
	number     uint64 // first snapshot that contains its spans
	spans      uint64 // number of its spans that are held
	born       time.Time
	isNotified bool
}

func (c *openCycle) notifyClients(err error) {
	if !c.isNotified {
		c.isNotified = true
		c.state.notifyClients(err)
	}
}

// openCycles are the cycles that a destination of running totals, or a scraped destination, does
// not have yet. Each snapshot of the totals contains the spans of all cycles up to its own, so the
// oldest cycles are settled first.
type openCycles struct {
	mu  sync.Mutex
	all []openCycle // oldest first
}

// add adds a cycle.
func (o *openCycles) add(c openCycle) {
	c.state.add()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, c)
}

// removeUpTo removes and returns the cycles up to a snapshot. The caller settles them.
func (o *openCycles) removeUpTo(number uint64) []openCycle {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := o.countUpTo(number)
	removed := slices.Clone(o.all[:n])
	o.all = slices.Delete(o.all, 0, n)
	return removed
}

// keepMissing handles a snapshot of which a part was not delivered. missing is the maximum number
// of spans in that part. The cycles up to the snapshot stay open with at most these spans.
// keepMissing returns the number of delivered spans.
func (o *openCycles) keepMissing(number, missing uint64) (delivered uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.countUpTo(number) {
		c := &o.all[i]
		kept := min(missing, c.spans)
		delivered += c.spans - kept
		missing -= kept
		c.spans = kept
	}
	return delivered
}

// countUpTo returns the number of cycles whose spans a snapshot contains. The caller holds the
// lock.
func (o *openCycles) countUpTo(number uint64) (n int) {
	for n < len(o.all) && o.all[n].number <= number {
		n++
	}
	return n
}

// statesUpTo returns the states of the cycles whose spans a snapshot contains.
func (o *openCycles) statesUpTo(number uint64) (states []*cycleState) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.countUpTo(number) {
		states = append(states, o.all[i].state)
	}
	return states
}

// notifyUpTo passes an error to the clients waiting for cycles up to a snapshot.
func (o *openCycles) notifyUpTo(number uint64, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.countUpTo(number) {
		o.all[i].notifyClients(err)
	}
}

// notifyOlder passes an error to the clients waiting for cycles sealed before the given time.
func (o *openCycles) notifyOlder(before time.Time, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.all {
		if !o.all[i].born.After(before) {
			o.all[i].notifyClients(err)
		}
	}
}

// mergeOldest merges the oldest cycle into the next one until at most limit are left. It returns
// the cycles that were merged into another. The caller settles them.
func (o *openCycles) mergeOldest(limit int) (merged []openCycle) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.all) > limit {
		o.all[1].spans += o.all[0].spans
		merged = append(merged, o.all[0])
		o.all = slices.Delete(o.all, 0, 1)
	}
	return merged
}

// subtractLost subtracts spans that will never be delivered from the cycles up to a snapshot. It
// returns how many it subtracted: spans that were delivered since the encoder counted them are not
// lost.
func (o *openCycles) subtractLost(spans, number uint64) (lost uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.countUpTo(number) {
		n := min(spans-lost, o.all[i].spans)
		o.all[i].spans -= n
		lost += n
	}
	return lost
}

// oldest returns the time at which the oldest cycle was sealed, and false if there is none.
func (o *openCycles) oldest() (born time.Time, any bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.all) == 0 {
		return time.Time{}, false
	}
	return o.all[0].born, true
}

// snapshot is the set of payloads of one cycle at a destination of running totals. Together they
// contain all totals, and so the spans of each cycle up to this one. If all payloads are accepted,
// these cycles are settled. If one is not, they stay open, with the spans that it may contain,
// because the next snapshot contains everything again.
type snapshot struct {
	number uint64

	mu        sync.Mutex
	pending   int    // payloads without an outcome, plus one while the cycle is encoded
	isMissing bool   // a payload was not accepted
	missing   uint64 // maximum number of spans that the destination lacks because of that
	rejected  uint64 // spans of accepted payloads that the destination rejected
}

// add adds a payload without an outcome.
func (s *snapshot) add() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending++
}

// partOutcome is the outcome of one payload of a snapshot. The zero value means accepted.
type partOutcome struct {
	isMissing   bool     // not accepted
	undelivered []uint64 // maximum number of spans that the destination lacks, per series
	rejected    uint64   // spans of an accepted payload that the destination rejected
}

// end records the outcome of one payload, and reports whether it was the last.
func (s *snapshot) end(p partOutcome) (isLast bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending--
	s.isMissing = s.isMissing || p.isMissing
	s.rejected += p.rejected
	for _, spans := range p.undelivered {
		s.missing += spans
	}
	return s.pending == 0
}
