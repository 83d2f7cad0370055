package admit

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/ignore"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// ignoring returns a harness whose publishers apply the ignore rules.
func ignoring(t *testing.T, rules ...string) *harness {
	t.Helper()
	list, err := ignore.Parse(rules)
	if err != nil {
		t.Fatal(err)
	}
	return newHarness(t, func(c *Config, a *aggregate.Config) { c.Ignore, a.Merge = list, true })
}

// TestIgnored_AgainstModel compares random batches of a connection with a model. The
// batches mix known and new keys, with and without numbers; some keys are ignored, and some batches
// completely.
func TestIgnored_AgainstModel(t *testing.T) {
	h := ignoring(t, "resource=~^GET /static/", "resource=GET /healthz")
	h.aggregator.Start()
	p, rnd := h.NewConnection(span.Origin{Service: "web"}, 0), rand.New(rand.NewPCG(1, 2))
	resources := []string{"GET /", "GET /orders", "GET /healthz", "GET /healthz/x"}
	for i := range resources {
		if err := p.Define(uint32(i), key(resources[i])); err != nil {
			t.Fatal(err)
		}
	}
	isIgnored := func(resource string) bool {
		return resource == "GET /healthz" || len(resource) > 12 && resource[:12] == "GET /static/"
	}
	want, ignored, sent := map[string]uint64{}, uint64(0), uint64(0)
	for range 400 {
		onlyIgnored := rnd.IntN(5) == 0
		n := 1 + rnd.IntN(20)
		if err := p.Publish(bodyOf(n, func(_ int, frame []byte) []byte {
			at := rnd.IntN(len(resources))
			resource := resources[at]
			if onlyIgnored {
				at, resource = 2, "GET /healthz"
			} else if rnd.IntN(2) == 0 {
				at, resource = -1, fmt.Sprint("GET /static/", rnd.IntN(50))
			}
			if sent++; isIgnored(resource) {
				ignored++
			} else {
				want[resource]++
			}
			if at >= 0 && rnd.IntN(2) == 0 {
				return wire.AppendNumbered(frame, uint32(at), 1000, time.Now().UnixNano(), 0, 1)
			}
			return wire.AppendWhole(frame, key(resource), 1000, time.Now().UnixNano(), 0, 1)
		})); err != nil {
			t.Fatal(err)
		}
	}
	received, dropped := p.Received(), p.Dropped()
	h.stop(p)
	stats := h.Stats()
	if stats.Received != sent || stats.Dropped["ignored"] != ignored || stats.DroppedTotal() != ignored {
		t.Errorf("of %d, %d to be ignored: received %d, dropped %v", sent, ignored, stats.Received,
			stats.Dropped)
	}
	if received != sent || dropped != 0 {
		t.Errorf("the client is notified of %d spans and %d lost ones", received, dropped)
	}
	for resource, n := range want {
		if h.rows[resource] != n {
			t.Errorf("%s: %d, want %d", resource, h.rows[resource], n)
		}
	}
	if len(h.rows) != len(want) {
		t.Errorf("there are rows of what is ignored: %v", h.rows)
	}
}

// TestReceiver_CanMarkSpanAsIgnored: such a span needs no fingerprint, and the rest of its batch
// is counted.
func TestReceiver_CanMarkSpanAsIgnored(t *testing.T) {
	h := newHarness(t, nil)
	p := h.NewPublisher(span.Origin{Service: "web"})
	batch := batchOf(6)
	for _, at := range []int{0, 2, 3} {
		s := &batch.Snapshots[at]
		s.Flags, s.FingerprintEnd = s.Flags|span.Ignored, s.Fingerprint
	}
	counting := -1
	if _, ok := h.PublishTogether(func() { counting = p.CountedSpans() }, BatchPart{p, batch}); !ok || counting != 3 {
		t.Errorf("it was not published, or %d of its spans are reported as counted", counting)
	}
	h.finish(p)
	if stats := h.Stats(); stats.Received != 6 || stats.Dropped["ignored"] != 3 || h.counted() != 3 {
		t.Errorf("%+v, counted %d", stats, h.counted())
	}
}

// TestAccounting_SharedOrigin: each counted span of a shared origin is counted once.
func TestAccounting_SharedOrigin(t *testing.T) {
	for origins, want := range map[int]uint64{1: 3, 0: 5} { // without room for more origins, all spans share one
		h := newHarness(t, func(_ *Config, a *aggregate.Config) { a.MaxOrigins = 1 })
		other := h.NewLastPublisher(span.Origin{Service: "other"})
		p := h.NewLastPublisher(span.Origin{Service: "web"})
		if origins == 0 {
			if _, ok := h.PublishTogether(func() {}, BatchPart{other, batchOf(1)}); !ok {
				t.Fatal("it was not published")
			}
		}
		batch := batchOf(6)
		for at, flags := range []span.Flags{
			span.SharedOrigin, 0, span.SharedOrigin | span.Ignored, span.SharedOrigin, 0, span.SharedOrigin,
		} {
			batch.Snapshots[at].Flags |= flags
		}
		if _, ok := h.PublishTogether(func() {}, BatchPart{p, batch}); !ok {
			t.Fatal("it was not published")
		}
		h.finish(p, other)
		if got := h.Stats().Collapsed["origin"]; got != want {
			t.Errorf("%d origins free: %d spans share one, want %d", origins, got, want)
		}
	}
}

// TestIgnored_Groups: ignored groups are not among the spans that commit gets.
func TestIgnored_Groups(t *testing.T) {
	h := ignoring(t, "resource=GET /healthz")
	h.aggregator.Start()
	p, width := h.NewPublisher(span.Origin{Service: "web"}), 10*time.Second
	group := func(resource string, spans uint64) aggregate.Group {
		return aggregate.Group{
			Key:     span.Key{Service: "web", Operation: "web", Resource: resource},
			Mapping: sketch.AgentMapping, Bucket: time.Now().Truncate(width).UnixNano(),
			Counts: aggregate.Counts{Spans: spans, Hits: float64(spans)},
		}
	}
	var owed uint64
	groups := []aggregate.Group{
		group("GET /healthz", 7), group("GET /", 2), group("GET /healthz", 1),
		group("GET /x", 4),
	}
	if err := p.Merge(func(spans uint64) { owed = spans }, groups, uint64(width), time.Now()); err != nil {
		t.Fatal(err)
	}
	h.stop(p)
	stats := h.Stats()
	if owed != 6 || stats.Received != 14 || stats.Dropped["ignored"] != 8 || h.counted() != 6 {
		t.Errorf("owed %d, %+v, counted %d", owed, stats, h.counted())
	}
	if h.rows["GET /"] != 2 || h.rows["GET /x"] != 4 || len(h.rows) != 2 {
		t.Errorf("%v", h.rows)
	}
}
