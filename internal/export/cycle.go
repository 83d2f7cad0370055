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
//	clients    unansweredParts > 0 ─ last response ─> answered, with the first error
//
//	spans      unsettledParts > 0 ── last outcome ───> settled; final
//
//	recovery   clear ──── recordSendStart ───> in doubt ──── recordSendEnd, maybe delivered ───> in doubt, final
//	             ^                               |
//	             └─ recordSendEnd, not delivered ┘
//
// A cycle is in doubt while a payload or scrape with its spans is being sent. It stays in doubt once
// a destination has, or may have, some of its spans. After a crash, the next daemon counts the spans
// of a cycle again unless the cycle is in doubt or settled.
//
// A cycle has several parts: one per payload of deltas, and one per destination of running totals
// or scrapes. Each part counts as one in unansweredParts and in unsettledParts. Clients can be
// answered before the cycle is settled: they do not wait for spans that a later payload will
// contain.
type cycleState struct {
	delivery *aggregate.Delivery

	mu              sync.Mutex
	unansweredParts int   // parts whose result waiting clients do not have
	unsettledParts  int   // parts with spans that have no outcome
	inFlight        int   // payloads and scrapes in flight that contain spans of the cycle
	maybeDelivered  bool  // a destination has, or may have, some spans of the cycle
	isInDoubt       bool  // the last argument of delivery.SetInDoubt
	err             error // first error, for waiting clients
}

// addPart adds one part, for example a payload. It has no result yet: the caller must call resolvePart later, or
// settlePart and answerPart.
func (c *cycleState) addPart() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unansweredParts++
	c.unsettledParts++
}

// recordError records the first error that is not nil. Clients that wait for the cycle get it.
func (c *cycleState) recordError(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
}

// resolvePart settles one part of the cycle, and then reports its result to waiting clients, in this
// order: when a client learns that its flush has succeeded, the spans must be settled. err is nil if
// the part, for example a payload, was delivered.
func (c *cycleState) resolvePart(err error) {
	c.settlePart()
	c.answerPart(err)
}

// answerPart records the result of one part of a cycle (export interval), for example a payload: nil if it was
// delivered, and otherwise an error. After the last part, it sends the first error, or nil, to the clients that
// wait for the delivery of the cycle.
func (c *cycleState) answerPart(err error) {
	c.recordError(err)
	c.mu.Lock()
	c.unansweredParts--
	isLast := c.unansweredParts == 0
	firstErr := c.err
	c.mu.Unlock()
	if isLast {
		c.delivery.Answer(firstErr)
	}
}

// settlePart records that all spans in one part of a cycle (export interval), for example a payload, were delivered
// or lost. After the last part, it marks the cycle as settled in the recovery file. After a crash, the next daemon
// then does not report these spans as lost.
func (c *cycleState) settlePart() {
	c.mu.Lock()
	c.unsettledParts--
	isLast := c.unsettledParts == 0
	c.mu.Unlock()
	if isLast {
		c.delivery.Settle()
	}
}

// recordSendStart records that a request with spans of the cycle, an export interval, is about to be sent. If the
// daemon crashes from now on, the next daemon does not count these spans again, because they may have arrived.
func (c *cycleState) recordSendStart() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inFlight++
	c.updateDoubt()
}

// recordSendEnd records that a request with spans of the cycle, an export interval, has ended. maybeDelivered is false
// only if the spans have certainly not arrived.
func (c *cycleState) recordSendEnd(maybeDelivered bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inFlight--
	if maybeDelivered {
		c.maybeDelivered = true
	}
	c.updateDoubt()
}

// updateDoubt records in the recovery file whether the cycle is in doubt: whether a destination may have received some
// of its spans. After all spans of the cycle are delivered or lost, it does nothing. The caller must hold c.mu, because
// SetInDoubt must not be called concurrently.
func (c *cycleState) updateDoubt() {
	isInDoubt := c.inFlight > 0 || c.maybeDelivered
	isSettled := c.unsettledParts == 0
	if isSettled || isInDoubt == c.isInDoubt {
		return
	}
	c.isInDoubt = isInDoubt
	c.delivery.SetInDoubt(isInDoubt)
}

// undeliveredCycle is an export interval with spans that are neither delivered nor lost yet, at one destination. It can
// also cover several successive intervals, which mergeOldest has merged.
type undeliveredCycle struct {
	state       *cycleState // state of the last interval
	firstNumber uint64      // number of the first interval
	lastNumber  uint64      // number of the last interval, and of the first snapshot that contains all spans
	amount      Amount      // spans and values that are neither delivered nor lost
	sealed      time.Time   // time when the last interval was sealed
	isAnswered  bool        // answer was called
	isSettled   bool        // settle was called
}

