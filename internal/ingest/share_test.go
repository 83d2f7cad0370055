package ingest

import (
	"fmt"
	"maps"
	"net"
	"sync/atomic"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/ingest/socket"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// oneOf connects with an origin, sends one span for each resource, and disconnects.
func (h *harness) oneOf(origin span.Origin, resources ...string) {
	c := h.dial()
	c.send(wire.AppendHello(nil, &wire.Hello{Version: wire.Version, Origin: origin}))
	c.read()
	for _, resource := range resources {
		c.send(spans(1, key(resource)))
	}
	c.settle()
}

// TestOrigins_OverLimitShareOne checks that a burst of new containers loses no spans. Containers
// over the limit of origins are counted together, by service and environment. Earlier origins are
// not affected.
func TestOrigins_OverLimitShareOne(t *testing.T) {
	h := newHarness(t, func(_ *configs, a *aggregate.Config) { a.MaxOrigins = 3 })
	h.run(h.strangers)
	neighbor := span.Origin{Service: "cart", ContainerID: "quiet"}
	h.oneOf(neighbor, "r")
	want := map[span.Origin]uint64{neighbor: 2}
	for i := range 50 {
		flood := span.Origin{Service: "shop", Env: "prod", ContainerID: fmt.Sprint(i)}
		h.oneOf(flood, "r", "s")
		if i < 2 {
			want[flood] = 2
		}
	}
	h.oneOf(neighbor, "r")
	h.stop()
	want[span.Origin{Service: "shop", Env: "prod"}] = 2 * 48
	stats := h.Stats()
	if !maps.Equal(h.origins, want) || h.rows["r"] != 52 || h.rows["s"] != 50 {
		t.Errorf("counted %v of %v; %v", h.origins, want, h.rows)
	}
	if stats.DroppedTotal() != 0 || stats.Collapsed["origin"] != 2*48 {
		t.Errorf("dropped %v, collapsed %v", stats.Dropped, stats.Collapsed)
	}
}

// TestOrigins_HalfPerProcess checks that one process gets at most half of the origins, so that other processes can
// have origins. The other origins of the process share one.
func TestOrigins_HalfPerProcess(t *testing.T) {
	h := newHarness(t, func(_ *configs, a *aggregate.Config) { a.MaxOrigins = 6 })
	var process atomic.Int32
	process.Store(1)
	h.run(func(*net.UnixConn) (socket.Peer, error) { return socket.Peer{PID: process.Load()}, nil })
	want := map[span.Origin]uint64{{Service: span.Blocked}: 7}
	for i := range 10 {
		origin := span.Origin{Service: fmt.Sprint("greedy ", i)}
		h.oneOf(origin, "r")
		if i < 3 {
			want[origin] = 1
		}
	}
	process.Store(2)
	for i := range 3 {
		origin := span.Origin{Service: fmt.Sprint("modest ", i)}
		h.oneOf(origin, "r")
		want[origin] = 1
	}
	h.stop()
	if !maps.Equal(h.origins, want) {
		t.Errorf("counted %v, want %v", h.origins, want)
	}
}

// TestConnection_HalfPerProcess checks that one process can have at most half of all
// connections. Clients whose process is unknown can have all others.
func TestConnection_HalfPerProcess(t *testing.T) {
	h := newHarness(t, func(c *configs, _ *aggregate.Config) { c.MaxConnections = 8 })
	var process atomic.Int32
	process.Store(1)
	h.run(func(*net.UnixConn) (socket.Peer, error) { return socket.Peer{PID: process.Load()}, nil })
	var greedy []*tracer
	for range 4 {
		greedy = append(greedy, h.connect("greedy"))
	}
	if reason := h.dial().byeReason(); reason != FaultTooManyConnections.String() {
		t.Errorf("one more of the same process is closed with %q", reason)
	}
	process.Store(0)
	for range 4 {
		h.connect("unknown") // fails the test unless welcomed
	}
	if reason := h.dial().byeReason(); reason != FaultTooManyConnections.String() {
		t.Errorf("one more than there may be is closed with %q", reason)
	}
	process.Store(1)
	greedy[0].settle()
	eventually.True(t, "its place is free", func() bool { return h.Stats().Connections == 7 })
	h.connect("greedy")
}
