package ingest

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/ingest/socket"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
	"golang.org/x/sys/unix"
)

// harness is a Server with an aggregator that delivers to memory.
type harness struct {
	*Server
	admit      *admit.Publishers
	t          testing.TB
	aggregator *aggregate.Aggregator

	mu       sync.Mutex
	features wire.Features
	changed  chan struct{}
	sealed   uint64
	rows     map[string]uint64 // spans by resource
	origins  map[span.Origin]uint64
	answer   error // outcome of deliveries
	ended    sync.Once
}

// configs combines the configurations of the server and the publishers.
type configs struct {
	Config
	admitting
}

type (
	admitting  = admit.Config
	admitStats = admit.Stats
)

// stats combines the statistics of the server and the publishers.
type stats struct {
	Stats
	admitStats
}

func (h *harness) Stats() stats { return stats{h.Server.Stats(), h.admit.Stats()} }

// newHarness creates a harness; run starts it.
func newHarness(t testing.TB, change func(*configs, *aggregate.Config)) *harness {
	t.Helper()
	h := &harness{
		t: t, changed: make(chan struct{}), rows: map[string]uint64{},
		origins: map[span.Origin]uint64{}, features: wire.Features{Stats: true},
	}
	counting := aggregate.DefaultConfig()
	counting.Deliver = h.deliver
	config := configs{DefaultConfig(), admit.DefaultConfig()}
	config.Socket.Path = filepath.Join(t.TempDir(), "s")
	config.Log = slog.New(slog.DiscardHandler)
	config.Features = func() (wire.Features, <-chan struct{}) {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.features, h.changed
	}
	if change != nil {
		change(&config, &counting)
	}
	var err error
	if h.aggregator, err = aggregate.New(counting); err != nil {
		t.Fatal(err)
	}
	config.Aggregator, config.Connections, config.Deliver = h.aggregator, config.MaxConnections, h.report
	config.Settled = h.aggregator.Settled
	if h.admit, err = admit.New(config.admitting); err != nil {
		t.Fatal(err)
	}
	h.admit.SetStatsWanted(h.features.Stats)
	config.Admit = h.admit
	if h.Server, err = New(config.Config); err != nil {
		t.Fatal(err)
	}
	return h
}

// report ends the cycle and waits until it is delivered.
func (h *harness) report(ctx context.Context) error {
	reported, err := h.aggregator.RequestFlush(ctx)
	if err == nil {
		err = reported.Wait(ctx)
	}
	return err
}

func start(t testing.TB, change func(*configs, *aggregate.Config)) *harness {
	t.Helper()
	h := newHarness(t, change)
	h.run(nil)
	return h
}

// run starts the harness. credentials replaces the kernel's credentials of peers, if it is not nil.
func (h *harness) run(credentials func(*net.UnixConn) (socket.Peer, error)) {
	if credentials != nil {
		h.readCredentials = credentials
	}
	h.aggregator.Start()
	h.Start()
	h.t.Cleanup(h.stop)
}

// strangers returns the credentials of a different process for each connection.
func (h *harness) strangers(conn *net.UnixConn) (socket.Peer, error) {
	peer, err := socket.ReadCredentials(conn)
	peer.PID = 1<<30 + int32(h.counters.accepted.Load())
	return peer, err
}

// stop stops everything in the daemon's order, and checks that the accounting balances.
func (h *harness) stop() {
	h.ended.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := h.Drain(ctx); err != nil {
			h.t.Error(err)
		}
		h.aggregator.Stop()
		h.Close()
		in, agg := h.Stats(), h.aggregator.Stats()
		if in.Received != agg.Aggregated()+in.DroppedTotal() || agg.Aggregated() != h.sealed ||
			agg.Pending != 0 {
			h.t.Errorf("accounting: received %d = aggregated %d + dropped %v; sealed %d, held %d",
				in.Received, agg.Aggregated(), in.Dropped, h.sealed, agg.Pending)
		}
	})
}

func (h *harness) deliver(s *aggregate.Sealed) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sealed += s.Spans()
	for part := range s.Parts {
		h.rows[s.Keys[part.Key].Key.Resource] += part.Counts().Spans
		h.origins[s.Origins[s.Keys[part.Key].Origin]] += part.Counts().Spans
	}
	s.Delivery.Resolve(h.answer)
	s.Release()
}

