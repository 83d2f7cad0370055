package client

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// fakeDaemon stores the messages that it receives, in the simplest way, and misbehaves on demand. Its fields must be set
// before start, or with mu held.
type fakeDaemon struct {
	t      testing.TB
	socket string

	mu        sync.Mutex
	features  wire.Features
	settles   bool
	isScraped bool                            // a successful flush does not settle spans, because only a scrape does
	history   *history                        // state that survives this daemon; nil for a daemon without tokens
	interval  uint64                          // flush interval in the welcome message
	answer    func(id uint64) *wire.Flush     // response to a flush request; nil for none
	greeting  func(c *net.UnixConn) bool      // returns false to send no welcome
	welcome   func(*wire.Hello) *wire.Welcome // replaces the default welcome
	onFrame   func(c *fakeConn, t wire.Type)  // called after a frame was counted
	listener  *net.UnixListener
	conns     map[*fakeConn]bool
	origins   []span.Origin
	counts    map[string]tally // by canonical encoding of the key
	spans     uint64
	batches   []int
	flushes   int
	lost      map[string]uint64
	byes      int
	faults    []error
	serving   sync.WaitGroup
}

// tally sums up the snapshots of one key.
type tally struct {
	spans, errors, topLevel int
	duration                uint64
	end                     int64
	weight                  float64
}

func (t tally) plus(duration uint64, end int64, flags span.Flags, weight float64) tally {
	t.spans++
	t.duration += duration
	t.end += end
	t.weight += weight
	if flags&span.Error != 0 {
		t.errors++
	}
	if flags&span.TopLevel != 0 {
		t.topLevel++
	}
	return t
}

type fakeConn struct {
	*net.UnixConn
	reading sync.Mutex // locked to make the daemon stop reading
	keys    map[uint32][]byte
	isHung  bool         // whether it hangs until it is killed
	history *connHistory // spans of this connection, if the daemon has tokens
	spans   uint64       // received on this connection
}

func newFakeDaemon(t testing.TB) *fakeDaemon {
	d := &fakeDaemon{
		t:        t,
		socket:   filepath.Join(t.TempDir(), "s"),
		features: wire.Features{Stats: true},
		answer:   func(id uint64) *wire.Flush { return &wire.Flush{ID: id, OK: true} },
		conns:    map[*fakeConn]bool{},
		counts:   map[string]tally{},
		lost:     map[string]uint64{},
	}
	t.Cleanup(func() {
		d.kill()
		for _, err := range d.faults {
			t.Errorf("fake daemon: %v", err)
		}
	})
	return d
}

// start listens. It can be called again after stop and kill.
func (d *fakeDaemon) start() *fakeDaemon {
	d.t.Helper()
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: d.socket, Net: "unix"})
	if err != nil {
		d.t.Fatalf("listen: %v", err)
	}
	d.mu.Lock()
	d.listener = listener
	d.mu.Unlock()
	d.serving.Add(1)
	go d.accept(listener)
	return d
}

func (d *fakeDaemon) accept(listener *net.UnixListener) {
	defer d.serving.Done()
	for {
		conn, err := listener.AcceptUnix()
		if err != nil {
			return
		}
		c := &fakeConn{UnixConn: conn, keys: map[uint32][]byte{}}
		d.mu.Lock()
		isStopped := d.listener != listener
		if !isStopped {
			d.conns[c] = true
			d.serving.Add(1)
		}
		d.mu.Unlock()
		if isStopped {
			conn.Close()
			return
		}
		go d.serve(c)
	}
}

func (d *fakeDaemon) serve(c *fakeConn) {
	defer d.serving.Done()
	defer func() {
		c.Close()
		d.mu.Lock()
		delete(d.conns, c)
		d.mu.Unlock()
	}()
	in := bufio.NewReader(c)
	for {
		var header [wire.HeaderLen]byte
		if _, err := io.ReadFull(in, header[:]); err != nil {
			return
		}
		message := make([]byte, wire.FrameLength(header[:]))
		if _, err := io.ReadFull(in, message); err != nil {
			return // an incomplete frame is discarded
		}
		c.reading.Lock()
		t, body, err := wire.Split(message)
		d.mu.Lock()
		if err == nil {
			err = d.take(c, t, body)
		}
		if err != nil {
			if !errors.Is(err, errNoResponse) {
				d.faults = append(d.faults, err)
			}
			d.mu.Unlock()
			c.reading.Unlock()
			return
		}
		onFrame := d.onFrame
		d.mu.Unlock()
		c.reading.Unlock()
		if onFrame != nil {
			onFrame(c, t)
		}
	}
}

var errNoResponse = errors.New("no more responses")

