package agent

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/decode/payload"
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/post"
)

// scripted is a scripted agent without a network, so that tests can run in synthetic time.
type scripted struct {
	mu     sync.Mutex
	answer func(ctx context.Context, p *export.Payload) post.Answer
	info   func() (agentInfo, error)
	tries  int
	asked  []time.Time // times of reads of /info
}

func (s *scripted) deliver(ctx context.Context, p *export.Payload) post.Answer {
	s.mu.Lock()
	s.tries++
	reply := s.answer
	s.mu.Unlock()
	if reply == nil {
		return post.Answer{}
	}
	return reply(ctx, p)
}

func (s *scripted) readInfo(context.Context) (agentInfo, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, time.Now())
	if s.info == nil {
		return agentInfo{features: DefaultFeatures(), state: "first"}, nil
	}
	return s.info()
}

// answers changes the behavior of the agent.
func (s *scripted) answers(reply func(ctx context.Context, p *export.Payload) post.Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = reply
}

// restore lets the agent behave normally again.
func (s *scripted) restore() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer, s.info = nil, nil
}

func (s *scripted) tried() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tries
}

func always(a post.Answer) func(context.Context, *export.Payload) post.Answer {
	return func(context.Context, *export.Payload) post.Answer { return a }
}

// failed returns an answer for a request without a response.
func failed(outcome export.Outcome, silent bool, err error) post.Answer {
	return post.Answer{Attempt: export.Attempt{Outcome: outcome, Silent: silent, Err: err}}
}

func stateOf(a post.Answer) string { return a.Header.Get("Datadog-Agent-State") }

var (
	errDown = errors.New("connection refused")
	down    = always(failed(export.OutcomeNotYet, true, errDown))
	noInfo  = func() (agentInfo, error) { return agentInfo{}, errDown }
)

// longestPause is the longest pause between two attempts in package export.
const longestPause = 30 * time.Second

// running is a flusher with one destination, an agent.
type running struct {
	*export.Flusher
	*Exporter
}

func (r running) Stats() export.Stats { return r.Destinations()[0].Stats() }

// startScripted starts a flusher, whose log it returns, and closes it at the end of the test.
func startScripted(t *testing.T, agent client, edit func(*export.Config)) (running, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	cfg := export.Config{Log: slog.New(slog.NewTextHandler(&log, nil))}
	if edit != nil {
		edit(&cfg)
	}
	e := newExporter(Config{URL: URL{Network: "unix", Address: "/nowhere"}, Log: cfg.Log}, agent)
	return start(t, cfg, e), &log
}

func start(t *testing.T, cfg export.Config, e *Exporter) running {
	t.Helper()
	f, err := export.New(cfg, e.Describe())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close(t.Context()) })
	return running{f, e}
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
func balanced(t *testing.T, r running, accepted uint64) export.Stats {
	t.Helper()
	s := r.Stats()
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

func mustEncode(t testing.TB, sealed *aggregate.Sealed, limit int) []*export.Payload {
	t.Helper()
	payloads, unencodable := encodeAll(newEncoder(), sealed, limit)
	if unencodable != 0 {
		t.Fatalf("%d spans unencodable", unencodable)
	}
	return payloads
}

func encodeAll(e *encoder, sealed *aggregate.Sealed, limit int) (payloads []*export.Payload,
	unencodable uint64,
) {
	return (&reused{encoder: e}).all(sealed, limit)
}

// reused merges and encodes repeatedly.
type reused struct {
	merger  export.Merger
	encoder *encoder
}

// all keeps the payloads instead of sending them.
func (r *reused) all(sealed *aggregate.Sealed, limit int) (payloads []*export.Payload, unencodable uint64) {
	defer r.merger.Forget()
	cycle := &export.Cycle{Sealed: sealed, Rows: r.merger.Merge(sealed), Limit: limit}
	made := r.encoder.encode(cycle, func(p *export.Payload) {
		payloads = append(payloads, p)
	})
	return payloads, made.Unencodable
}

// sequence returns the sequence number in a payload.
func sequence(t testing.TB, p *export.Payload) uint64 {
	t.Helper()
	decoded, err := payload.Decode(p.Body)
	if err != nil {
		t.Fatal(err)
	}
	return decoded.Sequence
}
