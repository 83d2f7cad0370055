package snapshot

import (
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/client"
	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
	"github.com/spanstatsd/spanstatsd/lab/workload"
)

// BenchmarkSnapshot measures the cost of a snapshot on each path, for each workload. Its lines
// are the table. All figures are per snapshot, whatever the size of a round.
//
//	%taken  neither dropped because a ring was full, nor refused by the client
//	B       bytes allocated in the whole process
//	allocs  allocations in the whole process
//	cpu-ns  user and system time of the whole process: drainers, sender, garbage collection
//	ns      wall time of the publishing goroutine
//
// The daemon's paths begin with the message in memory (no socket) and end with the counted
// span: "whole" finds keys by their bytes, "number" by their numbers, and "miss" sees each key
// for the first time on its connection and in its cycle. The client's paths are "publish", to a
// socket that is read by the same process; "encoded", the same with keys encoded in advance;
// "away", into buffers that are never emptied; and "full", after these buffers are full.
func BenchmarkSnapshot(b *testing.B) {
	for _, name := range workload.Names() {
		b.Run(name, func(b *testing.B) {
			for _, path := range []struct {
				name  string
				run   func(*testing.B, string)
				skips []string // workloads for which it adds nothing
			}{
				{"whole", benchmarkWhole, []string{workload.Adversarial}}, // all keys are misses in any case
				{"number", benchmarkNumber, nil},
				{"miss", benchmarkMiss, []string{workload.Burst}},
				{"publish", benchmarkPublish, nil},
				// each key is used only once
				{"encoded", benchmarkEncoded, []string{workload.Burst, workload.Adversarial}},
				{"away", benchmarkAway, []string{workload.Burst}},
				{
					"full", benchmarkFull,
					[]string{workload.Pool, workload.Skewed, workload.Burst, workload.Adversarial},
				},
			} {
				if !slices.Contains(path.skips, name) {
					b.Run(path.name, func(b *testing.B) { path.run(b, name) })
				}
			}
		})
	}
}

// timedBatch is the number of snapshots per message and per call of the client.
const timedBatch = 64

// roundSpans is the number of snapshots per round, less than the slots of a ring.
const roundSpans = 8192

// meter accumulates costs while it runs.
type meter struct {
	cpu           time.Duration
	bytes, allocs uint64

	before, now runtime.MemStats
	spent       time.Duration
}

func (m *meter) start() {
	runtime.ReadMemStats(&m.before)
	m.spent = cpuTime()
}

func (m *meter) stop() {
	m.cpu += cpuTime() - m.spent
	runtime.ReadMemStats(&m.now)
	m.bytes += m.now.TotalAlloc - m.before.TotalAlloc
	m.allocs += m.now.Mallocs - m.before.Mallocs
}

// cpuTime returns the user and system time of the process.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic("BUG: a process was refused its own usage: " + err.Error())
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// path is one measured path, executed in rounds.
type path struct {
	snapshots int           // snapshots per round
	prepare   func()        // called before each round, not measured; can be nil
	round     func()        // measured function
	settle    func()        // waits until the round is processed: its CPU time is measured, the waiting is not
	taken     func() uint64 // snapshots accepted since the start
}

// measure runs rounds and reports the cost per snapshot. -benchtime is the total duration,
// including unmeasured parts.
func (p *path) measure(b *testing.B) {
	if p.prepare == nil {
		p.round() // warm-up
		p.settle()
	}
	var m meter
	var wall time.Duration
	before, rounds := p.taken(), 0
	m.start()
	for b.Loop() {
		if p.prepare != nil {
			m.stop()
			p.prepare()
			m.start()
		}
		start := time.Now()
		p.round()
		wall += time.Since(start)
		p.settle()
		rounds++
	}
	m.stop()
	total := float64(rounds * p.snapshots)
	report := func(sum float64, unit string) {
		b.ReportMetric(math.Round(1000*sum/total)/1000, unit)
	}
	b.ReportMetric(0, "ns/op") // removes the duration of a round from the output
	report(float64(wall), "ns")
	report(float64(m.cpu), "cpu-ns")
	report(float64(m.bytes), "B")
	report(float64(m.allocs), "allocs")
	report(100*float64(p.taken()-before), "%taken")
}

// timed consists of the parts of a daemon that process data after the sockets.
type timed struct {
	key        span.Key // reused by all labelers
	b          testing.TB
	name       string
	gen        *workload.Generator
	admit      *admit.Publishers
	aggregator *aggregate.Aggregator

	before uint64 // spans taken before the last restart
}

func newTimed(b *testing.B, name string) *timed {
	t := &timed{b: b, name: name, gen: newGenerator(b, name)}
	t.start()
	b.Cleanup(func() { t.aggregator.Stop() })
	return t
}

