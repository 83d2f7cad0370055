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
// A cycle is in doubt while a payload or scrape with its spans is being sent. It stays in doubt once
// a destination has, or may have, some of its spans. After a crash, the next daemon counts the spans
// of a cycle again unless the cycle is in doubt or settled.
//
// The outcome of a cycle has several parts: one per payload of deltas, and one per destination of
// running totals or scrapes. Each part counts as one in unanswered and in unsettled. Clients can be
// answered before the cycle is settled: they do not wait for spans that a later payload will
// contain.
type cycleState struct {
	delivery *aggregate.Delivery

	mu             sync.Mutex
	unanswered     int   // parts whose result waiting clients do not have
	unsettled      int   // parts with spans that have no outcome
	inFlight       int   // payloads and scrapes in flight that contain spans of the cycle
	maybeDelivered bool  // a destination has, or may have, some spans of the cycle
	err            error // first error, for waiting clients
}

// add adds one part to unanswered and unsettled.
func (c *cycleState) add() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unanswered++
	c.unsettled++
}

// fail records an error for waiting clients: a destination will not get the whole cycle.
func (c *cycleState) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
}

// resolve ends one part, both for its spans and for waiting clients. It settles the spans first:
// a client learns that they are settled before it learns that its flush has succeeded.
func (c *cycleState) resolve(err error) {
	c.settle()
	c.notifyClients(err)
}

// notifyClients removes one part from unanswered. err is the result of the part, nil if delivered.
// After the last part, waiting clients get the first error.
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

// settle removes one part from unsettled: all spans of the part have their outcome.
func (c *cycleState) settle() {
	c.mu.Lock()
	c.unsettled--
	isLast := c.unsettled == 0
	c.mu.Unlock()
	if isLast {
		c.delivery.Settle()
	}
}

// beginSend records that a payload or scrape with spans of the cycle is about to be sent.
func (c *cycleState) beginSend() { c.updateSend(1, false) }

// endSend records that the payload or scrape of a beginSend is no longer in flight. maybeDelivered
// is true unless it certainly did not arrive.
func (c *cycleState) endSend(maybeDelivered bool) { c.updateSend(-1, maybeDelivered) }

// updateSend updates inFlight and maybeDelivered. If this changes isInDoubt, it calls SetInDoubt,
// except after settlement. It does so under the lock, so that calls are in the order of changes and
// none follows Settle.
func (c *cycleState) updateSend(inFlight int, maybeDelivered bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.isInDoubt()
	c.inFlight += inFlight
	c.maybeDelivered = c.maybeDelivered || maybeDelivered
	after, isSettled := c.isInDoubt(), c.unsettled == 0
	if after != before && !isSettled {
		c.delivery.SetInDoubt(after)
	}
}

func (c *cycleState) isInDoubt() bool { return c.inFlight > 0 || c.maybeDelivered }

// openCycle is a cycle with spans that have no outcome yet at one destination.
type openCycle struct {
	state      *cycleState
	first      uint64    // number of the first cycle whose spans it contains
	number     uint64    // number of the first snapshot that contains the spans
	spans      uint64    // spans without an outcome
	born       time.Time // when the cycle was sealed
	isNotified bool      // notifyClients was called
	isSettled  bool      // settle was called
}

// settle settles the cycle at the destination, once.
func (c *openCycle) settle() {
	if !c.isSettled {
		c.isSettled = true
		c.state.settle()
	}
}

// notifyClients notifies waiting clients of the destination's result, once.
func (c *openCycle) notifyClients(err error) {
	if !c.isNotified {
		c.isNotified = true
		c.state.notifyClients(err)
	}
}

// openCycles are the open cycles of one destination of running totals or of scrapes. Such a
// destination gets snapshots of the totals, numbered in ascending order. Each snapshot contains the
// spans of all cycles up to its own, so a delivered snapshot settles all open cycles up to its
// number.
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