func (h *harness) dropped() uint64 {
	stats := h.Stats()
	return stats.DroppedTotal()
}

func (h *harness) setFeatures(f wire.Features) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.admit.SetStatsWanted(f.Stats)
	h.features = f
	close(h.changed)
	h.changed = make(chan struct{})
}

// tracer is a client that sends raw frames.
type tracer struct {
	*net.UnixConn
	t testing.TB
}

func (h *harness) dial() *tracer {
	h.t.Helper()
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: h.config.Socket.Path, Net: "unix"})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { conn.Close() })
	return &tracer{conn, h.t}
}

// connect returns a client that has received its welcome.
func (h *harness) connect(service string) *tracer {
	h.t.Helper()
	c := h.dial()
	c.send(hello(service))
	if kind, _ := c.read(); kind != wire.TypeWelcome {
		h.t.Fatalf("a hello was answered with %s", kind)
	}
	return c
}

func hello(service string) []byte {
	return wire.AppendHello(nil, &wire.Hello{
		Version: wire.Version, Client: "test",
		Origin: span.Origin{Service: service},
	})
}

func (c *tracer) send(frame []byte) {
	c.t.Helper()
	if _, err := c.Write(frame); err != nil {
		c.t.Fatal(err)
	}
}

// read returns the next message of the daemon, or type 0 at the end of the stream.
func (c *tracer) read() (wire.Type, []byte) {
	c.t.Helper()
	header := make([]byte, wire.HeaderLen)
	if _, err := io.ReadFull(c, header); err != nil {
		return 0, nil
	}
	message := make([]byte, binary.BigEndian.Uint32(header))
	if _, err := io.ReadFull(c, message); err != nil {
		c.t.Fatalf("the daemon cut a message: %v", err)
	}
	kind, body, err := wire.Split(message)
	if err != nil {
		c.t.Fatal(err)
	}
	return kind, body
}

// byeReason reads to the end of the stream and returns the reason of the bye, or "" if there is
// none.
func (c *tracer) byeReason() string {
	c.t.Helper()
	reason := ""
	for {
		kind, body := c.read()
		switch kind {
		case 0:
			return reason
		case wire.TypeBye:
			bye, err := wire.DecodeBye(body)
			if err != nil {
				c.t.Fatal(err)
			}
			reason = bye.Reason
		}
	}
}

// settle sends a bye and waits until the daemon has closed the connection.
func (c *tracer) settle() {
	c.t.Helper()
	c.send(wire.AppendBye(nil, &wire.Bye{}))
	if _, err := io.Copy(io.Discard, c); err != nil && !errors.Is(err, io.EOF) {
		c.t.Fatal(err)
	}
}

func key(resource string) []byte {
	return wire.AppendKey(nil, &span.Key{Service: "shop", Operation: "op", Resource: resource})
}

// spans returns a frame of n spans with a key.
func spans(n int, key []byte) []byte {
	frame := wire.BeginSpans(nil)
	for range n {
		frame = wire.AppendWhole(frame, key, 1000, time.Now().UnixNano(), 0, 1)
	}
	wire.EndSpans(frame, 0, n)
	return frame
}

// numbered returns a frame with one span for each number of a key.
func numbered(numbers ...uint32) []byte {
	frame := wire.BeginSpans(nil)
	for _, number := range numbers {
		frame = wire.AppendNumbered(frame, number, 1000, time.Now().UnixNano(), 0, 1)
	}
	wire.EndSpans(frame, 0, len(numbers))
	return frame
}

func define(number uint32, key []byte) []byte {
	frame := wire.AppendDefinition(wire.BeginDefine(nil), number, key)
	wire.EndDefine(frame, 0, 1)
	return frame
}

// raw returns a frame with arbitrary content.
func raw(content ...byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(content))), content...)
}

// unread returns the number of unread bytes in a socket.
func unread(t testing.TB, socket *net.UnixConn) (n int) {
	t.Helper()
	rawConn, err := socket.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := rawConn.Control(func(fd uintptr) {
		n, err = unix.IoctlGetInt(int(fd), unix.SIOCINQ)
	}); err != nil {
		t.Fatal(err)
	}
	return n
}
