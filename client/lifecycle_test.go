package client

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/wire"
)

func TestFlush(t *testing.T) {
	d := newFakeDaemon(t).start()
	c := open(t, Config{Socket: d.socket, MaxAge: time.Hour})
	for n := uint64(1); n <= 3; n++ {
		c.Publish(sampleBatch(7))
		if err := c.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		d.see(func() {
			if d.spans != 7*n || d.flushes != int(n) {
				t.Errorf("at flush %d the daemon has %d spans and %d requests", n, d.spans, d.flushes)
			}
		})
	}
	d.see(func() {
		d.answer = func(id uint64) *wire.Flush { return &wire.Flush{ID: id, Error: "agent refused"} }
	})
	if err := c.Flush(t.Context()); err == nil || !strings.Contains(err.Error(), "agent refused") {
		t.Errorf("refused by the agent: %v", err)
	}
	// A response with another ID is ignored.
	d.see(func() {
		d.answer = func(id uint64) *wire.Flush { return &wire.Flush{ID: id + 9, OK: true} }
	})
	ctx, cancel := context.WithCancel(t.Context())
	answer := make(chan error)
	go func() { answer <- c.Flush(ctx) }()
	eventually(t, "it was asked", func() (is bool) { d.see(func() { is = d.flushes == 5 }); return is })
	cancel()
	if err := <-answer; !errors.Is(err, context.Canceled) {
		t.Errorf("never answered: %v", err)
	}
	// The connection ends before the response.
	go func() { answer <- c.Flush(t.Context()) }()
	eventually(t, "it was asked", func() (is bool) { d.see(func() { is = d.flushes == 6 }); return is })
	d.kill()
	if err := <-answer; !errors.Is(err, errDisconnected) {
		t.Errorf("the daemon crashed: %v", err)
	}
	// No daemon is available.
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	if err := c.Flush(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("no daemon: %v", err)
	}
	// A daemon becomes available.
	d.see(func() { d.answer = func(id uint64) *wire.Flush { return &wire.Flush{ID: id, OK: true} } })
	go func() { answer <- c.Flush(t.Context()) }()
	d.start()
	if err := <-answer; err != nil {
		t.Errorf("a daemon started: %v", err)
	}
	mustClose(t, c)
	if err := c.Flush(t.Context()); !errors.Is(err, errClosed) {
		t.Errorf("closed: %v", err)
	}
}

// An agent stops accepting statistics, and later accepts them again.
func TestFeatures_AgentStopsAccepting(t *testing.T) {
	d := newFakeDaemon(t).start()
	c := open(t, Config{Socket: d.socket, MaxAge: time.Hour})
	if f := c.Features(); !f.Stats || f.PeerTags != nil {
		t.Errorf("features before a welcome: %+v", f)
	}
	if err := c.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Publish(sampleBatch(5))
	d.setFeatures(wire.Features{PeerTags: []string{"peer.service"}})
	<-c.FeatureChanges()
	if f := c.Features(); f.Stats || len(f.PeerTags) != 1 {
		t.Errorf("features: %+v", f)
	}
	if c.Publish(sampleBatch(4)) {
		t.Error("accepted statistics that the agent does not accept")
	}
	if err := c.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := c.Stats()
	if s.Lost[ReasonNotWanted] != 5 || s.Refused[ReasonNotWanted] != 4 {
		t.Errorf("lost %v, refused %v", s.Lost, s.Refused)
	}
	d.see(func() {
		if d.spans != 0 || d.lost[ReasonNotWanted] != 9 {
			t.Errorf("the daemon got %d spans, and was notified of %v", d.spans, d.lost)
		}
	})
	d.setFeatures(wire.Features{Stats: true})
	<-c.FeatureChanges()
	if !c.Publish(sampleBatch(3)) {
		t.Error("refused what is wanted again")
	}
	mustClose(t, c)
	d.stop()
	checkAccounting(t, c, 12)
	if d.spans != 3 {
		t.Errorf("%d spans came", d.spans)
	}
}

