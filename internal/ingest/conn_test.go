package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

func TestSpans_AreCounted(t *testing.T) {
	h := start(t, func(_ *configs, a *aggregate.Config) { a.Drainers = 3 })
	c := h.connect("shop")
	want := map[string]uint64{}
	for i := range 40 {
		resource := fmt.Sprint("r", i%7)
		c.send(spans(i+1, key(resource)))
		want[resource] += uint64(i + 1)
	}
	c.send(define(5, key("numbered")))
	c.send(numbered(5, 5, 5))
	c.send(define(5, key("renumbered")))
	c.send(numbered(5))
	want["numbered"], want["renumbered"] = 3, 1
	c.settle()
	h.stop()
	if fmt.Sprint(h.rows) != fmt.Sprint(want) {
		t.Errorf("counted %v, want %v", h.rows, want)
	}
}

// TestConn_Faults sends invalid messages. It expects a bye with the reason, a counter, that earlier
// frames are counted, and that other clients are not affected.
func TestConn_Faults(t *testing.T) {
	long := make([]byte, 0, 4)
	long = append(long, 0x7f, 0xff, 0xff, 0xff)
	for _, test := range []struct {
		name    string
		greeted bool
		bytes   []byte
		leave   bool
		reason  Fault
		dropped uint64 // in invalid messages
	}{
		{name: "spans first", bytes: spans(1, key("r")), reason: FaultNoHello},
		{name: "nonsense first", bytes: []byte("GET / HTTP/1.1\r\n\r\n"), reason: FaultTooLarge},
		{name: "no msgpack first", bytes: raw(0xc1), reason: FaultNoHello},
		{
			name: "another version", bytes: wire.AppendHello(nil, &wire.Hello{Version: 9}),
			reason: FaultVersion,
		},
		{name: "empty frame", greeted: true, bytes: []byte{0, 0, 0, 0}, reason: FaultBadFrame},
		{name: "frame too long", greeted: true, bytes: long, reason: FaultTooLarge},
		{name: "unknown type", greeted: true, bytes: raw(0x92, 0x63, 0xc0), reason: FaultBadMessage},
		{name: "not an array", greeted: true, bytes: raw(0xc0), reason: FaultBadMessage},
		{
			name: "bye with a number as reason", greeted: true, reason: FaultBadMessage,
			bytes: raw(0x92, 8, 0x81, 0xa6, 'r', 'e', 'a', 's', 'o', 'n', 7),
		},
		{name: "bye without a map", greeted: true, bytes: raw(0x92, 8, 0xc0), reason: FaultBadMessage},
		{name: "lost without a map", greeted: true, bytes: raw(0x92, 6, 0xc0), reason: FaultBadMessage},
		{name: "flush without a map", greeted: true, bytes: raw(0x92, 7, 0xc0), reason: FaultBadMessage},
		{
			name: "earlier of 65 bytes", reason: FaultBadMessage,
			bytes: wire.AppendHello(nil, &wire.Hello{Version: wire.Version, Earlier: strings.Repeat("a", 65)}),
		},
		{name: "a second hello", greeted: true, bytes: hello("x"), reason: FaultBadMessage},
		{
			name: "a welcome", greeted: true, bytes: wire.AppendWelcome(nil, &wire.Welcome{}),
			reason: FaultBadMessage,
		},
		{name: "number not defined", greeted: true, bytes: numbered(7), reason: FaultBadMessage, dropped: 1},
		{name: "number too high", greeted: true, bytes: define(1<<20, key("r")), reason: FaultBadMessage},
		{
			name: "key is no array", greeted: true, bytes: spans(3, []byte{0xc0}), reason: FaultBadMessage,
			dropped: 3,
		},
		{
			name: "defined key is no array", greeted: true, bytes: define(1, []byte{0xc0}),
			reason: FaultBadMessage,
		},
		{
			name: "four billion snapshots", greeted: true,
			bytes:  raw(0x92, 0x05, 0xdd, 0xff, 0xff, 0xff, 0xff),
			reason: FaultBadMessage,
		},
		{
			name: "half a frame", greeted: true, bytes: spans(2, key("r"))[:20], leave: true,
			reason: FaultIncompleteFrame,
		},
		{name: "half a length", greeted: true, bytes: []byte{0, 0}, leave: true, reason: FaultIncompleteFrame},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := start(t, nil)
			healthy := h.connect("healthy")
			healthy.send(spans(2, key("before")))
			var c *tracer
			if test.greeted {
				c = h.connect("faulty")
				c.send(spans(5, key("kept")))
			} else {
				c = h.dial()
			}
			c.send(test.bytes)
			if test.leave {
				c.CloseWrite()
			}
			want := test.reason.String()
			if test.leave {
				want = ""
			}
			if got := c.byeReason(); got != want {
				t.Errorf("closed with %q, want %q", got, want)
			}
			healthy.send(spans(3, key("after")))
			healthy.settle()
			h.stop()
			stats := h.Stats()
			for f := range faults {
				want := uint64(0)
				if Fault(f) == test.reason {
					want = 1
				}
				if got := stats.Faults[Fault(f).String()]; got != want {
					t.Errorf("%d faults of %s, want %d", got, Fault(f), want)
				}
			}
			if got := stats.Dropped["malformed"]; got != test.dropped {
				t.Errorf("%d spans dropped as malformed, want %d", got, test.dropped)
			}
			if h.rows["before"] != 2 || h.rows["after"] != 3 || test.greeted && h.rows["kept"] != 5 {
				t.Errorf("counted %v", h.rows)
			}
		})
	}
}

