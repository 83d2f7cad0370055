package aggregate_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/DataDog/sketches-go/ddsketch/mapping"
	"github.com/DataDog/sketches-go/ddsketch/pb/sketchpb"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/decode/payload"
	"github.com/spanstatsd/spanstatsd/internal/export"
	exporter "github.com/spanstatsd/spanstatsd/internal/export/agent"
	"github.com/spanstatsd/spanstatsd/internal/ring"
	"github.com/spanstatsd/spanstatsd/internal/routing"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"google.golang.org/protobuf/proto"
)

// reference contains the expected counts. It is a simple implementation of counting: one map without routing, with
// sketches of the library.
type reference map[place]*counted

// place identifies where a span must be counted: the cycle of the payload, the bucket and the group.
type place struct {
	cycle    uint64
	bucket   int64
	resource string
}

// bucketWidth is the width of a time bucket in nanoseconds.
const bucketWidth = 10e9

// bucketOf returns the start of the time bucket that contains the given time.
func bucketOf(nanoseconds int64) int64 { return nanoseconds - nanoseconds%bucketWidth }

type counted struct {
	hits, errors, duration uint64
	ok, err                map[int]float64 // by bin
}

// bins is the agent's mapping of durations.
var bins = func() mapping.IndexMapping {
	m, err := mapping.NewLogarithmicMapping(0.01)
	if err != nil {
		panic(err)
	}
	return m
}()

// add counts one span. Like the agent, it truncates the duration to ten significant bits.
func (r reference) add(at place, duration uint64, failed bool) {
	c := r[at]
	if c == nil {
		c = &counted{ok: map[int]float64{}, err: map[int]float64{}}
		r[at] = c
	}
	c.hits++
	c.duration += duration
	sketch := c.ok
	if failed {
		c.errors++
		sketch = c.err
	}
	sketch[bins.Index(math.Float64frombits(math.Float64bits(float64(duration))&^(1<<43-1)))]++
}

// take adds the counts of another reference.
func (r reference) take(other reference) {
	for at, c := range other {
		mine := r[at]
		if mine == nil {
			r[at] = c
			continue
		}
		mine.hits, mine.errors, mine.duration = mine.hits+c.hits, mine.errors+c.errors,
			mine.duration+c.duration
		for bin, n := range c.ok {
			mine.ok[bin] += n
		}
		for bin, n := range c.err {
			mine.err[bin] += n
		}
	}
}

// binsOf reads a sketch of a payload.
func binsOf(t *testing.T, summary []byte) map[int]float64 {
	bins := map[int]float64{}
	if len(summary) == 0 {
		return bins
	}
	var p sketchpb.DDSketch
	if err := proto.Unmarshal(summary, &p); err != nil {
		t.Fatal(err)
	}
	s, err := ddsketch.FromProto(&p)
	if err != nil {
		t.Fatal(err)
	}
	s.GetPositiveValueStore().ForEach(func(bin int, n float64) bool {
		bins[bin] += n
		return false
	})
	return bins
}

// chain is aggregates, a flush and an agent, and their input and output.
type chain struct {
	*aggregate.Aggregator
	t       *testing.T
	flusher *export.Flusher

	mu       sync.Mutex
	payloads []*payload.Payload
	cycles   []uint64 // sealed with something in them, in their order
	want     reference
	sent     uint64
}

