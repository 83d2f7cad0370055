package flush

import (
	"context"
	"sync"
	"time"
)

// sender brings payloads to one destination. Its goroutine alone decides which payload goes
// when, and what an answer means. A delivery is a goroutine that lasts for one request, and
// decides nothing.
type sender struct {
	settler
	exporter Exporter
	cfg      Config
	queue    queue
	link     *Link
	unread   *Unread // what is published; nil where payloads are sent
	backoff  backoff

	answers chan answered // of deliveries
	arrived chan struct{} // holds a token when the queue has something new

	closing context.Context // ends when no more is accepted
	close   context.CancelFunc
	hard    context.Context // ends when nothing may be sent any more
	abort   context.CancelFunc
	running sync.WaitGroup
}

// delivery is one payload on its way to a destination.
type delivery struct {
	payload *Payload
	says    cycleDeliveries // that are told of it
	pauses  int             // how many there had been when it began
}

// answered is a delivery that has returned, and what became of it.
type answered struct {
	delivery
	Attempt
}

func newSender(cfg Config, x Exporter) *sender {
	s := &sender{
		settler:  settler{name: x.Name(), books: newBooks(), outcomes: newOutcomeLog(cfg.Log, x)},
		exporter: x,
		cfg:      cfg,
		queue:    queue{maxBytes: cfg.RetryBytes, maxUnderWay: cfg.MaxPayloadBytes, inOrder: isInOrder(x)},
		link:     newLink(),
		unread:   unreadOf(x),
		answers:  make(chan answered),
		arrived:  make(chan struct{}, 1),
	}
	s.closing, s.close = context.WithCancel(context.Background())
	s.hard, s.abort = context.WithCancel(context.Background())
	return s
}

// start begins to send what is enqueued, until end.
func (s *sender) start() {
	s.running.Go(s.send)
	if x, is := s.exporter.(watches); is {
		s.running.Go(func() { x.Watch(s.closing, s.link) })
	}
}

// enqueue hands a payload over.
func (s *sender) enqueue(p *Payload) {
	s.giveUp(QueueFull, s.queue.put(p)...)
	notify(s.arrived)
}

// end tries to send what still waits, each payload once and without pauses, until ctx
// ends. What is left then is unsent for Shutdown. It returns when every payload has its
// outcome and no goroutine is left. close comes before.
func (s *sender) end(ctx context.Context) {
	stop := context.AfterFunc(ctx, s.abort)
	defer stop()
	s.running.Wait()
	s.abort()
}

// phase is how far a sender has come. send reads it once a turn: what is decided by a phase and
// what is waited for must agree, or the end of the phase could go by between them.
type phase int

const (
	accepting phase = iota // until close
	draining               // until nothing is left, or abort
	aborted
)

func (s *sender) phase() phase {
	switch {
	case s.hard.Err() != nil:
		return aborted
	case s.closing.Err() != nil:
		return draining
	}
	return accepting
}

func (s *sender) send() {
	for {
		now, phase := time.Now(), s.phase()
		s.begin(now, phase)
		if s.finished(phase) {
			break
		}
		s.wait(now, phase)
	}
	s.giveUp(Shutdown, s.queue.drain()...)
}

// begin begins the deliveries whose turn has come.
func (s *sender) begin(now time.Time, in phase) {
	if in == accepting {
		s.giveUp(Expired, s.queue.expire(now.Add(-s.cfg.RetryAge))...)
	}
	for s.mayBegin(now, in) {
		p := s.queue.take()
		if p == nil {
			return
		}
		one := delivery{payload: p, pauses: s.backoff.pauses}
		if s.unread == nil {
			one.says = p.says()
			one.says.leave()
		}
		s.running.Go(func() { s.deliver(one) })
	}
}

