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
	pauses  int // how many there had been when it began
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

func (s *sender) send() {
	for s.begin(); !s.finished(); s.begin() {
		s.wait(time.Now())
	}
	s.giveUp(Shutdown, s.queue.drain()...)
}

// begin begins the deliveries whose turn has come.
func (s *sender) begin() {
	now := time.Now()
	if s.closing.Err() == nil {
		s.giveUp(Expired, s.queue.expire(now.Add(-s.cfg.RetryAge))...)
	}
	for s.mayBegin(now) {
		p := s.queue.take()
		if p == nil {
			return
		}
		one := delivery{p, s.backoff.pauses}
		s.running.Go(func() { s.deliver(one) })
	}
}

// mayBegin says whether another delivery may. Where the last one failed, the next
// goes alone, to find out whether the destination is back. While closing nobody pauses.
func (s *sender) mayBegin(now time.Time) bool {
	switch {
	case s.hard.Err() != nil:
		return false
	case s.closing.Err() != nil:
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
func (s *sender) finished() bool {
	if s.closing.Err() == nil || s.queue.deliveries() > 0 {
		return false
	}
	_, waits := s.queue.oldest()
	return !waits || s.hard.Err() != nil
}

// wait returns when something can have changed: an answer, a new payload, the end of
// the pause, the oldest payload's last moment, or the ens. A destination
// that was asked in vain and now answers ends the pause, because what waits may be
// about to expire.
func (s *sender) wait(now time.Time) {
	due, ends := s.due(now), s.closing.Done()
	if s.closing.Err() != nil {
		due, ends = nil, s.hard.Done()
	}
	if s.hard.Err() != nil {
		ends = nil
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
	waiting, _ := s.queue.size()
	s.outcomes.tried(a, waiting, s.books.look().Held)
	s.link.tried(a)
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
