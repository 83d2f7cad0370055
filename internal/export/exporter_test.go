package export

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
)

// scripted is an exporter with a scripted destination and no network, so that tests can run in
// synthetic time.
type scripted struct {
	name      string
	inOrder   bool
	unwilling bool // reports that it does not accept statistics
	takes     int  // maximum length of a payload; 0 if unknown

	mu     sync.Mutex
	answer func(ctx context.Context, p *Payload) Attempt
	tries  []try
	limits []int // limit of each Encode
}

type try struct {
	sequence uint64
	at       time.Time
}

// describer is an exporter of the tests.
type describer interface{ describe() Exporter }

func (s *scripted) describe() Exporter {
	return Exporter{
		Name: cmp.Or(s.name, "agent"), URL: "unix:///nowhere", Push: s, InOrder: s.inOrder,
		AcceptsStatistics: s.acceptsStatistics, PayloadLimit: s.payloadLimit,
		Watch: func(_ context.Context, link *Link) { link.SetReachable() },
	}
}

// describePush describes an exporter that contains a scripted one.
func describePush(within describer, p Push) Exporter {
	x := within.describe()
	x.Push = p
	return x
}

func (s *scripted) acceptsStatistics() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.unwilling
}

func (s *scripted) payloadLimit() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.takes
}

// Encode writes a row as as many bytes as its texts have, plus a hundred.
func (s *scripted) Encode(c *Cycle, emit func(*Payload)) Encoded {
	unencodable := uint64(0)
	s.limits = append(s.limits, c.Limit)
	var open *Payload
	for i := range c.Rows {
		r := &c.Rows[i]
		origin, row := c.Origins[r.Origin()], append(make([]byte, 100), r.Key().Resource...)
		if len(row) > c.Limit {
			unencodable += r.Spans
			continue
		}
		if open != nil && (open.Origin != origin || len(open.Body)+len(row) > c.Limit) {
			emit(open)
			open = nil
		}
		if open == nil {
			open = &Payload{Origin: origin}
		}
		open.Body, open.Spans = append(open.Body, row...), open.Spans+r.Spans
	}
	if open != nil {
		emit(open)
	}
	return Encoded{Unencodable: unencodable}
}

func (s *scripted) Deliver(ctx context.Context, p *Payload) Attempt {
	s.mu.Lock()
	s.tries = append(s.tries, try{p.sequence, time.Now()})
	reply := s.answer
	s.mu.Unlock()
	if reply == nil {
		return Attempt{}
	}
	return reply(ctx, p)
}

// answers changes the behavior of the destination.
func (s *scripted) answers(reply func(ctx context.Context, p *Payload) Attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = reply
}

func (s *scripted) tried() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.tries)
}

func always(a Attempt) func(context.Context, *Payload) Attempt {
	return func(context.Context, *Payload) Attempt { return a }
}

var (
	errDown     = errors.New("connection refused")
	errNoAnswer = errors.New("no response to a request that was sent completely")
	down        = always(Attempt{Outcome: OutcomeNotYet, Silent: true, Err: errDown})
)

// running is a flusher with one destination.
type running struct {
	*Flusher
	*pushDestination
}

// startScripted starts a flusher, whose log it returns, and closes it at the end of the test.
func startScripted(t *testing.T, exporter describer, edit func(*Config)) (running, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	cfg := Config{Log: slog.New(slog.NewTextHandler(&log, nil))}
	if edit != nil {
		edit(&cfg)
	}
	f, err := New(cfg, exporter.describe())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close(t.Context()) })
	return running{f, f.Destinations()[0].(*pushDestination)}, &log
}

// resolution returns the result of a delivery, if it is known.
func resolution(d *aggregate.Delivery) (err error, resolved bool) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for range 20 { // both cases of Wait can be ready; it picks one at random
		if err = d.Wait(ctx); !errors.Is(err, context.Canceled) {
			return err, true
		}
	}
	return nil, false
}

// balanced fails the test unless each span is counted exactly once.
func balanced(t *testing.T, d interface{ Stats() Stats }, accepted uint64) Stats {
	t.Helper()
	s := d.Stats()
	sum := s.Flushed + s.Pending + s.BeforeDiscovery
	for _, n := range s.Unsent {
		sum += n
	}
	if sum != accepted {
		t.Errorf("%d flushed, %d held, unsent %v: %d in all, want %d", s.Flushed, s.Pending, s.Unsent, sum,
			accepted)
	}
	return s
}
