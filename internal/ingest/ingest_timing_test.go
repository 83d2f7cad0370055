package ingest

import (
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/client"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
	"github.com/spanstatsd/spanstatsd/internal/workload"
)

// BenchmarkSnapshot is what a snapshot costs on each path, for each workload.
// Its lines are the table: all figures are a snapshot's, whatever a round is.
//
//	%taken  neither dropped for want of room in a ring, nor refused by the client
//	B       allocated in the whole process
//	allocs  the same, counted
//	cpu-ns  user and system time of the whole process: drainers, sender, collector
//	ns      of the goroutine that hands over
//
// The paths of the daemon begin with the message in memory (no socket) and end
// with the counted span: "whole" finds keys by their bytes, "number" by their
// numbers, "miss" meets each for the first time on its connection and in its
// cycle. The paths of the client are "publish", to a socket that is read by
// the same process, "away", into buffers that nobody empties, and "full", once
// those are.
func BenchmarkSnapshot(b *testing.B) {
	for _, name := range workload.Names() {
		b.Run(name, func(b *testing.B) {
			for _, path := range []struct {
				name   string
				run    func(*testing.B, string)
				leaves string // a workload for which it would say nothing new
			}{
				{"whole", benchmarkWhole, workload.Adversarial},
				{"number", benchmarkNumber, ""},
				{"miss", benchmarkMiss, workload.Burst},
				{"publish", benchmarkPublish, ""},
				{"away", benchmarkAway, workload.Burst},
				{"full", benchmarkFull, workload.Burst},
			} {
				if path.leaves != name {
					b.Run(path.name, func(b *testing.B) { path.run(b, name) })
				}
			}
		})
	}
}

// timedBatch is the snapshots of one message and of one call of the client.
const timedBatch = 64

// meter sums what passes between start and stop.
type meter struct {
	wall, cpu     time.Duration
	bytes, allocs uint64

	begun   time.Time
	spent   time.Duration
	before  runtime.MemStats
	current runtime.MemStats
}

func (m *meter) start() {
	runtime.ReadMemStats(&m.before)
	m.spent, m.begun = cpuTime(), time.Now()
}

func (m *meter) stop() {
	m.wall += time.Since(m.begun)
	m.cpu += cpuTime() - m.spent
	runtime.ReadMemStats(&m.current)
	m.bytes += m.current.TotalAlloc - m.before.TotalAlloc
	m.allocs += m.current.Mallocs - m.before.Mallocs
}

// cpuTime is the user and system time of the process.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic("BUG: a process was refused its own usage: " + err.Error())
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// measure runs rounds and reports what a snapshot of them cost. What prepare
// does before each is not counted, but it is waited for: the length of the
// whole is what -benchtime says. Taken is how many snapshots have been, in all.
func measure(b *testing.B, snapshots int, prepare, round func(), taken func() uint64) {
	var m meter
	before, rounds := taken(), 0
	if prepare == nil {
		round() // what a warm daemon and tracer have behind them
		before = taken()
		m.start()
	}
	for b.Loop() {
		if prepare != nil {
			prepare()
			m.start()
		}
		round()
		if prepare != nil {
			m.stop()
		}
		rounds++
	}
	if prepare == nil {
		m.stop()
	}
	total := float64(rounds * snapshots)
	b.ReportMetric(0, "ns/op") // it would be a round's
	b.ReportMetric(float64(m.wall)/total, "ns")
	b.ReportMetric(float64(m.cpu)/total, "cpu-ns")
	b.ReportMetric(float64(m.bytes)/total, "B")
	b.ReportMetric(float64(m.allocs)/total, "allocs")
	b.ReportMetric(100*float64(taken()-before)/total, "%taken")
}

// timed is a daemon without its socket.
type timed struct {
	*harness
	b    testing.TB
	name string
	gen  *workload.Generator
}

func newTimed(b *testing.B, name string) *timed {
	h := newHarness(b, func(_ *Config, a *aggregate.Config) {
		a.Drainers = runtime.GOMAXPROCS(0)
		a.Deliver = func(s *aggregate.Sealed) {
			s.Delivery.Resolve(nil)
			s.Release()
		}
	})
	h.Server.features.Store(&h.features)
	h.aggregator.Start()
	b.Cleanup(func() {
		h.aggregator.Stop()
		h.Abandon()
	})
	return &timed{harness: h, b: b, name: name, gen: newGenerator(b, name)}
}

func newGenerator(b testing.TB, name string) *workload.Generator {
	g, err := workload.New(name, 1)
	if err != nil {
		b.Fatal(err)
	}
	return g
}

// connect is a connection as it is after a hello of the service.
func (t *timed) connect(service string) *conn {
	c := &conn{server: t.Server, reader: t.aggregator.NewReader(), batch: newBatch(t.aggregator.Drainers())}
	c.origin = span.Origin{Service: service, Lang: "go"}
	c.keys = newKeys(t.config.MaxKeys, t.config.MaxKeyBytes)
	t.b.Cleanup(c.reader.Close)
	return c
}

