package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/recovery"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// TestAccounting_DestinationsFailForADay runs everything between a connection and a destination for a day of
// synthetic time. Publishers connect, publish, pause and disconnect. Two destinations accept,
// refuse, hang, are silent, or do not accept statistics for a while. At the end, the counters of each
// destination contain each offered span once, and agree with the spans that the destination
// counted.
func TestAccounting_DestinationsFailForADay(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir() // removed outside of the bubble
			synctest.Test(t, func(t *testing.T) { runForADay(t, seed, filepath.Join(dir, "s")) })
		})
	}
}

const aDay = 24 * time.Hour

func runForADay(t *testing.T, seed uint64, path string) {
	file, err := recovery.Create(recovery.Config{Path: path, Connections: 64, Log: slog.Default()})
	if err != nil {
		t.Fatal(err)
	}
	destinations := []*erratic{newErratic("one", seed), newErratic("other", seed+100)}
	flusher, err := export.New(export.Config{}, destinations[0].describe(), destinations[1].describe())
	if err != nil {
		t.Fatal(err)
	}
	counting := aggregate.DefaultConfig()
	counting.Deliver, counting.Recovery, counting.RingSlots = flusher.Accept, file, 1024
	aggregator, err := aggregate.New(counting)
	if err != nil {
		t.Fatal(err)
	}
	admitting := admit.DefaultConfig()
	admitting.Aggregator, admitting.Recovery = aggregator, file
	publishers, err := admit.New(admitting)
	if err != nil {
		t.Fatal(err)
	}
	aggregator.Start()
	var running sync.WaitGroup
	offered := make([]uint64, 3)
	for i := range offered {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		running.Go(func() { offered[i] = publishForADay(t, publishers, aggregator, random) })
	}
	running.Wait()
	aggregator.Stop()
	ending, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	flusher.Close(ending)
	admitted, all := publishers.Stats(), aggregator.Stats()
	if sum := offered[0] + offered[1] + offered[2]; admitted.Received != sum ||
		admitted.Received != all.Aggregated()+admitted.DroppedTotal() || all.Pending != 0 {
		t.Errorf("%d offered: received %d, aggregated %d, dropped %v, pending %d", sum, admitted.Received,
			all.Aggregated(), admitted.Dropped, all.Pending)
	}
	for i, d := range flusher.Destinations() {
		destinations[i].check(t, d.Stats(), all.Aggregated())
	}
	t.Logf("%d spans in %d cycles, %v dropped", admitted.Received, all.Sealed, admitted.Dropped)
	if all.Sealed < uint64(aDay/counting.FlushInterval) {
		t.Errorf("%d cycles were sealed in a day", all.Sealed)
	}
	if err := file.Remove(); err != nil {
		t.Error(err)
	}
}

// publishForADay runs one publisher after another, as connections do, and returns the number of
// offered spans. The number of settled spans of a publisher never decreases, and never exceeds the
// number of its spans.
func publishForADay(
	t *testing.T, publishers *admit.Publishers, a *aggregate.Aggregator, random *rand.Rand,
) (offered uint64) {
	for end := time.Now().Add(aDay); time.Now().Before(end); {
		published, settled := uint64(0), uint64(0)
		p := publishers.NewConnection(span.Origin{Service: fmt.Sprint("s", random.IntN(5))}, 0)
		for range random.IntN(40) {
			n := 1 + random.IntN(50)
			frame := wire.BeginSpans(nil)
			for range n {
				key := span.Key{Service: "shop", Operation: "op", Resource: fmt.Sprint("r", random.IntN(20))}
				frame = wire.AppendWhole(frame, wire.AppendKey(nil, &key), 1000, time.Now().UnixNano(), 0, 1)
			}
			wire.EndSpans(frame, 0, n)
			_, body, err := wire.Split(frame[wire.HeaderLen:])
			if err != nil {
				t.Error(err)
				return offered
			}
			if err := p.Publish(body); err != nil {
				t.Error(err)
			}
			published += uint64(n)
			time.Sleep(time.Duration(random.Int64N(int64(40 * time.Second))))
			through, _ := a.Settled()
			if now := p.SettleBefore(through); now < settled || now > published {
				t.Errorf("%d of %d are settled, %d were settled before", now, published, settled)
			} else {
				settled = now
			}
		}
		offered += published
		p.Close()
		time.Sleep(time.Duration(random.Int64N(int64(10 * time.Minute))))
	}
	return offered
}