func newChain(t *testing.T, config aggregate.Config) *chain {
	c := &chain{t: t, want: reference{}}
	server := httptest.NewServer(http.HandlerFunc(c.takePayload))
	t.Cleanup(server.Close)
	url, err := exporter.ParseURL(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	agent, err := exporter.New(exporter.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	if c.flusher, err = export.New(export.Config{}, agent.Describe()); err != nil {
		t.Fatal(err)
	}
	config.Deliver = func(s *aggregate.Sealed) {
		if s.Spans() > 0 {
			c.mu.Lock()
			c.cycles = append(c.cycles, s.Cycle)
			c.mu.Unlock()
		}
		c.flusher.Accept(s)
	}
	if c.Aggregator, err = aggregate.New(config); err != nil {
		t.Fatal(err)
	}
	c.Start()
	return c
}

// takePayload is the handler of an agent that accepts statistics and keeps the payloads.
func (c *chain) takePayload(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/info" {
		_, _ = io.WriteString(w, `{"endpoints":["/v0.6/stats"]}`)
		return
	}
	body, err := io.ReadAll(r.Body)
	decoded, unreadable := payload.Decode(body)
	if err != nil || unreadable != nil {
		c.t.Errorf("a payload can't be read: %v, %v", err, unreadable)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if len(decoded.Stats) > 0 { // else it is a probe
		c.mu.Lock()
		defer c.mu.Unlock()
		c.payloads = append(c.payloads, decoded)
	}
}

// publishing sends batches of random spans until ended is set. Like ingest, it publishes all spans of a batch or none.
// It counts them in a separate reference.
func (c *chain) publishing(rnd *rand.Rand, ended *atomic.Bool) {
	mine, sent := reference{}, uint64(0)
	guard, route := c.NewGuard(), c.NewRoute()
	defer guard.Close()
	for !ended.Load() {
		size := 1 + rnd.IntN(24)
		for !c.batch(rnd, guard, route, size, mine) {
			time.Sleep(50 * time.Microsecond)
		}
		sent += uint64(size)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.want.take(mine)
	c.sent += sent
}

// batch publishes one batch. If a ring is full, it publishes nothing and returns false.
func (c *chain) batch(rnd *rand.Rand, guard *aggregate.Guard, route *routing.Route, size int,
	mine reference,
) bool {
	cycle := guard.Enter()
	defer guard.Exit()
	route.Begin()
	origin, _ := cycle.AdmitOrigin(span.Origin{Service: "shop"})
	window := cycle.Window()
	lastBucket := bucketOf(cycle.Started().UnixNano()) + bucketWidth // of a cycle that takes longer, too
	byDrainer := make([][]aggregate.Slot, c.Drainers())
	type noted struct {
		at       place
		duration uint64
		failed   bool
	}
	notes := make([]noted, size)
	for i := range notes {
		// r0 is hot
		key := span.Key{Service: "s", Operation: "o", Resource: fmt.Sprint("r", rnd.IntN(40)*rnd.IntN(2))}
		admitted := cycle.Admit(origin, &key)
		s := aggregate.Slot{
			Key: admitted.ID, Weight: 1,
			Duration: 1 + rnd.Uint64()>>(34+rnd.IntN(28)), End: time.Now().UnixNano(),
		}
		if rnd.IntN(8) == 0 {
			s.Flags = span.Error
		}
		notes[i] = noted{
			place{cycle.Number(), min(bucketOf(s.End), lastBucket), key.Resource},
			s.Duration,
			s.Flags == span.Error,
		}
		route.CountLoad([]uint32{admitted.Hash})
		drainer := route.Drainer(admitted.Hash)
		s.Place = window.Place(s.End)
		byDrainer[drainer] = append(byDrainer[drainer], s)
	}
	var claims []ring.Claim[aggregate.Slot]
	for drainer, slots := range byDrainer {
		if len(slots) == 0 {
			continue
		}
		claim, result := c.Ring(drainer).Claim(len(slots))
		if result != ring.Claimed {
			for i := range claims {
				claims[i].Skip()
			}
			return false
		}
		for i := range slots {
			*claim.Slot(i) = slots[i]
		}
		claims = append(claims, claim)
	}
	for i := range claims {
		claims[i].Publish()
	}
	for _, n := range notes {
		mine.add(n.at, n.duration, n.failed)
	}
	return true
}

// end stops the chain in the daemon's order and compares everything.
func (c *chain) end() {
	c.t.Helper()
	c.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c.flusher.Close(ctx)
	counts, sent := c.Stats(), c.flusher.Destinations()[0].Stats()
	if counts.Aggregated() != c.sent || counts.Pending != 0 || sent.Flushed != c.sent || sent.Pending != 0 {
		c.t.Errorf("sent %d, aggregated %d, pending %d and %d, flushed %d", c.sent, counts.Aggregated(),
			counts.Pending, sent.Pending, sent.Flushed)
	}
	got := reference{}
	slices.SortFunc(c.payloads, func(a, b *payload.Payload) int { return int(a.Sequence) - int(b.Sequence) })
	if len(c.payloads) != len(c.cycles) {
		c.t.Fatalf("%d payloads of %d cycles", len(c.payloads), len(c.cycles))
	}
	for i, p := range c.payloads {
		for _, bucket := range p.Stats {
			for _, g := range bucket.Stats {
				at := place{c.cycles[i], int64(bucket.Start), g.Resource}
				if got[at] != nil {
					c.t.Errorf("%v stands twice in a payload: it was not merged", at)
				}
				got[at] = &counted{
					g.Hits, g.Errors, g.Duration, binsOf(c.t, g.OkSummary),
					binsOf(c.t, g.ErrorSummary),
				}
			}
		}
	}
	if len(got) != len(c.want) {
		c.t.Errorf("%d groups arrived, want %d", len(got), len(c.want))
	}
	for at, want := range c.want {
		g := got[at]
		if g == nil {
			c.t.Fatalf("%v did not arrive", at)
		}
		if g.hits != want.hits || g.errors != want.errors || g.duration != want.duration ||
			!maps.Equal(g.ok, want.ok) || !maps.Equal(g.err, want.err) {
			c.t.Fatalf("%v arrived as\n%+v, want\n%+v", at, *g, *want)
		}
	}
}

// TestHammer moves, splits and subdivides partitions without a pause while several
// publishers send and cycle after cycle is sealed and flushed. Every payload that
// reaches the agent is the reference model's, to the bin, and the accounting balances.
func TestHammer(t *testing.T) {
	config := aggregate.DefaultConfig()
	config.Drainers, config.RingSlots = 4, 256
	config.RebalanceInterval = 0
	c := newChain(t, config)
	var ended atomic.Bool
	var running sync.WaitGroup
	for i := range 3 {
		running.Go(func() { c.publishing(rand.New(rand.NewPCG(uint64(i), 1)), &ended) })
	}
	running.Go(func() {
		for rnd := rand.New(rand.NewPCG(9, 9)); !ended.Load(); time.Sleep(20 * time.Microsecond) {
			c.Reroute(rnd)
			c.Stats()
		}
	})
	for range 6 {
		before := c.Stats()
		for now, end := before, time.Now().Add(time.Minute); (now.Aggregated() < before.Aggregated()+2000 ||
			now.Partitions.Epoch < before.Partitions.Epoch+20) && time.Now().Before(end); now = c.Stats() {
			time.Sleep(time.Millisecond)
		}
		c.Seal()
	}
	ended.Store(true)
	running.Wait()
	changes := c.Stats().Partitions.Epoch
	c.end()
	t.Logf("%d spans, %d changes of the routing, %d cycles", c.sent, changes, len(c.cycles))
}