// removeUpTo removes and returns the cycles whose spans a snapshot contains. The caller settles
// them.
func (o *openCycles) removeUpTo(number uint64) []openCycle {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := o.countUpTo(number)
	removed := slices.Clone(o.all[:n])
	o.all = slices.Delete(o.all, 0, n)
	return removed
}

// keepMissing handles a snapshot that was delivered except for at most missing spans. The cycles
// whose spans the snapshot contains stay open, together with at most missing spans, which are
// assigned to the oldest cycles first. keepMissing returns the number of delivered spans.
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

// notifyUpTo passes an error to the clients that wait for a cycle whose spans a snapshot contains.
func (o *openCycles) notifyUpTo(number uint64, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.countUpTo(number) {
		o.all[i].notifyClients(err)
	}
}

// notifyOlder passes an error to the clients that wait for a cycle sealed before the given time.
func (o *openCycles) notifyOlder(before time.Time, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.all {
		if !o.all[i].born.After(before) {
			o.all[i].notifyClients(err)
		}
	}
}

// mergeOldest moves the spans of the oldest cycle to the next one, and removes the oldest cycle,
// until at most limit cycles are left. It returns the removed cycles. The caller settles them.
func (o *openCycles) mergeOldest(limit int) (removed []openCycle) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.all) > limit {
		oldest, next := o.all[0], &o.all[1]
		next.first, next.spans = oldest.first, next.spans+oldest.spans
		removed = append(removed, oldest)
		o.all = slices.Delete(o.all, 0, 1)
	}
	return removed
}

// subtractLost subtracts spans that no later snapshot contains from the cycles up to number. It
// subtracts at most the given number of spans, and returns how many it subtracted. It can be fewer,
// because some of them may have been delivered after the encoder counted them.
func (o *openCycles) subtractLost(spans, number uint64) (lost uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.countUpTo(number) {
		fromCycle := min(spans-lost, o.all[i].spans)
		o.all[i].spans -= fromCycle
		lost += fromCycle
	}
	return lost
}

// settleUpTo settles the cycles up to the given one. They stay open.
func (o *openCycles) settleUpTo(number uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.countUpTo(number) {
		o.all[i].settle()
	}
}

// any reports whether a cycle is open.
func (o *openCycles) any() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.all) > 0
}

// firstUnsettled returns the number of the first cycle with spans that have no outcome, or last if
// there is none.
func (o *openCycles) firstUnsettled(last uint64) uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.all) == 0 {
		return last
	}
	return o.all[0].first
}

// oldest returns the time at which the oldest open cycle was sealed, and false if no cycle is open.
func (o *openCycles) oldest() (born time.Time, any bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.all) == 0 {
		return time.Time{}, false
	}
	return o.all[0].born, true
}

// snapshot is the set of payloads with all running totals after one cycle. So it contains the spans
// of that cycle and of all earlier ones. If all payloads are accepted, the open cycles up to the
// snapshot are settled. If a payload is not accepted, they stay open with the spans that it may
// contain, because the next snapshot contains these again.
type snapshot struct {
	number uint64

	mu        sync.Mutex
	pending   int    // payloads without an outcome, plus one until all payloads are encoded
	isMissing bool   // a payload was not accepted
	missing   uint64 // maximum number of spans in the payloads that were not accepted
	rejected  uint64 // spans of accepted payloads that the destination rejected
}

// add adds a payload to pending.
func (s *snapshot) add() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending++
}

// payloadOutcome is the outcome of one payload of a snapshot. The zero value means accepted.
type payloadOutcome struct {
	isMissing   bool     // not accepted
	undelivered []uint64 // Payload.Undelivered of a payload that was not accepted
	rejected    uint64   // spans of an accepted payload that the destination rejected
}

// end removes one from pending, with the outcome of a payload, and reports whether none is left.
func (s *snapshot) end(o payloadOutcome) (isLast bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending--
	s.isMissing = s.isMissing || o.isMissing
	s.rejected += o.rejected
	for _, spans := range o.undelivered {
		s.missing += spans
	}
	return s.pending == 0
}