func (t *timed) handle(c *conn, messages [][]byte) {
	for _, message := range messages {
		if _, err := c.handle(message); err != nil {
			t.b.Fatal(err)
		}
	}
}

func (t *timed) taken() uint64 {
	stats := t.Stats()
	return stats.Received - stats.DroppedTotal()
}

// period is a whole number of batches in which a workload shows all of its
// keys; of one whose keys never end, enough to make the clocks exact.
func (t *timed) period() int {
	if t.name == workload.Adversarial {
		return 16 << 10
	}
	return max(1024, len(t.gen.Keys()))
}

// messages are the next snapshots of the workload as they come from a tracer.
func (t *timed) messages(snapshots int, numbered bool) (messages [][]byte) {
	all := make([]workload.Snapshot, snapshots)
	t.gen.Fill(all, time.Now().UnixNano())
	for len(all) > 0 {
		batch := all[:min(timedBatch, len(all))]
		all = all[len(batch):]
		frame := wire.BeginSpans(nil)
		for i := range batch {
			s := &batch[i]
			if numbered {
				frame = wire.AppendNumbered(frame, uint32(s.Index), s.Duration, s.End, s.Flags, 1)
			} else {
				frame = wire.AppendWhole(frame, wire.AppendKey(nil, s.Key), s.Duration, s.End, s.Flags, 1)
			}
		}
		wire.EndSpans(frame, 0, len(batch))
		messages = append(messages, frame[wire.HeaderLen:])
	}
	return messages
}

// definition gives the keys of these snapshots the numbers from 0 on.
func definition(keys []span.Key) []byte {
	frame := wire.BeginDefine(nil)
	for i := range keys {
		frame = wire.AppendDefinition(frame, uint32(i), wire.AppendKey(nil, &keys[i]))
	}
	wire.EndDefine(frame, 0, len(keys))
	return frame[wire.HeaderLen:]
}

func benchmarkWhole(b *testing.B, name string) {
	t := newTimed(b, name)
	t.hit(b, t.connect("shop"), false)
}

func benchmarkNumber(b *testing.B, name string) {
	t := newTimed(b, name)
	c := t.connect("shop")
	if name == workload.Adversarial {
		t.defineAll(b, c)
		return
	}
	t.handle(c, [][]byte{definition(t.gen.Keys())})
	t.hit(b, c, true)
}

// hit handles the same messages again and again; those of burst when they are due.
func (t *timed) hit(b *testing.B, c *conn, numbered bool) {
	messages := t.messages(t.period(), numbered)
	round := func() { t.handle(c, messages) }
	if t.name != workload.Burst {
		measure(b, t.period(), nil, round, t.taken)
		return
	}
	times := workload.BurstSpans / t.period()
	measure(b, times*t.period(), nextBurst(), func() {
		for range times {
			round()
		}
	}, t.taken)
}

// nextBurst waits until the next burst is due.
func nextBurst() (wait func()) {
	due := time.Now()
	return func() {
		due = due.Add(workload.BurstEvery)
		time.Sleep(time.Until(due))
	}
}

// defineAll sends keys that are new with every span as the Go client would: it
// defines each for the sake of one snapshot.
func (t *timed) defineAll(b *testing.B, c *conn) {
	const defined = 512
	numbers := wire.BeginSpans(nil)
	for i := range defined {
		numbers = wire.AppendNumbered(numbers, uint32(i), 1e6, time.Now().UnixNano(), 0, 1)
	}
	wire.EndSpans(numbers, 0, defined)
	batch, keys := make([]workload.Snapshot, defined), make([]span.Key, defined)
	messages := make([][]byte, 0, 2*t.period()/defined)
	measure(b, t.period(), func() {
		messages = messages[:0]
		for range t.period() / defined {
			t.gen.Fill(batch, 0)
			for i := range batch {
				keys[i] = *batch[i].Key
			}
			messages = append(messages, definition(keys), numbers[wire.HeaderLen:])
		}
	}, func() { t.handle(c, messages) }, t.taken)
}

// missedKeys is how many keys a round of misses admits: as many as a cycle has
// room for by default.
const missedKeys = 2048

// benchmarkMiss shows each key to fresh connections, of as many origins, in a
// fresh cycle. The keys of adversarial are new to a connection that goes on.
func benchmarkMiss(b *testing.B, name string) {
	t := newTimed(b, name)
	keys := len(t.gen.Keys())
	if keys == 0 {
		c := t.connect("shop")
		var messages [][]byte
		measure(b, t.period(), func() { messages = t.messages(t.period(), false) }, func() { t.handle(c, messages) }, t.taken)
		return
	}
	conns := make([]*conn, max(1, missedKeys/keys))
	for i := range conns {
		conns[i] = t.connect(fmt.Sprint("shop ", i))
	}
	messages := onceEach(t.gen.Keys())
	measure(b, keys*len(conns), func() {
		if err := t.report(); err != nil {
			b.Fatal(err)
		}
		for _, c := range conns {
			c.keys = newKeys(t.config.MaxKeys, t.config.MaxKeyBytes)
		}
	}, func() {
		for _, c := range conns {
			t.handle(c, messages)
		}
	}, t.taken)
}

