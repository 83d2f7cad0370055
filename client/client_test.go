package client

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

func open(t testing.TB, config Config) *Client {
	t.Helper()
	c, err := Open(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		c.Close(ctx)
	})
	return c
}

func mustClose(t testing.TB, c *Client) {
	t.Helper()
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func sum(counts map[string]uint64) (total uint64) {
	for _, n := range counts {
		total += n
	}
	return total
}

// checkAccounting checks that the numbers in Stats of an idle client balance and agree with its buffers.
func checkAccounting(t testing.TB, c *Client, offered uint64) {
	t.Helper()
	s := c.Stats()
	if s.Published+sum(s.Refused) != offered {
		t.Errorf("published %d + refused %v is not the %d offered", s.Published, s.Refused, offered)
	}
	if s.Published != s.Sent+s.Buffered+sum(s.Lost) {
		t.Errorf("published %d is not sent %d + buffered %d + lost %v", s.Published, s.Sent, s.Buffered,
			s.Lost)
	}
	select {
	case <-c.done:
		if s.Buffered != 0 {
			t.Errorf("%d spans are buffered for ever", s.Buffered)
		}
		free := 0
		for b := c.pool.free.pop(c.pool.buffers); b != nil; b = c.pool.free.pop(c.pool.buffers) {
			free++
		}
		if free != len(c.pool.buffers) {
			t.Errorf("%d of %d buffers are free after close", free, len(c.pool.buffers))
		}
	default:
	}
}

// randomKey returns one of a few keys, and sometimes one of many or an unusual one.
func randomKey(r *rand.Rand) Key {
	k := Key{
		Service: fmt.Sprint("service-", r.IntN(3)), Operation: "op",
		Resource: fmt.Sprint("resource ", r.IntN(20)), Type: "web", HTTPStatus: uint32(200 + r.IntN(3)),
		TraceRoot: TraceRoot(r.IntN(3)), Synthetics: r.IntN(10) == 0,
	}
	switch r.IntN(40) {
	case 0:
		k.Resource = strings.Repeat("x", r.IntN(60_000))
	case 1:
		k.PeerTags = make([]string, r.IntN(400))
		for i := range k.PeerTags {
			k.PeerTags[i] = strings.Repeat("\xff", r.IntN(600))
		}
	case 2, 3:
		k.Resource = fmt.Sprint("unique ", r.Uint64(), strings.Repeat("y", r.IntN(300)))
	case 4:
		k.PeerTags, k.AdditionalTags, k.GRPCStatus = []string{"b:1", "a:2"}, []string{"c:3"}, "5"
	}
	return k
}

func randomBatch(r *rand.Rand, size int) []Snapshot {
	batch := make([]Snapshot, size)
	for i := range batch {
		batch[i] = Snapshot{
			Key: randomKey(r), Duration: time.Duration(r.Int64N(1e10) - 100),
			End: time.Unix(0, r.Int64N(2e18)), Error: r.IntN(4) == 0, TopLevel: r.IntN(2) == 0,
			Weight: float64(r.IntN(4)) / 2,
		}
	}
	return batch
}

// normalized returns the key under which the daemon counts a span.
func normalized(k Key) string {
	k.PeerTags = append([]string(nil), k.PeerTags...)
	k.AdditionalTags = append([]string(nil), k.AdditionalTags...)
	k.Normalize("go")
	return string(wire.AppendKey(nil, &k))
}

// The test compares the spans that a daemon decodes with a simple model.
func TestPublish_ArrivesUnchanged(t *testing.T) {
	d := newFakeDaemon(t).start()
	c := open(t, Config{Socket: d.socket, MaxAge: time.Millisecond, BufferBytes: 64 << 20})
	r := rand.New(rand.NewPCG(1, 2))
	want, offered := map[string]tally{}, 0
	for range 300 {
		batch := randomBatch(r, 1+r.IntN(300)*r.IntN(2)+r.IntN(3)*300*r.IntN(2))
		if !c.Publish(batch) {
			t.Fatal("refused although there is room for all")
		}
		offered += len(batch)
		for i := range batch {
			var flags span.Flags
			if batch[i].Error {
				flags |= span.Error
			}
			if batch[i].TopLevel {
				flags |= span.TopLevel
			}
			weight := batch[i].Weight
			if weight == 0 {
				weight = 1
			}
			key := normalized(batch[i].Key)
			want[key] = want[key].plus(uint64(max(0, batch[i].Duration)), batch[i].End.UnixNano(), flags,
				weight)
		}
	}
	mustClose(t, c)
	d.stop()
	checkAccounting(t, c, uint64(offered))
	if got := c.Stats().Sent; got != uint64(offered) || d.spans != got {
		t.Errorf("%d spans offered, %d sent, %d arrived", offered, got, d.spans)
	}
	got := map[string]tally{}
	for raw, n := range d.counts {
		var k span.Key
		if err := wire.ReadKey(&k, []byte(raw)); err != nil {
			t.Fatal(err)
		}
		key, sum := normalized(k), n
		if before, ok := got[key]; ok {
			sum.spans += before.spans
			sum.errors += before.errors
			sum.topLevel += before.topLevel
			sum.duration += before.duration
			sum.end += before.end
			sum.weight += before.weight
		}
		got[key] = sum
	}
	if len(got) != len(want) {
		t.Errorf("%d keys arrived, %d were published", len(got), len(want))
	}
	for key, n := range want {
		if got[key] != n {
			t.Fatalf("of key %.100q arrived %+v, published %+v", key, got[key], n)
		}
	}
}

func TestBatch_StaysWithinOneMessage(t *testing.T) {
	d := newFakeDaemon(t).start()
	// one shard
	c := open(t, Config{Socket: d.socket, MaxAge: time.Hour, BufferBytes: minBuffers * bufferBytes})
	for _, tc := range []struct {
		sizes []int
		want  string
	}{
		{[]int{256}, "[256]"},
		{[]int{1, 1, 1}, "[3]"},
		{[]int{200, 100}, "[200 100]"},
		{[]int{200, 56, 1}, "[256 1]"},
		{[]int{600}, "[256 256 88]"},
	} {
		d.see(func() { d.batches = nil })
		for _, size := range tc.sizes {
			if !c.Publish(sampleBatch(size)) {
				t.Fatal("refused")
			}
		}
		if err := c.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		d.see(func() {
			if got := fmt.Sprint(d.batches); got != tc.want {
				t.Errorf("batches of %v arrive as %s, want %s", tc.sizes, got, tc.want)
			}
		})
	}
}

// uniqueBatch returns snapshots with different, long keys.
func uniqueBatch(size, length int) []Snapshot {
	batch := sampleBatch(size)
	for i := range batch {
		batch[i].Key.Resource = fmt.Sprint(i, strings.Repeat("r", length))
	}
	return batch
}

func TestPublish_RefusesInvalid(t *testing.T) {
	absent := filepath.Join(t.TempDir(), "absent")
	t.Run("too large", func(t *testing.T) {
		c := open(t, Config{Socket: absent, BufferBytes: 4 * bufferBytes, MaxKept: KeepNothing})
		if c.Publish(uniqueBatch(100, 4000)) {
			t.Error("accepted more than all buffers hold")
		}
		checkAccounting(t, c, 100)
		if got := c.Stats().Refused[ReasonTooLarge]; got != 100 {
			t.Errorf("%d are counted too large", got)
		}
		if !c.Publish(sampleBatch(256)) {
			t.Error("a refused batch reduced the capacity")
		}
	})
	t.Run("buffer full", func(t *testing.T) {
		c := open(t, Config{Socket: absent, BufferBytes: 4 * bufferBytes, MaxKept: KeepNothing})
		offered := uint64(0)
		for range 1000 {
			offered += 50
			c.Publish(uniqueBatch(50, 100))
		}
		checkAccounting(t, c, offered)
		s := c.Stats()
		if s.Refused[ReasonBufferFull] == 0 || s.Buffered == 0 ||
			sum(s.Refused) != s.Refused[ReasonBufferFull] {
			t.Errorf("after the buffers are full: %+v", s)
		}
		for range 100_000 {
			offered++
			if !c.Publish(sampleBatch(1)) {
				break
			}
		}
		checkAccounting(t, c, offered)
	})
	t.Run("every shard locked", func(t *testing.T) {
		c := open(t, Config{Socket: absent})
		for i := range c.shards {
			c.shards[i].lockByPolling()
			defer c.shards[i].mu.Unlock()
		}
		if c.Publish(sampleBatch(3)) {
			t.Error("accepted through a lock")
		}
		if got := c.Stats().Refused[ReasonBufferFull]; got != 3 {
			t.Errorf("%d are counted", got)
		}
	})
	t.Run("nothing", func(t *testing.T) {
		c := open(t, Config{Socket: absent})
		if !c.Publish(nil) {
			t.Error("an empty batch is refused")
		}
		checkAccounting(t, c, 0)
	})
}

func TestSnapshot_NormalizesFields(t *testing.T) {
	for _, tc := range []struct{ weight, want float64 }{
		{0, 1},
		{1, 1},
		{0.5, 0.5},
		{-3, 1},
		{math.NaN(), 1},
		{math.Inf(1), wire.MaxWeight},
		{math.Inf(-1), 1},
		{1e12, wire.MaxWeight},
	} {
		s := Snapshot{Weight: tc.weight, Duration: -5}
		if duration, _, _, got := s.wireFields(); got != tc.want || duration != 0 {
			t.Errorf("weight %v becomes %v, want %v; duration -5 becomes %d", tc.weight, got, tc.want,
				duration)
		}
	}
}

func TestPublish_AllocatesNothing(t *testing.T) {
	for name, socket := range map[string]string{
		"connected":    drain(t),
		"disconnected": filepath.Join(t.TempDir(), "absent"),
	} {
		t.Run(name, func(t *testing.T) {
			c := open(t, Config{Socket: socket, MaxAge: time.Hour, BufferBytes: 64 << 20})
			if name == "connected" {
				eventually(t, "it is connected", func() bool { return c.Stats().Connected })
			}
			batch, wild := sampleBatch(100), randomBatch(rand.New(rand.NewPCG(3, 4)), 40)
			c.Publish(batch)
			// Allocations of the entire process are counted, including those of an attempt to connect. There is less than
			// one attempt per run, which rounding removes.
			if n := testing.AllocsPerRun(500, func() { c.Publish(batch); c.Publish(wild) }); n != 0 {
				t.Errorf("%v allocations", n)
			}
			if refused := sum(c.Stats().Refused); refused != 0 {
				t.Errorf("%d spans were refused, so not all was measured", refused)
			}
		})
	}
}

// A client whose buffers are full, and one whose daemon is unavailable for long, refuse batches without
// allocating.
func TestPublish_RefusingAllocatesNothing(t *testing.T) {
	c := open(t, Config{Socket: filepath.Join(t.TempDir(), "absent"), BufferBytes: minBuffers * bufferBytes})
	batch := sampleBatch(100)
	for c.Publish(batch) {
	}
	for _, why := range []reason{bufferFull, disconnected} {
		if why == disconnected {
			c.gate.refuse(disconnected)
		}
		before := c.refusedSpans()[why]
		if n := testing.AllocsPerRun(500, func() { c.Publish(batch) }); n != 0 {
			t.Errorf("%s: %v allocations", reasonNames[why], n)
		}
		if got := c.refusedSpans()[why] - before; got != 501*100 {
			t.Errorf("%s: %d of %d are counted", reasonNames[why], got, 501*100)
		}
	}
}

// After the last snapshot was sent, no timer runs.
func TestTimer_StopsWhenIdle(t *testing.T) {
	d := newFakeDaemon(t).start()
	c := open(t, Config{Socket: d.socket, MaxAge: time.Millisecond})
	for n := uint64(1); n <= 20; n++ {
		c.Publish(sampleBatch(1))
		eventually(t, "one snapshot is sent for its age", func() bool { return d.spansSeen() == n })
		eventually(t, "no send is scheduled", func() bool { return !c.isSendScheduled.Load() })
	}
}

func TestSocket_FromEnvironment(t *testing.T) {
	d := newFakeDaemon(t).start()
	t.Setenv(SocketEnv, d.socket)
	origin := Origin{Service: "web-store", Host: "h", Lang: "go"}
	c := open(t, Config{Origin: origin})
	if err := c.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.see(func() {
		if len(d.origins) != 1 || d.origins[0] != origin {
			t.Errorf("the daemon was greeted by %+v", d.origins)
		}
	})
	if s := c.Stats(); !s.Connected || s.Daemon != "fake 1" || s.Connects != 1 {
		t.Errorf("stats of a connected client: %+v", s)
	}
}

func TestConfig_Invalid(t *testing.T) {
	for name, config := range map[string]Config{
		"long socket":     {Socket: "/" + strings.Repeat("x", 107)},
		"small buffer":    {BufferBytes: 100_000},
		"negative buffer": {BufferBytes: -1},
		"negative age":    {MaxAge: -1},
		"negative pause":  {MaxBackoff: -1},
		"negative wait":   {MaxAway: -1},
	} {
		if _, err := Open(config); err == nil {
			t.Errorf("%s: opened", name)
		}
	}
}

// goroutines counts the goroutines that run code of this package, including the fake daemon.
func goroutines() (sender, reader int) {
	stacks := make([]byte, 1<<20)
	text := string(stacks[:runtime.Stack(stacks, true)])
	return strings.Count(text, "(*sender).run("), strings.Count(text, "(*connection).read(")
}
