package flush

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/dump"
)

// Flusher takes sealed cycles to the agent. See the package comment.
type Flusher struct {
	cfg   Config
	agent agentClient

	// What is known of the agent.
	features     *featureStore
	reachability reachability
	info         atomic.Pointer[info] // as it was last read

	// Of the sender only.
	backoff   backoff
	outcomes  outcomeLog
	dumps     *dump.Dir // nil where nothing is to be kept
	lastState string    // of the agent, by an answer

	queue   queue
	books   *books
	history history
	busiest atomic.Pointer[Busiest]

	accepting     sync.Mutex // guards the next four
	closed        bool
	merger        merger
	encoder       *encoder
	busiestReader busiestReader

	answers    chan answered // of deliveries, to the sender
	arrived    chan struct{} // holds a token when the queue has something new
	rediscover chan struct{} // holds a token when /info is to be read now
	returned   chan struct{} // holds a token when the agent is back

	closing context.Context // ends when no more is accepted
	close   context.CancelFunc
	hard    context.Context // ends when nothing may be sent any more
	abort   context.CancelFunc
	running sync.WaitGroup
}

// New starts a flusher. Close ends it.
func New(cfg Config) (*Flusher, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	var dumps *dump.Dir
	if cfg.DebugDir != "" {
		if dumps, err = dump.Open(cfg.DebugDir); err != nil {
			return nil, err
		}
	}
	return start(cfg, newHTTPAgent(cfg.Agent, cfg.Version, askPatience), dumps), nil
}

// start runs a flusher against any agent, so that tests can bring their own.
func start(cfg Config, agent agentClient, dumps *dump.Dir) *Flusher {
	f := &Flusher{
		cfg: cfg, agent: agent, dumps: dumps,
		features:     newFeatureStore(DefaultFeatures()),
		reachability: reachability{log: cfg.Log, url: cfg.Agent},
		outcomes:     outcomeLog{log: cfg.Log, began: map[trouble]time.Time{}},
		queue:        queue{maxBytes: cfg.RetryBytes, maxUnderWay: cfg.MaxPayloadBytes},
		books:        newBooks(),
		encoder:      newEncoder(),
		answers:      make(chan answered),
		arrived:      make(chan struct{}, 1),
		rediscover:   make(chan struct{}, 1),
		returned:     make(chan struct{}, 1),
	}
	f.busiest.Store(f.busiestReader.busiest(&aggregate.Sealed{}))
	f.info.Store(&info{})
	f.closing, f.close = context.WithCancel(context.Background())
	f.hard, f.abort = context.WithCancel(context.Background())
	f.running.Go(f.send)
	f.running.Go(f.discover)
	return f
}

// errClosed is why a cycle sealed after Close was not sent.
var errClosed = errors.New("the daemon is shutting down")

// Accept takes a sealed cycle over: merges and encodes it, releases its memory
// and leaves its payloads to the sender. It never waits for the agent.
func (f *Flusher) Accept(sealed *aggregate.Sealed) {
	f.accepting.Lock()
	defer f.accepting.Unlock()
	began, spans, delivery := time.Now(), sealed.Spans(), sealed.Delivery
	if sealed.Cleared > 0 {
		f.books.change(func(s *Stats) { s.Held += sealed.Cleared })
		f.books.unsent(NotWanted, sealed.Cleared)
	}
	if spans == 0 {
		sealed.Release()
		delivery.Resolve(nil)
		return
	}
	f.books.change(func(s *Stats) { s.Held += spans })
	f.busiest.Store(f.busiestReader.busiest(sealed))
	flush := f.history.begin(sealed, spans)
	if reason, err := f.unwelcome(); err != nil {
		sealed.Release()
		f.books.unsent(reason, spans)
		f.history.change(flush, func(f *Flush) { f.Outcomes[reason.result()], f.Said = 1, err.Error() })
		delivery.Resolve(err)
		return
	}
	// It counts one payload more while they are made, so that it is not resolved
	// before all of them are.
	c := &cycleDelivery{delivery: delivery, flush: flush, pending: 1}
	unencodable := f.encoder.encode(sealed, f.merger.merge(sealed), f.payloadLimit(), func(p *payload) { f.enqueue(c, p, began) })
	f.merger.forget()
	sealed.Release()
	took := time.Since(began)
	f.books.change(func(s *Stats) { s.FlushSeconds.observe(took.Seconds()) })
	f.history.change(flush, func(f *Flush) { f.Unencodable, f.EncodeSeconds = unencodable, took.Seconds() })
	var err error
	if unencodable > 0 {
		f.books.unsent(Unencodable, unencodable)
		f.cfg.Log.Error("statistics fit in no payload and are lost", "spans", unencodable, "error", errUnencodable)
		err = errUnencodable
	}
	c.resolve(err)
}

// unwelcome says why nothing can be sent at present, if so.
func (f *Flusher) unwelcome() (Reason, error) {
	switch {
	case f.closed:
		return Shutdown, errClosed
	case !f.Features().Stats:
		return NotWanted, errNotWanted
	}
	return "", nil
}

// payloadLimit is our own bound or the agent's, whichever is smaller. An agent
// that claims to take less than one group is not believed.
func (f *Flusher) payloadLimit() int {
	if said := f.Features().MaxRequestBytes; said > 0 {
		return min(f.cfg.MaxPayloadBytes, max(said, minPayloadBytes))
	}
	return f.cfg.MaxPayloadBytes
}

// enqueue hands a payload to the sender.
func (f *Flusher) enqueue(c *cycleDelivery, p *payload, now time.Time) {
	c.add()
	p.born, p.cycle = now, c
	f.books.change(func(s *Stats) { s.PayloadBytes.observe(float64(len(p.body))) })
	f.history.change(c.flush, func(f *Flush) {
		f.Payloads++
		f.Pending++
		f.Bytes += len(p.body)
	})
	f.giveUp(QueueFull, f.queue.put(p))
	notify(f.arrived)
}

var errUnencodable = errors.New("some groups fit in no payload; raise the payload limit")

// notify leaves a token for whoever waits on c, unless one is there already.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Close tries to send what still waits, each payload once and without pauses,
// until ctx ends. What is left then is unsent for Shutdown. It returns when
// every payload has its outcome and no goroutine is left.
func (f *Flusher) Close(ctx context.Context) {
	f.accepting.Lock()
	f.closed = true
	f.accepting.Unlock()
	f.close()
	stop := context.AfterFunc(ctx, f.abort)
	defer stop()
	f.running.Wait()
	f.abort()
}

// Stats is one consistent look at the books.
func (f *Flusher) Stats() Stats {
	s := f.books.look()
	s.QueuePayloads, s.QueueBytes = f.queue.size()
	s.QueueMaxBytes, s.MaxAge = f.cfg.RetryBytes, f.cfg.RetryAge
	if born, any := f.queue.eldest(); any {
		s.OldestAge = time.Since(born)
	}
	s.Reachable = f.reachability.answers.Load()
	s.Takes = f.Features().Stats && !f.reachability.refuses.Load()
	return s
}