// erratic is a destination whose behavior changes at random. It counts the spans that it accepts.
type erratic struct {
	name string

	mu        sync.Mutex
	random    *rand.Rand
	behavior  int
	until     time.Time
	delivered map[*export.Payload]bool
	counted   uint64 // counted and acknowledged
	silent    uint64 // counted and not acknowledged
}

func newErratic(name string, seed uint64) *erratic {
	return &erratic{name: name, random: rand.New(rand.NewPCG(seed, 7)), delivered: map[*export.Payload]bool{}}
}

func (m *erratic) describe() export.Exporter { return export.Exporter{Name: m.name, Push: m} }

// Encode makes one payload of all rows.
func (m *erratic) Encode(c *export.Cycle, emit func(*export.Payload)) export.Encoded {
	p := &export.Payload{Body: make([]byte, 1000)}
	for i := range c.Rows {
		p.Spans += c.Rows[i].Spans
	}
	if p.Spans > 0 {
		emit(p)
	}
	return export.Encoded{}
}

// Each behavior lasts for some minutes.
const (
	takes = iota
	refuses
	isUnreachable
	hangs       // counts the payload, or does not
	isForgetful // accepts, refuses, or answers that it does not accept statistics
	behaviors
)

func (m *erratic) Deliver(ctx context.Context, p *export.Payload) export.Attempt {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now := time.Now(); now.After(m.until) {
		m.behavior = m.random.IntN(2 * behaviors)
		m.until = now.Add(time.Duration(m.random.Int64N(int64(10 * time.Minute))))
	}
	if m.delivered[p] {
		panic("BUG: a payload that may have been accepted is sent again")
	}
	wrong := errors.New("on purpose")
	switch m.behavior {
	case refuses:
		after := time.Duration(m.random.IntN(5)) * time.Second
		return export.Attempt{Outcome: export.OutcomeNotYet, Err: wrong, After: after}
	case isUnreachable:
		return export.Attempt{Outcome: export.OutcomeNotYet, Silent: true, Err: wrong}
	case hangs:
		m.delivered[p] = true
		if m.random.IntN(2) == 0 {
			m.silent += p.Spans
		}
		m.mu.Unlock()
		<-ctx.Done()
		m.mu.Lock()
		return export.Attempt{Outcome: export.OutcomeUnknown, Silent: true, Err: wrong}
	case isForgetful:
		if m.random.IntN(2) == 0 {
			m.delivered[p] = true
			return export.Attempt{Outcome: export.OutcomeRefused, Err: wrong}
		}
	}
	m.delivered[p] = true
	m.counted += p.Spans
	return export.Attempt{}
}

// check compares the spans of the destination with stats.
func (m *erratic) check(t *testing.T, stats export.Stats, aggregated uint64) {
	t.Helper()
	unsent := uint64(0)
	for _, spans := range stats.Unsent {
		unsent += spans
	}
	if stats.Flushed != m.counted || stats.Pending != 0 || stats.Flushed+unsent != aggregated {
		t.Errorf("%s counted %d; of %d spans flushed %d, unsent %v, pending %d", m.name, m.counted,
			aggregated,
			stats.Flushed, stats.Unsent, stats.Pending)
	}
	if ambiguous := stats.Unsent[export.Ambiguous]; m.silent > ambiguous {
		t.Errorf("%s counted %d without an acknowledgment, but %d are ambiguous", m.name, m.silent,
			ambiguous)
	}
	t.Logf("%s: flushed %d, unsent %v, %d counted without an acknowledgment", m.name, stats.Flushed, stats.Unsent,
		m.silent)
}
