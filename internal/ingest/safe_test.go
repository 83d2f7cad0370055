package ingest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/ingest/socket"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

func TestAllowedUsers(t *testing.T) {
	uid := uint32(os.Getuid())
	for _, test := range []struct {
		allow  []uint32
		reason string
	}{
		{nil, ""},
		{[]uint32{uid + 1, uid}, ""},
		{[]uint32{uid + 1, uid + 2}, "not_allowed"},
	} {
		h := start(t, func(c *configs, _ *aggregate.Config) { c.AllowUIDs = test.allow })
		if test.reason == "" {
			h.connect("shop").settle()
			continue
		}
		if reason := h.dial().byeReason(); reason != test.reason {
			t.Errorf("allowed %v: closed with %q", test.allow, reason)
		}
		if stats := h.Stats(); stats.Faults["not_allowed"] != 1 || stats.Received != 0 {
			t.Errorf("allowed %v: faults %v", test.allow, stats.Faults)
		}
	}
}

func TestPeer_FromKernel(t *testing.T) {
	h := start(t, nil)
	h.connect("shop")
	for _, conn := range h.connections() {
		if conn.peer.UID != uint32(os.Getuid()) || conn.peer.PID != int32(os.Getpid()) {
			t.Errorf("the peer is %+v", conn.peer)
		}
		if tracers := h.Tracers(); len(tracers) != 1 || tracers[0].UID != conn.peer.UID ||
			tracers[0].PID != conn.peer.PID || tracers[0].Service != "shop" || tracers[0].Client != "test" {
			t.Errorf("status says %+v", tracers)
		}
	}
}

// TestPeer_Container checks that an origin without a container gets that of the peer process.
func TestPeer_Container(t *testing.T) {
	c := &conn{peer: socket.Peer{Container: "seen"}}
	if origin := c.originOf(&wire.Hello{}); origin.ContainerID != "seen" {
		t.Errorf("the container is %q", origin.ContainerID)
	}
	for _, reported := range []span.Origin{{ContainerID: "reported"}, {EntityID: "in-1234"}} {
		if origin := c.originOf(&wire.Hello{Origin: reported}); origin.ContainerID != reported.ContainerID {
			t.Errorf("%+v became %+v", reported, origin)
		}
	}
}

// TestByteRate_LimitsFlood sends more than MaxByteRate on one connection. All spans of another
// connection must be counted.
func TestByteRate_LimitsFlood(t *testing.T) {
	h := start(t, func(c *configs, _ *aggregate.Config) { c.MaxByteRate = 200_000 })
	flood, healthy := h.connect("flood"), h.connect("healthy")
	go func() {
		frame := spans(200, key("flood"))
		for {
			if _, err := flood.Write(frame); err != nil {
				return
			}
		}
	}()
	eventually.True(t, "a read is put off", func() bool { return h.Stats().ReadsThrottled > 0 })
	for range 10 {
		healthy.send(spans(10, key("healthy")))
	}
	healthy.settle()
	h.stop()
	if h.rows["healthy"] != 100 {
		t.Errorf("the healthy tracer was counted %d of 100", h.rows["healthy"])
	}
}

func TestResource_IsCut(t *testing.T) {
	h := start(t, func(c *configs, _ *aggregate.Config) { c.MaxResource = 300 })
	c := h.connect("shop")
	c.send(spans(1, key(strings.Repeat("r", 300)+"one")))
	c.send(spans(1, key(strings.Repeat("r", 300)+"other")))
	c.settle()
	h.stop()
	if n := h.rows[strings.Repeat("r", 300)]; n != 2 || h.Stats().KeysNormalized != 2 {
		t.Errorf("counted %v", h.rows)
	}
}