// newUndeliveredCycle returns an undelivered cycle for c, which has the given number.
func newUndeliveredCycle(c *Cycle, number uint64, sealed time.Time) undeliveredCycle {
	return undeliveredCycle{state: c.state, firstNumber: number, lastNumber: number, amount: c.amount, sealed: sealed}
}

// settle settles the part of the cycle for this destination. Further calls do nothing.
func (c *undeliveredCycle) settle() {
	if !c.isSettled {
		c.isSettled = true
		c.state.settlePart()
	}
}

// answer reports the result of this destination to the clients that wait for the delivery of the cycle: nil if the
// destination has received all spans, and otherwise an error. Further calls do nothing.
func (c *undeliveredCycle) answer(err error) {
	if !c.isAnswered {
		c.isAnswered = true
		c.state.answerPart(err)
	}
}

// undeliveredCycles are the cycles (export intervals) with undelivered spans, at one destination of running totals or
// of scrapes. Such a destination gets snapshots of the totals, numbered in ascending order. Each snapshot contains the
// spans of all cycles up to its own, so a delivered snapshot settles all undelivered cycles up to its number.
type undeliveredCycles struct {
	mu     sync.Mutex
	cycles []undeliveredCycle // oldest first
}

// add adds a cycle that is newer than all others.
func (o *undeliveredCycles) add(c undeliveredCycle) {
	c.state.addPart()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.cycles = append(o.cycles, c)
}

// removeUpTo removes the undelivered cycles (export intervals) up to lastNumber, and returns them. The caller must call
// settle for each of them.
func (o *undeliveredCycles) removeUpTo(lastNumber uint64) []undeliveredCycle {
	o.mu.Lock()
	defer o.mu.Unlock()
	count := len(o.cyclesUpTo(lastNumber))
	removed := slices.Clone(o.cycles[:count])
	o.cycles = slices.Delete(o.cycles, 0, count)
	return removed
}

// removeDelivered removes the delivered spans from the cycles up to lastNumber, and returns their number. undelivered is
// the number of spans that remain. It is not known which cycles contain them, so removeDelivered assumes the oldest ones.
func (o *undeliveredCycles) removeDelivered(lastNumber, undelivered uint64) (delivered uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	cycles := o.cyclesUpTo(lastNumber)
	for i := range cycles {
		cycle := &cycles[i]
		undeliveredInCycle := min(undelivered, cycle.amount.Spans)
		undelivered -= undeliveredInCycle // the rest is in later cycles
		delivered += cycle.amount.Spans - undeliveredInCycle
		cycle.amount.Spans = undeliveredInCycle
	}
	return delivered
}

// cyclesUpTo returns the undelivered cycles (export intervals) up to lastNumber, oldest first. The result shares memory
// with o.cycles. The caller holds the lock.
func (o *undeliveredCycles) cyclesUpTo(lastNumber uint64) []undeliveredCycle {
	for i := range o.cycles {
		if o.cycles[i].lastNumber > lastNumber {
			return o.cycles[:i]
		}
	}
	return o.cycles
}

// statesUpTo returns the states of the undelivered cycles (export intervals) up to lastNumber.
func (o *undeliveredCycles) statesUpTo(lastNumber uint64) (states []*cycleState) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range o.cyclesUpTo(lastNumber) {
		states = append(states, c.state)
	}
	return states
}

// answerUpTo reports err, or success if it is nil, to the clients that wait for the delivery of the cycles (export
// intervals) up to lastNumber.
func (o *undeliveredCycles) answerUpTo(lastNumber uint64, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	cycles := o.cyclesUpTo(lastNumber)
	for i := range cycles {
		cycles[i].answer(err)
	}
}

// answerOlderThan reports err to the clients that wait for the delivery of a cycle (export interval) that was sealed at
// time t or earlier.
func (o *undeliveredCycles) answerOlderThan(t time.Time, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.cycles {
		if isOlder := !o.cycles[i].sealed.After(t); isOlder {
			o.cycles[i].answer(err)
		}
	}
}

