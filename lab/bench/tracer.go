package bench

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/lab/bench/measure"
	"github.com/spanstatsd/spanstatsd/lab/workload"
)

// emitter sends the batches of one connection.
type emitter interface {
	// publish publishes a batch of spans that end now.
	publish(now time.Time) error
	// flush sends batches that publish has buffered.
	flush() error
	// close sends bye, and returns when the daemon has read everything.
	close() error
	// did returns the result. It is complete after close.
	did() *result
}

// Tracer runs a tracer process: it reads its job, performs it, and writes the result.
func Tracer(in io.Reader, out io.Writer) error {
	var j job
	words := json.NewDecoder(in)
	if err := words.Decode(&j); err != nil {
		return fmt.Errorf("read job: %w; this command is started by spanstatsd-lab bench", err)
	}
	r := newResult()
	if err := j.run(words, in, json.NewEncoder(out), &r); err != nil {
		r.Error = err.Error()
	}
	return json.NewEncoder(out).Encode(&r)
}

// run opens all connections, writes an empty result, waits for the start message, and then
// sends until the job is done or the input ends.
func (j *job) run(words *json.Decoder, in io.Reader, out *json.Encoder, r *result) error {
	emitters := make([]emitter, j.Connections)
	for i := range emitters {
		var err error
		if emitters[i], err = j.connect(j.First + i); err != nil {
			return err
		}
	}
	if err := out.Encode(&result{}); err != nil {
		return fmt.Errorf("report ready: %w", err)
	}
	var start bool
	if err := words.Decode(&start); err != nil {
		return fmt.Errorf("wait for the start: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, in) // the end of the input asks the process to stop
		stop()
	}()
	return j.drive(ctx, emitters, r)
}

// drive runs one goroutine per connection.
func (j *job) drive(ctx context.Context, emitters []emitter, r *result) error {
	before, err := measure.OwnCPU()
	if err != nil {
		return err
	}
	started := time.Now()
	failed := make([]error, len(emitters))
	var running sync.WaitGroup
	for i, e := range emitters {
		running.Go(func() { failed[i] = j.send(ctx, e, started.Add(j.stagger(j.First+i))) })
	}
	running.Wait()
	for i, e := range emitters {
		failed[i] = cmp.Or(failed[i], e.close())
		r.merge(e.did())
	}
	after, err := measure.OwnCPU()
	r.CPU = after - before
	return cmp.Or(append(failed, err)...)
}

// lull is the shortest sleep of a tracer with a rate limit.
const lull = time.Millisecond

// send publishes batches when they are due, at least one.
func (j *job) send(ctx context.Context, e emitter, started time.Time) error {
	var isOver atomic.Bool
	defer context.AfterFunc(ctx, func() { isOver.Store(true) })()
	for sent := uint64(0); j.Spans == 0 || sent < j.Spans; sent += uint64(j.Batch) {
		now := time.Now()
		for due := j.due(sent, started); due.After(now) && !isOver.Load(); now = time.Now() {
			if err := e.flush(); err != nil {
				return err
			}
			time.Sleep(min(max(due.Sub(now), lull), 100*lull))
		}
		if isOver.Load() || j.For > 0 && sent > 0 && now.Sub(started) >= j.For {
			break
		}
		if err := e.publish(now); err != nil {
			return err
		}
	}
	return e.flush()
}

// stagger returns the start delay of a connection with a rate limit, so that the connections
// don't all send at the same time.
func (j *job) stagger(number int) time.Duration {
	if j.Rate == 0 {
		return 0
	}
	interval := float64(j.Batch) / j.Rate * float64(time.Second)
	return time.Duration(interval * float64(number) / float64(max(j.All, 1)))
}

// due returns when the next batch may be sent, after a number of sent spans.
func (j *job) due(sent uint64, started time.Time) time.Time {
	switch {
	case j.Burst > 0:
		return started.Add(time.Duration(sent/j.Burst) * workload.BurstEvery)
	case j.Rate > 0:
		return started.Add(time.Duration(float64(sent) / j.Rate * float64(time.Second)))
	}
	return time.Time{}
}

// connect opens the connection with the given number.
func (j *job) connect(number int) (emitter, error) {
	if j.Tracer == HTTP {
		return newHTTPTracer(j)
	}
	generator, err := workload.New(j.Workload, uint64(number))
	if j.KeyCount > 0 {
		generator, err = workload.NewKeys(j.KeyCount, uint64(number)), nil
	}
	if err != nil {
		return nil, err
	}
	origin := span.Origin{
		Service: fmt.Sprintf("bench-%d", number%j.Origins), Env: "bench", Lang: "go",
		ContainerID: fmt.Sprintf("bench-container-%d", number%j.Origins),
	}
	if j.Tracer == Client || j.Tracer == Bare {
		return connectClient(j, origin, generator)
	}
	return connectWire(j, number, origin, generator)
}