func TestVersion_AnsweredWithSupported(t *testing.T) {
	h := start(t, nil)
	c := h.dial()
	c.send(wire.AppendHello(nil, &wire.Hello{Version: 2}))
	_, body := c.read()
	bye, err := wire.DecodeBye(body)
	if err != nil || len(bye.Versions) != 1 || bye.Versions[0] != wire.Version {
		t.Errorf("answered %+v, %v", bye, err)
	}
}

func TestConnection_SlowFrameIsCutOff(t *testing.T) {
	h := start(t, func(c *configs, _ *aggregate.Config) { c.ReadTimeout = 30 * time.Millisecond })
	silent, slow := h.connect("silent"), h.connect("slow")
	slow.send(spans(1, key("r"))[:9])
	if reason := slow.byeReason(); reason != "too_slow" {
		t.Errorf("a frame that never ends was closed with %q", reason)
	}
	time.Sleep(100 * time.Millisecond)
	silent.send(spans(1, key("r")))
	silent.settle()
	h.stop()
	if h.rows["r"] != 1 {
		t.Errorf("counted %v", h.rows)
	}
}

func TestConnection_OverLimit(t *testing.T) {
	h := newHarness(t, func(c *configs, _ *aggregate.Config) { c.MaxConnections = 2 })
	h.run(h.strangers)
	first := h.connect("1")
	h.connect("2")
	if reason := h.dial().byeReason(); reason != "too_many_connections" {
		t.Errorf("the third was closed with %q", reason)
	}
	first.settle()
	eventually.True(t, "the place of the closed connection is free",
		func() bool { return h.Stats().Connections != 2 })
	h.connect("3") // fails the test unless welcomed
}

func TestConn_Drops(t *testing.T) {
	for _, test := range []struct {
		name     string
		change   func(*configs, *aggregate.Config)
		features wire.Features
		batch    int
		reason   admit.DropReason
	}{
		{"batch too large", nil, wire.Features{Stats: true}, 1025, admit.DropBatchTooLarge},
		{"not wanted", nil, wire.Features{}, 3, admit.DropNotWanted},
	} {
		h := newHarness(t, test.change)
		h.features = test.features
		h.admit.SetStatsWanted(test.features.Stats)
		h.aggregator.Start()
		h.Start()
		c := h.connect("shop")
		c.send(spans(test.batch, key("r")))
		c.settle()
		h.stop()
		if got := h.Stats().Dropped[test.reason.String()]; got != uint64(test.batch) {
			t.Errorf("%s: dropped %v", test.name, h.Stats().Dropped)
		}
	}
}

// TestRing_FullDropsWholeBatch fills one of several rings while nothing is drained. A batch that does not fit must
// be dropped completely.
func TestRing_FullDropsWholeBatch(t *testing.T) {
	h := newHarness(t, func(c *configs, a *aggregate.Config) { a.Drainers, a.RingSlots = 4, 256 })
	h.Start()
	c := h.connect("shop")
	mixed := wire.BeginSpans(nil)
	for i := range 256 {
		mixed = wire.AppendWhole(mixed, key(fmt.Sprint(i)), 1, time.Now().UnixNano(), 0, 1)
	}
	wire.EndSpans(mixed, 0, 256)
	c.send(spans(200, key("hot")))
	c.send(mixed) // one of four rings gets more than 56 of 256 spans
	c.send(mixed)
	c.send(mixed)
	c.send(mixed)
	c.settle()
	before := h.Stats()
	h.aggregator.Start()
	t.Cleanup(h.stop)
	h.stop()
	dropped := h.Stats().Dropped["ring_full"]
	if before.Received != 200+4*256 || dropped == 0 || dropped%256 != 0 {
		t.Errorf("received %d, dropped %d: a batch was split", before.Received, dropped)
	}
	if h.rows["hot"] != 200 || h.rows["1"] != h.rows["255"] {
		t.Errorf("counted hot %d, 1 %d, 255 %d", h.rows["hot"], h.rows["1"], h.rows["255"])
	}
}