func onceEach(keys []span.Key) (messages [][]byte) {
	for len(keys) > 0 {
		frame, n := wire.BeginSpans(nil), min(timedBatch, len(keys))
		for i := range keys[:n] {
			frame = wire.AppendWhole(frame, wire.AppendKey(nil, &keys[i]), 1e6, time.Now().UnixNano(), 0, 1)
		}
		wire.EndSpans(frame, 0, n)
		messages, keys = append(messages, frame[wire.HeaderLen:]), keys[n:]
	}
	return messages
}

// tracerOf is a client, and batches of the workload for it.
type tracerOf struct {
	*client.Client
	batches [][]client.Snapshot
	earlier uint64 // taken by clients before this one
}

// batchesOf has every key of the workload once and no less than is needed to be
// unlike the last batch: what is published lies in the processor's cache, as
// that of a tracer does.
func batchesOf(b *testing.B, name string) (batches [][]client.Snapshot) {
	gen := newGenerator(b, name)
	snapshots := max(4*timedBatch, len(gen.Keys()))
	if name == workload.Adversarial {
		snapshots = 4096 // more than one buffer of the client defines
	}
	all := make([]workload.Snapshot, snapshots)
	gen.Fill(all, 0)
	flat := make([]client.Snapshot, snapshots)
	for i, s := range all {
		flat[i] = client.Snapshot{
			Key: *s.Key, Duration: time.Duration(s.Duration), End: time.Now(),
			Error: s.Flags&span.Error != 0, TopLevel: s.Flags&span.TopLevel != 0,
		}
	}
	for ; len(flat) > 0; flat = flat[timedBatch:] {
		batches = append(batches, flat[:timedBatch])
	}
	return batches
}

func (t *tracerOf) open(b *testing.B, socket string) {
	c, err := client.Open(client.Config{Socket: socket})
	if err != nil {
		b.Fatal(err)
	}
	t.Client = c
}

// leave closes the client without waiting for what it holds.
func (t *tracerOf) leave() {
	if t.Client == nil {
		return
	}
	over, cancel := context.WithCancel(context.Background())
	cancel()
	_ = t.Close(over) // what it says is that spans were lost
	t.earlier += t.Stats().Published
}

func (t *tracerOf) taken() uint64 { return t.earlier + t.Stats().Published }

// publish hands over a number of snapshots.
func (t *tracerOf) publish(snapshots int) {
	for i := 0; snapshots > 0; i = (i + 1) % len(t.batches) {
		batch := t.batches[i]
		batch = batch[:min(len(batch), snapshots)]
		t.Publish(batch)
		snapshots -= len(batch)
	}
}

func benchmarkPublish(b *testing.B, name string) {
	t := &tracerOf{batches: batchesOf(b, name)}
	t.open(b, drain(b))
	b.Cleanup(t.leave)
	for t.Stats().Connects == 0 {
		time.Sleep(time.Millisecond)
	}
	snapshots, prepare := 4096, (func())(nil)
	if name == workload.Burst {
		snapshots, prepare = workload.BurstSpans, nextBurst()
	}
	measure(b, snapshots, prepare, func() { t.publish(snapshots) }, t.taken)
}

// benchmarkAway fills no more than the buffers hold, and takes fresh ones.
func benchmarkAway(b *testing.B, name string) {
	t := &tracerOf{batches: batchesOf(b, name)}
	nobody := filepath.Join(b.TempDir(), "nobody")
	t.open(b, nobody)
	defer t.leave()
	measure(b, 16<<10, func() {
		t.leave()
		t.open(b, nobody)
	}, func() { t.publish(16 << 10) }, t.taken)
}

func benchmarkFull(b *testing.B, name string) {
	t := &tracerOf{batches: batchesOf(b, name)}
	t.open(b, filepath.Join(b.TempDir(), "nobody"))
	defer t.leave()
	for t.Stats().Refused[client.ReasonBufferFull] == 0 {
		t.publish(4096)
	}
	t.publish(1 << 20) // until every shard has noticed
	measure(b, 4096, nil, func() { t.publish(4096) }, t.taken)
}

// drain is a daemon that reads as fast as it can and looks at nothing.
func drain(b *testing.B) (socket string) {
	socket = filepath.Join(b.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { listener.Close() })
	go func() {
		c, err := listener.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		if _, err := c.Write(wire.AppendWelcome(nil, &wire.Welcome{
			Version: wire.Version, MaxFrame: wire.DefaultMaxFrame, MaxBatch: 1024, MaxKeys: 8192,
			Features: wire.Features{Stats: true},
		})); err != nil {
			return
		}
		_, _ = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{c}, make([]byte, baseBuffer))
	}()
	return socket
}