// TestByteRate_ThrottlingExtendsReadTimeout checks that a frame may take longer than ReadTimeout if the daemon
// throttles it.
func TestByteRate_ThrottlingExtendsReadTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, tracers := net.Pipe()
		defer ours.Close()
		frame := spans(40, key(strings.Repeat("r", 4000))) // 160 KB
		go func() {
			for piece := range slices.Chunk(frame, 16<<10) { // one read each
				_, _ = tracers.Write(piece)
			}
		}()
		var throttled atomic.Uint64
		began, timeout := time.Now(), 100*time.Millisecond
		f := newFrameReader(ours, 1<<20, timeout, newThrottle(100_000, nil, &throttled), ample())
		message, err := f.next()
		if err != nil || len(message) != len(frame)-wire.HeaderLen {
			t.Errorf("read %d of %d bytes: %v", len(message), len(frame)-wire.HeaderLen, err)
		}
		if throttled.Load() == 0 || time.Since(began) <= timeout {
			t.Errorf("the frame was read within %s, and its reads were delayed %d times", time.Since(began),
				throttled.Load())
		}
	})
}

// TestFrame_AnnouncedLengthCostsNothing checks that the buffer grows with the received bytes only.
func TestFrame_AnnouncedLengthCostsNothing(t *testing.T) {
	data := append([]byte{0, 0x0f, 0xff, 0xff}, make([]byte, 1000)...)
	f := newFrameReader(&pieces{rnd: rand.New(rand.NewPCG(1, 1)), data: data}, 1<<20, time.Second, nil, ample())
	if _, err := f.next(); FaultOf(err) != FaultIncompleteFrame || len(f.buf) != baseBuffer {
		t.Errorf("%v, with a buffer of %d bytes", err, len(f.buf))
	}
	f = newFrameReader(&pieces{rnd: rand.New(rand.NewPCG(1, 1)), data: data}, 1<<20, time.Second, nil, ample())
	if _, err := f.first(time.Second); FaultOf(err) != FaultTooLarge {
		t.Errorf("a hello of a megabyte: %v", err)
	}
}

// TestKeyMemory_AllConnectionsAreBounded checks the limit on the key memory of all connections.
func TestKeyMemory_AllConnectionsAreBounded(t *testing.T) {
	h := start(t, func(c *configs, _ *aggregate.Config) { c.MaxKeyBytes, c.MaxKeyBytesInAll = 1<<20, 1<<20 })
	first, second := h.connect("first"), h.connect("second")
	for i := range 300 {
		first.send(spans(1, key(strings.Repeat("a", 4000)+fmt.Sprint(i))))
		second.send(spans(1, key(strings.Repeat("b", 4000)+fmt.Sprint(i))))
	}
	first.settle()
	second.settle()
	eventually.True(t, "all connections are closed", func() bool { return h.Stats().Connections == 0 })
	h.stop()
	if stats := h.Stats(); stats.KeysUncached == 0 || stats.DroppedTotal() != 0 {
		t.Errorf("uncached %d, dropped %v", stats.KeysUncached, stats.Dropped)
	}
}

func TestKeyLimits(t *testing.T) {
	h := start(t, func(c *configs, _ *aggregate.Config) { c.MaxKeyBytes = 160 << 10 })
	c := h.connect("whole")
	for i := range 60 {
		c.send(spans(1, key(strings.Repeat("r", 4000)+string(rune('a'+i)))))
	}
	c.settle()
	stats := h.Stats()
	if stats.KeysDecoded != 60 || stats.KeysUncached == 0 || stats.DroppedTotal() != 0 {
		t.Errorf("decoded %d, uncached %d, dropped %v", stats.KeysDecoded, stats.KeysUncached, stats.Dropped)
	}
}

func TestKeys_NormalizedAndCounted(t *testing.T) {
	h := start(t, nil)
	c := h.connect("shop")
	for _, service := range []string{"Shop A", "shop a", "shop+a", "shop_a"} {
		c.send(spans(1, wire.AppendKey(nil, &span.Key{Service: service, Operation: "op", Resource: "r"})))
	}
	c.settle()
	if keys := h.aggregator.Stats().Aggregates; keys != 1 {
		t.Errorf("%d aggregates for four spellings of one service", keys)
	}
	if n := h.Stats().KeysNormalized; n != 3 {
		t.Errorf("%d keys normalized, want 3", n)
	}
}