// TestRing_FullBlocksClient checks that a full ring blocks the client if the server is configured to.
func TestRing_FullBlocksClient(t *testing.T) {
	h := newHarness(t, func(c *configs, a *aggregate.Config) { c.Block, a.RingSlots = true, 256 })
	h.Start()
	c := h.connect("shop")
	for range 10 {
		c.send(spans(200, key("r")))
	}
	time.Sleep(20 * time.Millisecond)
	if stats := h.Stats(); stats.Received > 400 {
		t.Errorf("%d spans were received into a ring of 256", stats.Received)
	}
	h.aggregator.Start()
	t.Cleanup(h.stop)
	c.settle()
	h.stop()
	if h.rows["r"] != 2000 || h.dropped() != 0 {
		t.Errorf("counted %v, dropped %v", h.rows, h.Stats().Dropped)
	}
}

func TestLost_CountedByReason(t *testing.T) {
	h := start(t, nil)
	c := h.connect("shop")
	c.send(wire.AppendLost(nil, wire.Lost{"buffer_full": 7, "no idea": 3}))
	c.send(wire.AppendLost(nil, wire.Lost{"buffer_full": 1}))
	c.settle()
	if lost := h.Stats().ClientLost; lost["buffer_full"] != 8 || lost["other"] != 3 {
		t.Errorf("lost %v", lost)
	}
}

func TestFlush_AnsweredWhenDelivered(t *testing.T) {
	h := start(t, nil)
	c := h.connect("shop")
	c.send(spans(3, key("r")))
	c.send(wire.AppendFlush(nil, &wire.Flush{ID: 42}))
	kind, body := c.read()
	answer, err := wire.DecodeFlush(body)
	if kind != wire.TypeFlush || err != nil || answer.ID != 42 || !answer.OK {
		t.Fatalf("%s %+v, %v", kind, answer, err)
	}
	h.mu.Lock()
	counted := h.rows["r"]
	h.answer = errors.New("agent unreachable")
	h.mu.Unlock()
	if counted != 3 {
		t.Errorf("answered with %d of 3 spans delivered", counted)
	}
	c.send(wire.AppendFlush(nil, &wire.Flush{ID: 43}))
	_, body = c.read()
	if answer, _ := wire.DecodeFlush(body); answer.ID != 43 || answer.OK || answer.Error != "agent unreachable" {
		t.Errorf("a failed delivery was answered with %+v", answer)
	}
}

func TestFeatures_AreAnnounced(t *testing.T) {
	h := start(t, nil)
	c := h.connect("shop")
	h.setFeatures(wire.Features{Stats: false, PeerTags: []string{"peer.service"}})
	kind, body := c.read()
	features, err := wire.DecodeFeatures(body)
	if kind != wire.TypeFeatures || err != nil || features.Stats || len(features.PeerTags) != 1 {
		t.Errorf("announced %s %+v, %v", kind, features, err)
	}
}

// TestDrain_ExactBoundary stops the server under load. All frames that clients have written
// before must be counted, and no others.
func TestDrain_ExactBoundary(t *testing.T) {
	for range 20 {
		h := start(t, func(_ *configs, a *aggregate.Config) { a.Drainers, a.RingSlots = 2, 1<<16 })
		const perFrame = 32
		frame := spans(perFrame, key("r"))
		var writing sync.WaitGroup
		var mu sync.Mutex
		handedOver := uint64(0)
		for i := range 4 {
			c := h.connect(fmt.Sprint(i))
			writing.Go(func() {
				complete := uint64(0)
				for {
					n, err := c.Write(frame)
					if n == len(frame) {
						complete++
					}
					if err != nil {
						break
					}
				}
				mu.Lock()
				handedOver += complete * perFrame
				mu.Unlock()
			})
		}
		time.Sleep(5 * time.Millisecond)
		h.stop()
		writing.Wait()
		stats := h.Stats()
		if stats.Received != handedOver {
			t.Fatalf("received %d of %d spans that the sockets took", stats.Received, handedOver)
		}
	}
}