// Spans that were refused while no daemon was available are reported once to the next one.
func TestDisconnected_LossReportedOnce(t *testing.T) {
	d := newFakeDaemon(t)
	c := open(t, Config{Socket: d.socket, BufferBytes: minBuffers * bufferBytes, MaxAge: time.Hour})
	offered := uint64(0)
	for c.Stats().Refused[ReasonBufferFull] == 0 {
		c.Publish(sampleBatch(100))
		offered += 100
	}
	before := c.Stats()
	d.start()
	for range 3 {
		if err := c.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if d.spansSeen() != before.Buffered {
		t.Errorf("%d spans arrived, %d were buffered", d.spans, before.Buffered)
	}
	d.see(func() {
		if d.lost[ReasonBufferFull] != before.Refused[ReasonBufferFull] {
			t.Errorf("the daemon was notified of %v, lost are %v", d.lost, before.Refused)
		}
	})
	checkAccounting(t, c, offered)
}

// A daemon is unavailable for too long, becomes available, and unavailable again. Spans that are refused
// meanwhile are counted and reported to it.
func TestClient_Disconnected(t *testing.T) {
	d := newFakeDaemon(t)
	c := open(t, Config{
		Socket: d.socket, MaxAge: time.Millisecond, MaxAway: time.Millisecond,
		MaxBackoff: time.Millisecond,
	})
	offered := uint64(0)
	publish := func() bool {
		offered += 3
		return c.Publish(sampleBatch(3))
	}
	for round := range uint64(3) {
		before := c.Stats().Refused[ReasonDisconnected]
		eventually(t, "the gate is shut", func() bool { return !publish() })
		for range 10 {
			if publish() {
				t.Error("accepted while the daemon is unavailable")
			}
		}
		checkAccounting(t, c, offered)
		if got := c.Stats().Refused; got[ReasonDisconnected] != before+33 ||
			sum(got) != got[ReasonDisconnected] {
			t.Errorf("refused are %v, of which %d were before", got, before)
		}
		d.start()
		eventually(t, "the gate is open", publish)
		if err := c.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		checkAccounting(t, c, offered)
		s := c.Stats()
		d.see(func() {
			if d.lost[ReasonDisconnected] != s.Refused[ReasonDisconnected] || d.spans != s.Published {
				t.Errorf("round %d: the daemon got %d spans and was notified of %v, the client counts %+v", round,
					d.spans, d.lost, s)
			}
		})
		d.stop()
	}
	eventually(t, "the gate is shut", func() bool { return !publish() })
	eventually(t, "no shard holds a buffer", func() bool {
		held := false
		for i := range c.shards {
			c.shards[i].lockByPolling()
			held = held || c.shards[i].buffer != nil
			c.shards[i].mu.Unlock()
		}
		return !held
	})
	lost := c.Stats().Buffered
	if err := c.Close(t.Context()); (err == nil) != (lost == 0) {
		t.Errorf("closed with %v, lost are %d", err, lost)
	}
	if publish() || c.Stats().Refused[ReasonClosed] != 3 {
		t.Errorf("after close: %v", c.Stats().Refused)
	}
	checkAccounting(t, c, offered)
}

// The message is logged once per period in which the daemon is unavailable.
func TestDisconnected_LoggedOnce(t *testing.T) {
	var log syncBuffer
	d := newFakeDaemon(t)
	c := open(t, Config{
		Socket: d.socket, MaxAway: time.Nanosecond, MaxBackoff: time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	for n := 1; n <= 2; n++ {
		eventually(t, "the outage is logged", func() bool { return strings.Count(log.String(), "still unreachable") == n })
		d.start()
		eventually(t, "it is connected", func() bool { return c.Stats().Connected })
		d.stop()
	}
}

func TestClose(t *testing.T) {
	d := newFakeDaemon(t).start()
	c := open(t, Config{Socket: d.socket, MaxAge: time.Hour})
	eventually(t, "it is connected", func() bool { return c.Stats().Connected })
	eventually(t, "there are one sender and one reader", func() bool {
		sender, reader := goroutines()
		return sender == 1 && reader == 1
	})
	c.Publish(sampleBatch(9))
	for range 2 {
		mustClose(t, c)
	}
	eventually(t, "no goroutine is left", func() bool {
		sender, reader := goroutines()
		return sender+reader == 0
	})
	if c.Publish(sampleBatch(2)) {
		t.Error("accepted after close")
	}
	checkAccounting(t, c, 11)
	d.stop()
	if d.spans != 9 || d.byes != 1 || c.Stats().Refused[ReasonClosed] != 2 {
		t.Errorf("%d spans, %d byes, refused %v", d.spans, d.byes, c.Stats().Refused)
	}
}

func TestClose_WithoutDaemon(t *testing.T) {
	absent := filepath.Join(t.TempDir(), "absent")
	c := open(t, Config{Socket: absent})
	mustClose(t, c)
	c = open(t, Config{Socket: absent})
	c.Publish(sampleBatch(5))
	if err := c.Close(t.Context()); err == nil {
		t.Error("no error although 5 spans are lost")
	}
	checkAccounting(t, c, 5)
	if got := c.Stats().Lost[ReasonClosed]; got != 5 {
		t.Errorf("%d are counted as lost", got)
	}
}

// The daemon has stopped reading, and the context of Close ends.
func TestClose_ContextEnds(t *testing.T) {
	d := newFakeDaemon(t).start()
	c := open(t, Config{Socket: d.socket, MaxAge: time.Millisecond})
	eventually(t, "it is connected", func() bool { return c.Stats().Connected })
	d.each(func(f *fakeConn) { f.reading.Lock() })
	offered := uint64(0)
	for c.Stats().Refused[ReasonBufferFull] == 0 {
		c.Publish(sampleBatch(256))
		offered += 256
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := c.Close(ctx); err == nil {
		t.Error("no error although spans are lost")
	}
	checkAccounting(t, c, offered)
	s := c.Stats()
	if s.Lost[ReasonClosed] == 0 {
		t.Error("nothing is lost although the daemon does not read")
	}
	d.each(func(f *fakeConn) { f.reading.Unlock() })
	d.stop()
	if d.spans != s.Sent {
		t.Errorf("the daemon received %d spans, sent are %d", d.spans, s.Sent)
	}
}

// All spans are sent, but the daemon does not close the connection.
func TestClose_Unconfirmed(t *testing.T) {
	d := newFakeDaemon(t).start()
	c := open(t, Config{Socket: d.socket})
	if err := c.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.each(func(f *fakeConn) { f.reading.Lock() })
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := c.Close(ctx); err == nil || !strings.Contains(err.Error(), "to close the connection") {
		t.Errorf("closed with %v", err)
	}
	d.each(func(f *fakeConn) { f.reading.Unlock() })
}

// The daemon has received all spans, but an unavailable destination keeps it from settling them and from
// closing the connection.
func TestClose_DestinationUnavailable(t *testing.T) {
	d := newFakeDaemon(t)
	welcome := wire.Welcome{
		Version: wire.Version, MaxFrame: wire.MinMaxFrame, MaxBatch: wire.MinMaxBatch, MaxKeys: 1024,
		Features: d.features, Settled: true, Token: "it settles",
	}
	d.welcome = func(*wire.Hello) *wire.Welcome { return &welcome }
	d.answer = func(uint64) *wire.Flush { return nil }
	resume := make(chan struct{})
	d.onFrame = func(_ *fakeConn, got wire.Type) {
		if got == wire.TypeBye {
			<-resume
		}
	}
	d.start()
	c := open(t, Config{Socket: d.socket})
	c.Publish(sampleBatch(7))
	if err := c.Close(context.Background()); err != nil {
		t.Errorf("closed with %v although the daemon has everything", err)
	}
	if s := c.Stats(); s.Sent != 7 || s.Unsettled != 7 || c.notCounted() != [reasons]uint64{} {
		t.Errorf("stats after close: %+v", s)
	}
	close(resume)
}

// A daemon that has stopped reading sends bye and does not close the connection. The client closes it and
// reconnects.
func TestBye_EndsBlockedWrite(t *testing.T) {
	d := newFakeDaemon(t).start()
	c := open(t, Config{Socket: d.socket, MaxAge: time.Millisecond, MaxBackoff: time.Millisecond})
	eventually(t, "it is connected", func() bool { return c.Stats().Connects == 1 })
	d.each(func(f *fakeConn) { f.reading.Lock() })
	offered := uint64(0)
	for c.Stats().Refused[ReasonBufferFull] == 0 {
		c.Publish(sampleBatch(256))
		offered += 256
	}
	var blocked *fakeConn
	d.each(func(f *fakeConn) {
		blocked = f
		f.Write(wire.AppendBye(nil, &wire.Bye{Reason: "shutdown"}))
	})
	eventually(t, "it has come again", func() bool { return c.Stats().Connects == 2 })
	blocked.reading.Unlock()
	mustClose(t, c)
	d.stop()
	checkAccounting(t, c, offered)
	if d.spans != c.Stats().Sent {
		t.Errorf("the daemon counted %d spans, sent are %d", d.spans, c.Stats().Sent)
	}
}

// Whatever a daemon sends instead of a welcome, the client reconnects and loses no spans.
func TestClient_InvalidGreetings(t *testing.T) {
	welcome := wire.Welcome{
		Version: wire.Version, MaxFrame: wire.MinMaxFrame, MaxBatch: wire.MinMaxBatch,
		MaxKeys: 1024,
	}
	other, narrow, tight := welcome, welcome, welcome
	other.Version, narrow.MaxKeys, tight.MaxKeyBytes = 2, 10, 64<<10
	for name, bytes := range map[string][]byte{
		"nothing":       nil,
		"nonsense":      []byte("HTTP/1.1 400 Bad Request\r\n\r\n"),
		"empty frame":   {0, 0, 0, 0},
		"huge frame":    {0xff, 0xff, 0xff, 0xff},
		"half a frame":  {0, 0, 0, 9, 0x92},
		"wrong message": wire.AppendFeatures(nil, &wire.Announcement{}),
		"bye":           wire.AppendBye(nil, &wire.Bye{Reason: "version", Versions: []uint64{7}}),
		"broken bye":    {0, 0, 0, 3, 0x92, 8, 0xc1},
		"other version": wire.AppendWelcome(nil, &other),
		"few keys":      wire.AppendWelcome(nil, &narrow),
		"short keys":    wire.AppendWelcome(nil, &tight),
	} {
		t.Run(name, func(t *testing.T) {
			d := newFakeDaemon(t)
			var greetings atomic.Int32
			d.greeting = func(c *net.UnixConn) bool {
				if greetings.Add(1) > 2 {
					return true
				}
				c.Write(bytes)
				return false
			}
			d.start()
			c := open(t, Config{Socket: d.socket, MaxBackoff: time.Millisecond})
			c.Publish(sampleBatch(8))
			if err := c.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := d.spansSeen(); got != 8 || c.Stats().Connects != 1 {
				t.Errorf("%d spans came, %d connects", got, c.Stats().Connects)
			}
		})
	}
}

// If a daemon sends an invalid message later, the client reconnects.
func TestMessages_Invalid(t *testing.T) {
	for name, bytes := range map[string][]byte{
		"unknown type":    {0, 0, 0, 3, 0x92, 99, 0x80},
		"hello":           wire.AppendHello(nil, &wire.Hello{Version: 1}),
		"broken features": {0, 0, 0, 3, 0x92, 3, 0xc1},
		"broken answer":   {0, 0, 0, 3, 0x92, 7, 0xc1},
		"bye":             wire.AppendBye(nil, &wire.Bye{Reason: "bad_message", Detail: "you"}),
	} {
		t.Run(name, func(t *testing.T) {
			d := newFakeDaemon(t).start()
			c := open(t, Config{Socket: d.socket, MaxBackoff: time.Millisecond})
			eventually(t, "it is connected", func() bool { return c.Stats().Connects == 1 })
			d.each(func(f *fakeConn) { f.Write(bytes) })
			eventually(t, "it has come again", func() bool { return c.Stats().Connects == 2 })
			if err := c.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// Connecting and disconnecting are logged once each, whatever the number of attempts.
func TestReconnect_LoggedOnce(t *testing.T) {
	var log syncBuffer
	d := newFakeDaemon(t)
	c := open(t, Config{
		Socket: d.socket, MaxBackoff: time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	eventually(t, "it was tried", func() bool { return strings.Contains(log.String(), "can't connect") })
	time.Sleep(20 * time.Millisecond)
	d.start()
	eventually(t, "it is connected", func() bool { return c.Stats().Connected })
	d.stop()
	eventually(t, "it is disconnected", func() bool {
		return strings.Contains(log.String(),
			"the daemon said bye: shutdown")
	})
	for text, want := range map[string]int{"can't connect": 1, "msg=\"connected to": 1} {
		if got := strings.Count(strings.Split(log.String(), "disconnected")[0], text); got != want {
			t.Errorf("%q is logged %d times, want %d", text, got, want)
		}
	}
}

type syncBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

var _ io.Writer = (*syncBuffer)(nil)

func TestBackoff(t *testing.T) {
	b := backoff{max: 5 * time.Second}
	for i, want := range []time.Duration{50, 100, 200, 400, 800, 1600, 3200, 5000, 5000} {
		if got := b.limit(); got != want*time.Millisecond {
			t.Errorf("limit %d is %v", i, got)
		}
		if got := b.next(); got <= 0 || got > want*time.Millisecond {
			t.Errorf("pause %d is %v of %v", i, got, want*time.Millisecond)
		}
	}
	if b.reset(time.Second); b.failures != 9 {
		t.Error("a short connection counts as success")
	}
	if b.reset(time.Minute); b.failures != 0 {
		t.Error("a long connection does not count as success")
	}
}

func TestGate_ClosedReason(t *testing.T) {
	var g gate
	check := func(want reason) {
		t.Helper()
		if why := g.closedReason(); why != want {
			t.Errorf("shut for %v, want %v", why, want)
		}
	}
	check(noReason)
	g.refuse(notWanted)
	check(notWanted)
	g.open()
	check(noReason)
	g.refuse(disconnected)
	check(disconnected)
	g.refuse(notWanted)
	check(notWanted)
	g.refuse(disconnected)
	g.open()
	check(noReason)
	g.refuse(closed)
	g.open()
	check(closed)
	g.refuse(disconnected)
	check(closed)
}