// mayBegin says whether another delivery may. Where the last one failed, the next
// goes alone, to find out whether the destination is back. While closing nobody pauses.
func (s *sender) mayBegin(now time.Time, in phase) bool {
	switch in {
	case aborted:
		return false
	case draining:
		return true
	}
	return s.backoff.over(now) && (s.backoff.failures == 0 || s.queue.deliveries() == 0)
}

// deliver offers the destination a payload once.
func (s *sender) deliver(one delivery) {
	ctx, cancel := context.WithTimeout(s.hard, s.cfg.Timeout)
	defer cancel()
	s.answers <- answered{one, s.exporter.Deliver(ctx, one.payload)}
}

// finished says whether the destination is closed and nothing is left, or no time to
// send it.
func (s *sender) finished(in phase) bool {
	if in == accepting || s.queue.deliveries() > 0 {
		return false
	}
	_, waits := s.queue.oldest()
	return !waits || in == aborted
}

// wait returns when something can have changed: an answer, a new payload, the end of
// the pause, the oldest payload's last moment, or the end of the phase. A destination
// that was asked in vain and now answers ends the pause, because what waits may be
// about to expire.
func (s *sender) wait(now time.Time, in phase) {
	var due <-chan time.Time
	var ends <-chan struct{} // never, once aborted: only answers are left then
	switch in {
	case accepting:
		due, ends = s.due(now), s.closing.Done()
	case draining:
		ends = s.hard.Done()
	}
	select {
	case a := <-s.answers:
		s.queue.returned(a.payload)
		s.conclude(a.delivery, a.Attempt)
	case <-due:
	case <-s.arrived:
	case <-s.link.returned:
		s.backoff.end()
	case <-ends:
	}
}

// due fires at the end of the pause, or at the oldest payload's last moment. It
// never does where nothing waits.
func (s *sender) due(now time.Time) <-chan time.Time {
	born, any := s.queue.oldest()
	if !any {
		return nil
	}
	wait := born.Add(s.cfg.RetryAge).Sub(now)
	if !s.backoff.over(now) {
		wait = min(wait, s.backoff.until.Sub(now))
	}
	return time.After(wait)
}

// conclude settles a payload by what became of an attempt, or keeps it for another.
func (s *sender) conclude(one delivery, a Attempt) {
	p := one.payload
	one.says.returned(a.Outcome == OutcomeAccepted || a.Outcome == OutcomeUnknown)
	if a.Outcome == OutcomeUnknown && p.copy != nil {
		a.Outcome = OutcomeNotYet // a second copy of a total changes nothing
	}
	waiting, _ := s.queue.size()
	s.outcomes.tried(a, waiting, s.books.look().Held)
	s.link.tried(a)
	if !a.Clock.At.IsZero() {
		s.books.change(func(b *Stats) { b.Clock = a.Clock })
	}
	p.tries++
	p.lastErr = a.Err
	s.history.change(p.flush, func(f *Flush) {
		f.Tries++
		if a.Err != nil {
			f.Said = a.Err.Error()
		}
	})
	switch a.Outcome {
	case OutcomeAccepted:
		s.backoff.succeeded(one.pauses)
		s.take(p, a.Rejected)
	case OutcomeNotYet:
		s.keep(one, a.After)
	case OutcomeRefused:
		s.giveUp(Rejected, p)
	case OutcomeNotWanted:
		s.giveUp(NotWanted, p)
	case OutcomeUnknown:
		s.giveUp(Ambiguous, p)
	}
}

// keep puts a payload back that did not arrive, unless a newer one says its totals too.
// While closing there is no second try.
func (s *sender) keep(one delivery, after time.Duration) {
	p := one.payload
	isOld := p.copy != nil && !p.copy.isNewest()
	if s.closing.Err() != nil && !isOld {
		s.giveUp(Shutdown, p)
		return
	}
	s.backoff.extend(time.Now(), after, one.pauses)
	if isOld {
		s.supersede(p)
		return
	}
	s.books.change(func(b *Stats) { b.Payloads[ResultRetried]++ })
	s.giveUp(QueueFull, s.queue.put(p)...)
}
