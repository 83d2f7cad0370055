package ingest

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/ingest/socket"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// TestClient_ExitsBeforeWelcome checks that the spans of a client that writes and
// exits immediately are counted.
func TestClient_ExitsBeforeWelcome(t *testing.T) {
	h := newHarness(t, nil)
	const tracers = 20
	for i := range tracers {
		c := h.dial()
		c.send(hello(fmt.Sprint("cron ", i)))
		c.send(spans(5, key("r")))
		c.send(wire.AppendLost(nil, wire.Lost{"closed": 1}))
		c.Close()
	}
	h.aggregator.Start()
	h.Start()
	eventually.True(t, "all have connected and disconnected", func() bool {
		stats := h.Stats()
		return stats.ConnectionsTotal == tracers && stats.Connections == 0
	})
	h.stop()
	if stats := h.Stats(); h.rows["r"] != 5*tracers || stats.ClientLost["closed"] != tracers {
		t.Errorf("counted %v; received %d, lost %v", h.rows, stats.Received, stats.ClientLost)
	}
}

// TestClient_DoesNotRead checks that a client that does not read is disconnected,
// but all data that it has written is counted.
func TestClient_DoesNotRead(t *testing.T) {
	h := start(t, func(c *configs, _ *aggregate.Config) { c.MaxByteRate = 66_000 })
	c := h.connect("deaf")
	frame, handedOver := spans(20, key("r")), 0
	for written := 0; written < 160_000; written += len(frame) {
		c.send(frame)
		handedOver += 20
	}
	eventually.True(t, "the daemon stops reading for a while",
		func() bool { return h.Stats().ReadsThrottled > 0 })
	long := strings.Split(strings.Repeat(strings.Repeat("x", 99)+",", 600), ",")
	for i := 0; h.Stats().Faults["too_slow"] == 0; i++ {
		h.setFeatures(wire.Features{Stats: true, PeerTags: long, ObfuscationVersion: uint64(i)})
		time.Sleep(time.Millisecond)
	}
	for {
		if _, err := c.Write(frame); err != nil {
			break
		}
		handedOver += 20
	}
	eventually.True(t, "the connection ends", func() bool { return h.Stats().Connections == 0 })
	h.stop()
	if stats := h.Stats(); h.rows["r"] != uint64(handedOver) || stats.Faults["too_slow"] != 1 {
		t.Errorf("counted %v of %d; faults %v", h.rows, handedOver, stats.Faults)
	}
}

// TestDeadline_CompleteFrameIsReadAfterPause checks that a complete frame is read even after its
// deadline.
func TestDeadline_CompleteFrameIsReadAfterPause(t *testing.T) {
	h := newHarness(t, nil)
	t.Cleanup(h.Abandon)
	c := h.dial()
	long := make([]byte, baseBuffer+1000)
	go c.send(raw(long...)) // more than one read
	accepted, err := h.listener.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	f := newFrameReader(accepted, h.config.MaxFrame, time.Nanosecond, nil, ample())
	f.rate = &throttle{credit: 1e9, bytesPerSecond: 1e9, delays: &h.counters.throttled}
	eventually.True(t, "all of the frame is there", func() bool { return unread(t, accepted) > len(long) })
	if message, err := f.next(); err != nil || len(message) != len(long) {
		t.Errorf("read %d bytes of %d: %v", len(message), len(long), err)
	}
}

// TestAccounting_SpansAfterInvalidMessage checks that spans that a client writes after an invalid
// message are counted as dropped.
func TestAccounting_SpansAfterInvalidMessage(t *testing.T) {
	after := append(spans(7, key("after")), wire.AppendLost(nil, wire.Lost{"closed": 3})...)
	many := spans(700, key("longer than half a buffer"))
	after = append(append(after, many...), many[:len(many)-10]...)
	hellos := func(fault []byte) []byte { return append(hello("x"), fault...) }
	tooLarge := spans(1500, key("larger than any may be"))
	for _, test := range []struct {
		reason Fault
		begins []byte
		counts uint64 // spans before the invalid message
	}{
		{FaultVersion, wire.AppendHello(nil, &wire.Hello{Version: 9}), 0},
		{FaultTooManyConnections, hello("x"), 0},
		{FaultNotAllowed, hello("x"), 0},
		{FaultNoHello, spans(5, key("no hello")), 5},
		{FaultBadMessage, hellos(hello("again")), 0},
		{FaultTooLarge, hellos(tooLarge), 1500},
	} {
		t.Run(test.reason.String(), func(t *testing.T) {
			h := newHarness(t, func(c *configs, _ *aggregate.Config) {
				c.MaxFrame = wire.MinMaxFrame
				switch test.reason {
				case FaultTooManyConnections:
					c.MaxConnections = 1
				case FaultNotAllowed:
					c.AllowUIDs = []uint32{1 << 30}
				}
			})
			var gate sync.Mutex
			h.run(func(conn *net.UnixConn) (socket.Peer, error) {
				gate.Lock()
				defer gate.Unlock()
				return socket.ReadCredentials(conn)
			})
			if test.reason == FaultTooManyConnections {
				h.connect("inside")
			}
			gate.Lock() // accept no client before all have written
			c := h.dial()
			_, err := c.Write(append(test.begins, after...))
			c.CloseWrite()
			gate.Unlock()
			if err != nil {
				t.Error(err)
			}
			if got := c.byeReason(); got != test.reason.String() {
				t.Errorf("closed with %q", got)
			}
			h.stop()
			want := test.counts + 7 + 700
			if stats := h.Stats(); stats.Dropped["refused"] != want || stats.Received != want ||
				stats.ClientLost["closed"] != 3 {
				t.Errorf("received %d of %d; dropped %v; lost %v", stats.Received, want, stats.Dropped,
					stats.ClientLost)
			}
		})
	}
}

// TestAccounting_SpansAfterBye checks that spans that a client writes after a bye are counted as
// dropped.
func TestAccounting_SpansAfterBye(t *testing.T) {
	h := start(t, nil)
	c := h.connect("shop")
	c.send(append(append(spans(2, key("r")), wire.AppendBye(nil, &wire.Bye{Reason: "closed"})...),
		spans(3, key("r"))...))
	eventually.True(t, "the connection ends", func() bool { return h.Stats().Connections == 0 })
	h.stop()
	if stats := h.Stats(); stats.Received != 5 || stats.Dropped["refused"] != 3 || h.rows["r"] != 2 {
		t.Errorf("received %d, dropped %v, counted %v", stats.Received, stats.Dropped, h.rows)
	}
}

// TestStop_AcceptsBacklog checks that clients in the accept queue are served during a
// shutdown, and later ones are refused.
func TestStop_AcceptsBacklog(t *testing.T) {
	h := start(t, nil)
	const tracers = 100
	h.Server.mu.Lock() // stops accepting at the first client
	for i := range tracers {
		c := h.dial()
		_, greeted := c.Write(hello(fmt.Sprint(i)))
		if _, err := c.Write(spans(100, key("r"))); greeted != nil || err != nil {
			t.Error(greeted, err)
		}
	}
	drained := make(chan error)
	go func() { drained <- h.Drain(context.Background()) }()
	h.Server.mu.Unlock()
	if err := <-drained; err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("unix", h.config.Socket.Path); err == nil {
		t.Error("a stopped daemon can be connected to")
	}
	h.ended.Do(func() {})
	h.aggregator.Stop()
	h.Close()
	if stats := h.Stats(); h.rows["r"] != 100*tracers || stats.Received != 100*tracers {
		t.Errorf("counted %v, received %d, dropped %v", h.rows, stats.Received, stats.Dropped)
	}
}