// TestDrain_CutsOffAtDeadline stops the server while a batch waits for a full ring, with more
// data after it. All spans must be counted or dropped with a reason.
func TestDrain_CutsOffAtDeadline(t *testing.T) {
	h := newHarness(t, func(c *configs, a *aggregate.Config) { c.Block, a.RingSlots = true, 256 })
	h.Start()
	c := h.connect("shop")
	for range 5 {
		c.send(spans(200, key("r")))
	}
	eventually.True(t, "three frames are read", func() bool { return h.Stats().Frames >= 3 })
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := h.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("drained with %v", err)
	}
	h.Close()
	if stats := h.Stats(); stats.Received != 1000 || stats.Dropped["shutdown"] != 800 {
		t.Errorf("received %d, dropped %v", stats.Received, stats.Dropped)
	}
	h.aggregator.Start()
	h.aggregator.Stop()
	if h.rows["r"] != 200 {
		t.Errorf("counted %v", h.rows)
	}
}

// TestOrigin_Defaults checks that the daemon's environment completes origins.
func TestOrigin_Defaults(t *testing.T) {
	h := start(t, func(c *configs, _ *aggregate.Config) { c.DefaultHost, c.DefaultEnv = "node-7", "prod" })
	origins := make(chan span.Origin, 2)
	h.connect("silent")
	c := h.dial()
	c.send(wire.AppendHello(nil, &wire.Hello{
		Version: wire.Version,
		Origin:  span.Origin{Host: "own", Env: "test"},
	}))
	c.read()
	for _, conn := range h.connections() {
		origins <- *conn.publisher.Origin()
	}
	close(origins)
	seen := map[string]bool{}
	for o := range origins {
		seen[o.Host+"/"+o.Env] = true
	}
	if !seen["node-7/prod"] || !seen["own/test"] {
		t.Errorf("origins are %v", seen)
	}
}

// panicking is a log handler that panics when a client connects.
type panicking struct {
	slog.Handler
	broken string // service that causes the panic
}

func (panicking) Enabled(context.Context, slog.Level) bool { return true }

func (p panicking) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "service" && a.Value.String() == p.broken && r.Level == slog.LevelDebug {
			panic("a defect")
		}
		return true
	})
	return nil
}

// TestPanic_EndsOneConnection checks that a panic ends only one connection.
func TestPanic_EndsOneConnection(t *testing.T) {
	h := start(t, func(c *configs, _ *aggregate.Config) {
		c.Log = slog.New(panicking{slog.DiscardHandler, "broken"})
	})
	healthy, c := h.connect("healthy"), h.dial()
	c.send(hello("broken"))
	if reason := c.byeReason(); reason != "bug" {
		t.Errorf("closed with %q", reason)
	}
	healthy.send(spans(2, key("r")))
	healthy.settle()
	h.stop()
	if stats := h.Stats(); stats.DroppedTotal() != 0 || stats.Faults["bug"] != 1 || h.rows["r"] != 2 {
		t.Errorf("dropped %v, faults %v, counted %v", stats.Dropped, stats.Faults, h.rows)
	}
}

// FuzzConnection sends arbitrary bytes, with or without a hello. The accounting must balance, and
// another client must be served.
func FuzzConnection(f *testing.F) {
	f.Add(false, []byte("nonsense"))
	f.Add(true, spans(3, key("r")))
	f.Add(true, append(define(1, key("r")), numbered(1, 1)...))
	f.Add(true, spans(3, key("r"))[:30])
	f.Add(true, wire.AppendLost(nil, wire.Lost{"x": 1}))
	f.Add(true, wire.AppendFlush(nil, &wire.Flush{ID: 1}))
	f.Fuzz(func(t *testing.T, greet bool, data []byte) {
		h := start(t, func(c *configs, _ *aggregate.Config) { c.ReadTimeout = time.Second })
		c := h.dial()
		if greet {
			c.send(hello("fuzz"))
		}
		if _, err := c.Write(data); err != nil && !errors.Is(err, net.ErrClosed) {
			var errno *os.SyscallError
			if !errors.As(err, &errno) {
				t.Fatal(err)
			}
		}
		c.CloseWrite()
		_, _ = io.Copy(io.Discard, c)
		healthy := h.connect("healthy")
		healthy.send(spans(2, key("the healthy one's")))
		healthy.settle()
		h.stop()
		if h.rows["the healthy one's"] < 2 {
			t.Errorf("the healthy tracer was counted %d of 2", h.rows["the healthy one's"])
		}
	})
}
