package admit

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// harness connects publishers to an aggregator that counts into memory.
type harness struct {
	*Publishers
	t          testing.TB
	aggregator *aggregate.Aggregator
	ended      sync.Once

	mu     sync.Mutex
	sealed uint64
	rows   map[string]uint64 // spans by resource
}

// newHarness returns a harness whose rings are drained only after aggregator.Start.
func newHarness(t testing.TB, change func(*Config, *aggregate.Config)) *harness {
	t.Helper()
	h := &harness{t: t, rows: map[string]uint64{}}
	counting := aggregate.DefaultConfig()
	counting.Deliver = h.deliver
	config := DefaultConfig()
	if change != nil {
		change(&config, &counting)
	}
	var err error
	if h.aggregator, err = aggregate.New(counting); err != nil {
		t.Fatal(err)
	}
	config.Aggregator = h.aggregator
	if h.Publishers, err = New(config); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *harness) deliver(s *aggregate.Sealed) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sealed += s.Spans()
	for part := range s.Parts {
		h.rows[s.Keys[part.Key].Key.Resource] += part.Counts().Spans
	}
	s.Delivery.Resolve(nil)
	s.Release()
}

// offer publishes a batch with PublishTogether, as one that can be left to the agent. A batch with
// numbered keys is published with Publish instead, since only connections have those.
func (h *harness) offer(p *Publisher, body []byte) (DropReason, bool) {
	list, ok := listed(body)
	if !ok {
		dropped := p.Dropped()
		err := p.Publish(body)
		return DropMalformed, err == nil && p.Dropped() == dropped
	}
	return h.PublishTogether(func() {}, BatchPart{p, list})
}

// listed returns the batch of a body as a receiver would count it. It reports false if the body is
// malformed or has numbered keys.
func listed(body []byte) (list *span.Batch, ok bool) {
	walker, err := wire.WalkSpans(body)
	if err != nil {
		panic(err)
	}
	labels := &labeler{}
	list = &span.Batch{Labeler: labels}
	for s := (wire.Snapshot{}); walker.Next(&s); {
		if s.Numbered {
			return nil, false
		}
		from := len(list.Fingerprints)
		list.Fingerprints = append(list.Fingerprints, s.Key...)
		list.Snapshots = append(list.Snapshots, span.Snapshot{
			Fingerprint: uint32(from), FingerprintEnd: uint32(len(list.Fingerprints)),
			Duration: s.Duration, End: s.End, Weight: s.Weight, Flags: s.Flags, Span: uint32(len(labels.keys)),
		})
		labels.keys = append(labels.keys, slices.Clone(s.Key))
	}
	return list, walker.Err() == nil
}

// labeler makes the keys of spans from keys in the native protocol.
type labeler struct {
	keys [][]byte
	key  span.Key
	made int // keys
}

func (l *labeler) Label(number uint32) *span.Key {
	l.made++
	if err := wire.ReadKey(&l.key, l.keys[number]); err != nil {
		panic(err)
	}
	return &l.key
}

// batchOf returns a batch of n spans with the same key.
func batchOf(n int) *span.Batch {
	list, _ := listed(body(n))
	return list
}

// finish counts all published spans and verifies that the accounting balances.
func (h *harness) finish(publishers ...*Publisher) {
	h.t.Helper()
	h.aggregator.Start()
	h.stop(publishers...)
}

func (h *harness) stop(publishers ...*Publisher) {
	h.t.Helper()
	h.ended.Do(func() {
		for _, p := range publishers {
			p.Close()
		}
		h.aggregator.Stop()
		stats, counted := h.Stats(), h.aggregator.Stats()
		if aggregated := counted.Aggregated(); stats.Received != aggregated+stats.DroppedTotal() ||
			aggregated != h.sealed || counted.Pending != 0 {
			h.t.Errorf("accounting: received %d = aggregated %d + dropped %v; sealed %d, held %d",
				stats.Received, aggregated, stats.Dropped, h.sealed, counted.Pending)
		}
	})
}

func (h *harness) counted() uint64 {
	stats := h.aggregator.Stats()
	return stats.Aggregated()
}

func key(resource string) []byte {
	return wire.AppendKey(nil, &span.Key{Service: "shop", Operation: "op", Resource: resource})
}

// spans returns the body of a batch with n snapshots of the key.
func spans(n int, key []byte) []byte {
	return bodyOf(n, func(_ int, frame []byte) []byte {
		return wire.AppendWhole(frame, key, 1000, time.Now().UnixNano(), 0, 1)
	})
}

// body returns the body of a batch with n snapshots of the key.
func body(n int) []byte { return spans(n, key("r")) }

// bodyOf returns the body of a batch with n snapshots, which add appends.
func bodyOf(n int, add func(i int, frame []byte) []byte) []byte {
	frame := wire.BeginSpans(nil)
	for i := range n {
		frame = add(i, frame)
	}
	wire.EndSpans(frame, 0, n)
	_, body, err := wire.Split(frame[wire.HeaderLen:])
	if err != nil {
		panic(err)
	}
	return body
}