// take counts one message. mu must be held.
func (d *fakeDaemon) take(c *fakeConn, t wire.Type, body []byte) error {
	switch t {
	case wire.TypeHello:
		m, err := wire.DecodeHello(body)
		if err != nil {
			return err
		}
		d.origins = append(d.origins, m.Origin)
		if d.greeting != nil && !d.greeting(c.UnixConn) {
			return errNoResponse
		}
		welcome := wire.Welcome{
			Version: wire.Version, Daemon: "fake 1", MaxFrame: wire.MinMaxFrame, MaxBatch: wire.MinMaxBatch,
			MaxKeys: 1024, Features: d.features, Settled: d.settles && m.Settled, Interval: d.interval,
		}
		if d.history != nil {
			c.history, err = d.history.begin(m.Earlier, &welcome)
		}
		if d.welcome != nil {
			welcome = *d.welcome(&m)
		}
		c.Write(wire.AppendWelcome(nil, &welcome))
		return err
	case wire.TypeDefine:
		return d.takeDefine(c, body)
	case wire.TypeSpans:
		return d.takeSpans(c, body)
	case wire.TypeLost:
		m, err := wire.DecodeLost(body)
		for reason, n := range m {
			d.lost[reason] += n
		}
		return err
	case wire.TypeFlush:
		m, err := wire.DecodeFlush(body)
		d.flushes++
		if answer := d.answer(m.ID); answer != nil {
			if answer.OK && !d.isScraped {
				if c.history != nil {
					c.history.reported = c.history.spans()
				}
				c.Write(wire.AppendFeatures(nil, &wire.Announcement{Features: d.features, Settled: c.spans}))
			}
			c.Write(wire.AppendFlushAnswer(nil, answer))
		}
		return err
	case wire.TypeBye:
		d.byes++
		c.history.disconnect()
		return nil
	}
	return fmt.Errorf("a tracer may not send %s", t)
}

func (d *fakeDaemon) takeDefine(c *fakeConn, body []byte) error {
	w, err := wire.WalkDefine(body)
	if err != nil {
		return err
	}
	for number, key, ok := w.Next(); ok; number, key, ok = w.Next() {
		if number >= 1024 {
			return fmt.Errorf("number %d is out of range", number)
		}
		c.keys[number] = key
	}
	return w.Err()
}

func (d *fakeDaemon) takeSpans(c *fakeConn, body []byte) error {
	w, err := wire.WalkSpans(body)
	if err != nil {
		return err
	}
	if w.Len() > wire.MinMaxBatch {
		return fmt.Errorf("a batch of %d", w.Len())
	}
	d.batches = append(d.batches, w.Len())
	var s wire.Snapshot
	for w.Next(&s) {
		raw := s.Key
		if s.Numbered {
			if raw = c.keys[s.Number]; raw == nil {
				return fmt.Errorf("number %d was never defined", s.Number)
			}
		}
		d.counts[string(raw)] = d.counts[string(raw)].plus(s.Duration, s.End, s.Flags, s.Weight)
		d.spans++
		c.spans++
		if err := c.history.receive(raw, s.Duration); err != nil {
			return err
		}
	}
	c.history.endMessage()
	return w.Err()
}

// stop shuts down gracefully: it sends bye, shuts down the reading side, and reads everything that was sent before.
func (d *fakeDaemon) stop() {
	d.unlisten()
	conns := d.served()
	for _, c := range conns {
		c.Write(wire.AppendBye(nil, &wire.Bye{Reason: "shutdown"}))
		c.CloseRead()
	}
	d.serving.Wait()
	for _, c := range conns {
		c.history.disconnect()
	}
}

// kill ends the daemon immediately: spans that it has not read are lost.
func (d *fakeDaemon) kill() {
	d.unlisten()
	conns := d.cut()
	d.serving.Wait()
	for _, c := range conns {
		c.history.crash()
	}
}

// cut closes all connections without a bye.
func (d *fakeDaemon) cut() []*fakeConn {
	conns := d.served()
	for _, c := range conns {
		c.Close()
		if c.isHung {
			c.reading.Unlock()
		}
	}
	return conns
}

// hang makes the daemon stop reading until it is killed.
func (d *fakeDaemon) hang() {
	d.each(func(c *fakeConn) {
		c.reading.Lock()
		c.isHung = true
	})
}

func (d *fakeDaemon) unlisten() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.listener != nil {
		d.listener.Close()
		d.listener = nil
	}
}

func (d *fakeDaemon) each(do func(c *fakeConn)) {
	for _, c := range d.served() {
		do(c)
	}
}

func (d *fakeDaemon) served() []*fakeConn {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Keys(d.conns))
}

func (d *fakeDaemon) setFeatures(f wire.Features) {
	d.mu.Lock()
	d.features = f
	d.mu.Unlock()
	d.each(func(c *fakeConn) { c.Write(wire.AppendFeatures(nil, &wire.Announcement{Features: f})) })
}

// settle reports the given number of spans of each connection as settled.
func (d *fakeDaemon) settle(spans uint64) {
	d.each(func(c *fakeConn) {
		c.Write(wire.AppendFeatures(nil, &wire.Announcement{
			Features: wire.Features{Stats: true},
			Settled:  spans,
		}))
	})
}

// see calls look with the daemon's lock held.
func (d *fakeDaemon) see(look func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	look()
}

func (d *fakeDaemon) spansSeen() (n uint64) {
	d.see(func() { n = d.spans })
	return n
}

// eventually waits for a condition that other goroutines make true. Its timeout is only reached if something hangs.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for range 30_000 {
		if is() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("it never came to pass that %s", what)
}
