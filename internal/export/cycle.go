package export

import (
	"slices"
	"sync"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
)

// cycleState tracks what becomes of one sealed cycle at all destinations. It has three independent parts:
//
//	clients    unanswered > 0 ──── last answer ───> answered, with the first failure
//
//	spans      unsettled > 0 ──── last outcome ───> settled; nothing changes after that
//
//	recovery   clear ──── beginSend ───> in doubt ──── endSend, taken ───> in doubt for good
//	             ^                          |
//	             └─── endSend, not taken ───┘
//
// A cycle is in doubt while anything with its spans is being sent, and for good once a destination has some
// of them or may have. The daemon that follows one that was killed counts the spans of a cycle again unless
// it is in doubt or settled.
//
// Each payload of deltas counts once in unanswered and in unsettled. For running totals, and for what is
// scraped, the destination counts once. Answers can come before settlement: clients do not wait for spans
// that are held for a later payload.
type cycleState struct {
	delivery *aggregate.Delivery

	mu         sync.Mutex
	unanswered int
	unsettled  int
	inFlight   int  // payloads and scrapes with its spans
	isTaken    bool // a destination has some of its spans, or may have
	err        error
}

// add counts one more payload.
func (c *cycleState) add() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unanswered++
	c.unsettled++
}

// fail records that a destination will not get all of the cycle.
func (c *cycleState) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
}

// resolve records the outcome of one payload.
func (c *cycleState) resolve(err error) {
	c.answer(err)
	c.settle()
}

// answer records the result of one payload for waiting clients.
func (c *cycleState) answer(err error) {
	c.fail(err)
	c.mu.Lock()
	c.unanswered--
	isLast, first := c.unanswered == 0, c.err
	c.mu.Unlock()
	if isLast {
		c.delivery.Answer(first)
	}
}

// settle records that the spans of one payload have their outcome.
func (c *cycleState) settle() {
	c.mu.Lock()
	c.unsettled--
	isLast := c.unsettled == 0
	c.mu.Unlock()
	if isLast {
		c.delivery.Settle()
	}
}

// beginSend records that something with its spans is about to be sent.
func (c *cycleState) beginSend() { c.send(1, false) }

// endSend records that it was sent, and whether the destination has it or may have it.
func (c *cycleState) endSend(isTaken bool) { c.send(-1, isTaken) }

// send reports changes of doubt under the lock, so that they are in order and none comes after settlement.
func (c *cycleState) send(inFlight int, isTaken bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	wasInDoubt := c.isInDoubt()
	c.inFlight += inFlight
	c.isTaken = c.isTaken || isTaken
	if is := c.isInDoubt(); is != wasInDoubt && c.unsettled > 0 {
		c.delivery.Doubt(is)
	}
}

func (c *cycleState) isInDoubt() bool { return c.inFlight > 0 || c.isTaken }

// openCycle is a cycle with spans that have no outcome at a destination yet.
type openCycle struct {
	state      *cycleState
	number     uint64 // of the first snapshot that has its spans
	spans      uint64 // of it that are held
	born       time.Time
	isAnswered bool
}

func (c *openCycle) answer(err error) {
	if !c.isAnswered {
		c.isAnswered = true
		c.state.answer(err)
	}
}

// openCycles are the cycles that a destination of running totals, or one that is scraped, does not have
// yet. Each snapshot of the totals has the spans of all cycles up to its own, so the oldest are settled
// first.
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

// take removes the cycles up to a snapshot, which the caller settles.
func (o *openCycles) take(number uint64) []openCycle {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := o.upTo(number)
	taken := slices.Clone(o.all[:n])
	o.all = slices.Delete(o.all, 0, n)
	return taken
}

// keep keeps the cycles up to a snapshot of which a part with so many of their spans at most was not
// delivered, and returns how many were.
func (o *openCycles) keep(number, missing uint64) (delivered uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.upTo(number) {
		kept := min(missing, o.all[i].spans)
		delivered += o.all[i].spans - kept
		missing -= kept
		o.all[i].spans = kept
	}
	return delivered
}

// upTo is how many cycles a snapshot has the spans of. The caller holds the lock.
func (o *openCycles) upTo(number uint64) (n int) {
	for n < len(o.all) && o.all[n].number <= number {
		n++
	}
	return n
}

// states are the cycles that a snapshot has the spans of.
func (o *openCycles) states(number uint64) (states []*cycleState) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.upTo(number) {
		states = append(states, o.all[i].state)
	}
	return states
}

// answer tells clients that wait for a cycle up to a snapshot.
func (o *openCycles) answer(number uint64, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.upTo(number) {
		o.all[i].answer(err)
	}
}

// answerOld tells clients that wait for a cycle sealed before a time.
func (o *openCycles) answerOld(before time.Time, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.all {
		if !o.all[i].born.After(before) {
			o.all[i].answer(err)
		}
	}
}

// bound joins the oldest cycles with the one after them until there are no more than limit, and returns
// those that lost their spans to another. Its caller settles them.
func (o *openCycles) bound(limit int) (joined []openCycle) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.all) > limit {
		o.all[1].spans += o.all[0].spans
		joined = append(joined, o.all[0])
		o.all = slices.Delete(o.all, 0, 1)
	}
	return joined
}

// lose takes spans that will never be delivered off the cycles up to a snapshot, and returns how many there
// were. The others were delivered after the encoder had looked.
func (o *openCycles) lose(spans, number uint64) (lost uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.upTo(number) {
		n := min(spans-lost, o.all[i].spans)
		o.all[i].spans -= n
		lost += n
	}
	return lost
}

// oldest is when the oldest cycle was sealed, false if there is none.
func (o *openCycles) oldest() (born time.Time, any bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.all) == 0 {
		return time.Time{}, false
	}
	return o.all[0].born, true
}

// snapshot is the payloads of one cycle at a destination of running totals: together they have all totals,
// hence the spans of each cycle up to this one. It settles those cycles if all its payloads are accepted.
// If one is missing the cycles stay open, with the spans that it may have, because the next snapshot has
// everything again.
type snapshot struct {
	number uint64

	mu        sync.Mutex
	pending   int    // payloads without an outcome, and one more while they are made
	isMissing bool   // a payload was not accepted
	missing   uint64 // spans of such payloads that the destination may lack
	rejected  uint64 // spans that the destination left out of accepted payloads
}

// add counts one more payload.
func (s *snapshot) add() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending++
}

// partOutcome is the outcome of one payload of a snapshot. The zero value is one that was accepted.
type partOutcome struct {
	isMissing   bool     // it was not accepted
	undelivered []uint64 // spans that are missing with it at most, by series
	rejected    uint64   // spans that the destination left out of it
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