// mergeOldest reduces the number of undelivered cycles (export intervals) to limit, which must be at least 1. It
// repeatedly removes the oldest cycle and adds its spans to the next one, which accounts for them from then on. It
// returns the removed cycles. The caller must call settle for each of them.
func (o *undeliveredCycles) mergeOldest(limit int) (removed []undeliveredCycle) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.cycles) > limit {
		oldest, next := o.cycles[0], &o.cycles[1]
		next.firstNumber = oldest.firstNumber // next covers both cycles from now on
		next.amount = next.amount.plus(oldest.amount)
		removed = append(removed, oldest)
		o.cycles = slices.Delete(o.cycles, 0, 1)
	}
	return removed
}

// removeLost removes lost spans and values, which will never be delivered, from the cycles up to lastNumber, beginning
// with the oldest cycle. It returns the removed amount, which is less than lost if the cycles contain fewer spans or
// values.
func (o *undeliveredCycles) removeLost(lastNumber uint64, lost Amount) (removed Amount) {
	o.mu.Lock()
	defer o.mu.Unlock()
	cycles := o.cyclesUpTo(lastNumber)
	for i := range cycles {
		cycle := &cycles[i]
		lostInCycle := lost.minus(removed).atMost(cycle.amount)
		cycle.amount = cycle.amount.minus(lostInCycle)
		removed = removed.plus(lostInCycle)
	}
	return removed
}

// settleUpTo marks the undelivered cycles (export intervals) up to lastNumber as settled: if the daemon crashes later,
// the next daemon does not report their spans as lost. It does not remove the cycles, because this daemon can still
// deliver the spans.
func (o *undeliveredCycles) settleUpTo(lastNumber uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	cycles := o.cyclesUpTo(lastNumber)
	for i := range cycles {
		cycles[i].settle()
	}
}

// hasAny reports whether there is any undelivered cycle.
func (o *undeliveredCycles) hasAny() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.cycles) > 0
}

// firstNumber returns the number of the first export interval with undelivered spans, or fallback if there is none.
func (o *undeliveredCycles) firstNumber(fallback uint64) uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.cycles) == 0 {
		return fallback
	}
	oldest := &o.cycles[0]
	return oldest.firstNumber // not lastNumber, because mergeOldest can have added earlier intervals to it
}

// oldestSealed returns the time at which the oldest undelivered cycle was sealed, or false if there is none. A cycle is
// sealed at the end of its export interval.
func (o *undeliveredCycles) oldestSealed() (sealed time.Time, isAny bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.cycles) == 0 {
		return time.Time{}, false
	}
	return o.cycles[0].sealed, true
}

// snapshot is the set of payloads with all running totals after one cycle. So it contains the spans
// of that cycle and of all earlier ones. If all payloads are accepted, the undelivered cycles up to the
// snapshot are settled. If a payload is not accepted, these cycles remain undelivered with the spans of
// the payload, because the next snapshot contains the spans again. A snapshot is complete when all
// payloads are encoded and have an outcome.
type snapshot struct {
	number uint64

	mu               sync.Mutex
	isEncoded        bool   // all payloads are encoded
	pendingPayloads  int    // encoded payloads without an outcome
	hasUndelivered   bool   // a payload with spans was not accepted
	undeliveredSpans uint64 // maximum number of spans in the payloads that were not accepted
	rejectedSpans    uint64 // spans of accepted payloads that the destination rejected
}

// addPendingPayload records that a payload of the snapshot was encoded.
func (s *snapshot) addPendingPayload() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pendingPayloads++
}

// endEncoding records that all payloads of the snapshot are encoded. It returns true if this completes the snapshot,
// because all payloads have outcomes already.
func (s *snapshot) endEncoding() (isComplete bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isEncoded = true
	return s.pendingPayloads == 0
}

// payloadOutcome is the outcome of one payload of a snapshot. The zero value means accepted.
type payloadOutcome struct {
	isUndelivered    bool   // the payload contains spans, and was not accepted
	undeliveredSpans uint64 // maximum number of spans in a payload that was not accepted
	rejectedSpans    uint64 // spans of an accepted payload that the destination rejected
}

// recordOutcome records the outcome of one payload of the snapshot. It returns true if this completes the snapshot:
// all its payloads are encoded, and have an outcome.
func (s *snapshot) recordOutcome(o payloadOutcome) (isComplete bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.isUndelivered {
		s.hasUndelivered = true
	}
	s.undeliveredSpans += o.undeliveredSpans
	s.rejectedSpans += o.rejectedSpans
	s.pendingPayloads--
	return s.isEncoded && s.pendingPayloads == 0
}