// counting returns the daemon's default configuration without an exporter.
func counting() aggregate.Config {
	config := aggregate.DefaultConfig()
	config.Drainers = runtime.GOMAXPROCS(0)
	config.Deliver = func(s *aggregate.Sealed) {
		s.Delivery.Resolve(nil)
		s.Release()
	}
	return config
}

// start starts the first cycle.
func (t *timed) start() { t.startWith(counting()) }

func (t *timed) startWith(tables aggregate.Config) {
	var err error
	if t.aggregator, err = aggregate.New(tables); err != nil {
		t.b.Fatal(err)
	}
	t.aggregator.Start()
	config := admit.DefaultConfig()
	config.Aggregator = t.aggregator
	config.Block = t.name == workload.Burst || workload.IsFlood(t.name) // bursts and floods are larger than the rings
	if t.admit, err = admit.New(config); err != nil {
		t.b.Fatal(err)
	}
}

// restart stops all parts and starts again.
func (t *timed) restart() {
	t.aggregator.Stop()
	t.before = t.taken()
	t.start()
}

func newGenerator(b testing.TB, name string) *workload.Generator {
	g, err := workload.New(name, 1)
	if err != nil {
		b.Fatal(err)
	}
	return g
}

// connect returns a publisher as a connection has it after the hello of a service.
func (t *timed) connect(service string) *admit.Publisher {
	return t.admit.NewConnection(span.Origin{Service: service, Lang: "go"}, 0)
}

// handle processes messages as a connection does.
func (t *timed) handle(p *admit.Publisher, messages [][]byte) {
	for _, message := range messages {
		kind, body, err := wire.Split(message)
		if err == nil && kind == wire.TypeSpans {
			err = p.Publish(body)
		} else if err == nil {
			err = define(p, body)
		}
		if err != nil {
			t.b.Fatal(err)
		}
	}
}

func define(p *admit.Publisher, body []byte) error {
	walker, err := wire.WalkDefine(body)
	if err != nil {
		return err
	}
	for number, raw, ok := walker.Next(); ok; number, raw, ok = walker.Next() {
		if err := p.Define(number, raw); err != nil {
			return err
		}
	}
	return walker.Err()
}

func (t *timed) taken() uint64 {
	stats := t.admit.Stats()
	return t.before + stats.Received - stats.DroppedTotal()
}

// settle waits until the drainers have counted all spans.
func (t *timed) settle() {
	for drainer := range t.aggregator.Drainers() {
		for t.aggregator.Ring(drainer).Stats().Used > 0 {
			time.Sleep(20 * time.Microsecond)
		}
	}
}

// messages returns the next snapshots of the workload, encoded as by a tracer.
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

// definition returns a message that assigns numbers from 0 on to the keys.
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

// hit handles the same messages repeatedly; for workload burst, when they are due.
func (t *timed) hit(b *testing.B, c *admit.Publisher, numbered bool) {
	period := max(1024, len(t.gen.Keys()))
	messages := t.messages(period, numbered)
	p := path{settle: t.settle, taken: t.taken}
	times := roundSpans / period
	if t.name == workload.Burst {
		times, p.prepare = workload.BurstSpans/period, nextBurst()
	}
	p.snapshots, p.round = times*period, func() {
		for range times {
			t.handle(c, messages)
		}
	}
	p.measure(b)
}

// nextBurst returns a function that waits until the next burst is due.
func nextBurst() (wait func()) {
	due := time.Now()
	return func() {
		due = due.Add(workload.BurstEvery)
		time.Sleep(time.Until(due))
	}
}

// defineAll sends keys that are new in every span as the Go client would: it defines each key,
// and uses it once.
func (t *timed) defineAll(b *testing.B, c *admit.Publisher) {
	const defined = 512
	numbers := wire.BeginSpans(nil)
	for i := range defined {
		numbers = wire.AppendNumbered(numbers, uint32(i), 1e6, time.Now().UnixNano(), 0, 1)
	}
	wire.EndSpans(numbers, 0, defined)
	batch, keys := make([]workload.Snapshot, defined), make([]span.Key, defined)
	messages := make([][]byte, 0, 2*roundSpans/defined)
	p := path{snapshots: roundSpans, settle: t.settle, taken: t.taken}
	p.prepare = func() {
		messages = messages[:0]
		for range roundSpans / defined {
			t.gen.Fill(batch, 0)
			for i := range batch {
				keys[i] = *batch[i].Key
			}
			messages = append(messages, definition(keys), numbers[wire.HeaderLen:])
		}
	}
	p.round = func() { t.handle(c, messages) }
	p.measure(b)
}

// missedKeys is the number of keys that a round of misses admits: the default capacity of a
// cycle.
const missedKeys = 2048

// benchmarkMiss sends each key once, over new connections of different origins, in a daemon's
// first cycle. (A later cycle would reuse rows and sketches.) Adversarial stays on one
// connection, whose key table soon fills up.
func benchmarkMiss(b *testing.B, name string) {
	t := newTimed(b, name)
	keys := len(t.gen.Keys())
	if keys == 0 {
		c := t.connect("shop")
		var messages [][]byte
		p := path{snapshots: roundSpans, settle: t.settle, taken: t.taken}
		p.prepare = func() {
			messages = t.messages(roundSpans, false)
			runtime.GC() // garbage of the messages' creation
		}
		p.round = func() { t.handle(c, messages) }
		p.measure(b)
		return
	}
	conns := make([]*admit.Publisher, max(1, missedKeys/keys))
	messages := onceEach(t.gen.Keys())
	p := path{snapshots: keys * len(conns), settle: t.settle, taken: t.taken}
	p.prepare = func() {
		t.restart()
		for i := range conns {
			conns[i] = t.connect(fmt.Sprint("shop ", i))
		}
		runtime.GC() // garbage of the previous daemon
	}
	p.round = func() {
		for _, c := range conns {
			t.handle(c, messages)
		}
	}
	p.measure(b)
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

// tracerOf is a client, and batches of the workload to publish.
type tracerOf struct {
	*client.Client
	batches [][]client.Snapshot
	earlier uint64 // snapshots accepted by previous clients
}

// batchesOf returns batches with every key of the workload, and no more: a real tracer's spans
// are in the processor's cache when it publishes them.
func batchesOf(b *testing.B, name string) (batches [][]client.Snapshot) {
	gen := newGenerator(b, name)
	snapshots := max(4*timedBatch, len(gen.Keys()))
	if name == workload.Adversarial {
		snapshots = 4096 // the client needs more than one buffer to define them
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

// leave closes the client without waiting for its buffered spans.
func (t *tracerOf) leave() {
	if t.Client == nil {
		return
	}
	over, cancel := context.WithCancel(context.Background())
	cancel()
	_ = t.Close(over) // the error reports lost spans, as expected
	t.earlier += t.Stats().Published
}

func (t *tracerOf) taken() uint64 { return t.earlier + t.Stats().Published }

// settle waits until the buffers hold at most what the shards keep for their next messages. The
// next round then fits.
func (t *tracerOf) settle() {
	for t.Stats().Buffered > 2*roundSpans {
		time.Sleep(20 * time.Microsecond)
	}
}

// publish publishes a number of snapshots.
func (t *tracerOf) publish(snapshots int) {
	for i := 0; snapshots > 0; i = (i + 1) % len(t.batches) {
		batch := t.batches[i]
		batch = batch[:min(len(batch), snapshots)]
		t.Publish(batch)
		snapshots -= len(batch)
	}
}

func benchmarkPublish(b *testing.B, name string) {
	publishTo(b, name, batchesOf(b, name))
}

func benchmarkEncoded(b *testing.B, name string) {
	batches := batchesOf(b, name)
	for _, batch := range batches {
		for i := range batch {
			batch[i].Encoded = client.EncodeKey(batch[i].Key)
			batch[i].Key = client.Key{}
		}
	}
	publishTo(b, name, batches)
}

// publishTo measures publishing to a socket with a reader.
func publishTo(b *testing.B, name string, batches [][]client.Snapshot) {
	t := &tracerOf{batches: batches}
	t.open(b, drain(b))
	b.Cleanup(t.leave)
	for t.Stats().Connects == 0 {
		time.Sleep(time.Millisecond)
	}
	p := path{snapshots: roundSpans, settle: t.settle, taken: t.taken}
	if name == workload.Burst {
		p.snapshots, p.prepare = workload.BurstSpans, nextBurst()
	}
	p.round = func() { t.publish(p.snapshots) }
	p.measure(b)
}

// benchmarkAway fills only empty buffers, which it replaces before they are full.
func benchmarkAway(b *testing.B, name string) {
	t := &tracerOf{batches: batchesOf(b, name)}
	nobody := filepath.Join(b.TempDir(), "nobody")
	t.open(b, nobody)
	defer t.leave()
	p := path{snapshots: 2 * roundSpans, settle: func() {}, taken: t.taken}
	p.prepare = func() {
		t.leave()
		t.open(b, nobody)
	}
	p.round = func() { t.publish(p.snapshots) }
	p.measure(b)
}

func benchmarkFull(b *testing.B, name string) {
	t := &tracerOf{batches: batchesOf(b, name)}
	t.open(b, filepath.Join(b.TempDir(), "nobody"))
	defer t.leave()
	t.publish(1 << 20) // more than the buffers hold, so that every shard is full
	p := path{snapshots: 1 << 20, settle: func() {}, taken: t.taken}
	p.round = func() { t.publish(p.snapshots) }
	p.measure(b)
}

// drain listens as a daemon that reads and discards data as fast as it can.
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
		_, _ = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{c}, make([]byte, 64<<10))
	}()
	return socket
}
