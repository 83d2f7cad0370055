package bench

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	dd "github.com/spanstatsd/spanstatsd/internal/rules/datadog"
	"github.com/spanstatsd/spanstatsd/lab/bench/measure"
	"github.com/spanstatsd/spanstatsd/lab/bench/relay"
)

// Workload traces sends the same requests as three loads: marked as counted by their tracer, so
// that the daemon only forwards them; through a bare relay instead of the daemon; and unmarked,
// so that the daemon counts their spans. The loads take turns, so that other load on the
// machine affects all alike. Counting alone, in this process, takes turns with them too: once
// from the body to the batch for a ring, and once including all further counting. The first
// round is excluded from the costs, because its keys and memory are new.

// tracesRounds is the number of measured rounds, after one that is not measured.
const tracesRounds = 5

// runTraces measures the cost of spans in tracers' requests.
func (r *run) runTraces(ctx context.Context) (*Report, error) {
	recording, err := loadRecording(r.config.Format)
	if err != nil {
		return nil, err
	}
	r.config.Tracer, r.config.Batch = HTTP, recording.spans
	if r.target, err = startTarget(&r.config); err != nil {
		return nil, err
	}
	defer r.target.kill()
	if r.before, err = r.read(); err != nil {
		return nil, err
	}
	r.report = r.newReport()
	t := &tracesRun{
		run: r, recording: recording, counter: dd.NewCounter(), policy: defaultPolicy(),
	}
	for i := range t.loads {
		t.loads[i] = load{socket: r.target.apm, did: newResult()}
	}
	if t.complete, err = newWholeCounting(); err != nil {
		return nil, err
	}
	if err := t.startRelay(); err != nil {
		return nil, err
	}
	defer t.relay.kill()
	profiled := r.profile(ctx)
	for round := 0; round <= tracesRounds && t.goesOn(ctx); round++ {
		if err := t.round(ctx, round > 0); err != nil {
			return nil, err
		}
	}
	if err := <-profiled; err != nil {
		r.report.fault(err)
	}
	if len(t.loads[counted].turns) == 0 {
		return nil, fmt.Errorf("measure traces: it ended before a round was over: %q", t.report.Faults)
	}
	return t.report, t.end()
}

// startRelay starts the bare relay, which forwards to the daemon's mock agent.
func (t *tracesRun) startRelay() (err error) {
	at := filepath.Join(t.target.dir, "relay.sock")
	t.loads[relayed].socket = at
	agent := strings.TrimPrefix(t.target.agent.URL(), "unix://")
	if t.relay, err = startProducer(&t.config, "relay",
		&relay.Job{Network: "unix", Listen: at, To: agent}); err != nil {
		return err
	}
	if err = t.relay.await(); err != nil {
		t.relay.kill()
	}
	return err
}

func (t *tracesRun) goesOn(ctx context.Context) bool {
	return ctx.Err() == nil && len(t.report.Faults) == 0
}

// round gives each load one turn.
func (t *tracesRun) round(ctx context.Context, isMeasured bool) error {
	const turns = (2 + loads) * (tracesRounds + 1)
	c := t.config
	c.For, c.Spans = c.For/turns, (c.Spans+turns-1)/turns
	if err := t.countAlone(&c, isMeasured); err != nil {
		return err
	}
	for i := range t.loads {
		if !t.goesOn(ctx) {
			return nil
		}
		if err := t.turn(ctx, &c, i, isMeasured); err != nil {
			return err
		}
	}
	return nil
}

// countAlone counts the spans of the recording in this process, while nothing else of the
// measurement runs: from the request's bytes to the batch for a ring, and completely into
// tables.
func (t *tracesRun) countAlone(c *Config, isMeasured bool) error {
	walk, err := t.countBy(c, func() error { return t.recording.count(t.counter, t.policy) })
	if err != nil {
		return err
	}
	complete, err := t.countBy(c, func() error { return t.complete.count(t.recording, t.policy) })
	if err == nil && isMeasured {
		t.counting = append(t.counting, countedAlone{walk, complete})
	}
	return err
}

// countBy calls count repeatedly, and returns the cost per span.
func (t *tracesRun) countBy(c *Config, count func() error) (measure.Each, error) {
	spans := uint64(0)
	cost, err := measure.Of(func() error {
		for started := time.Now(); spans == 0 || (c.For == 0 || time.Since(started) < c.For) &&
			(c.Spans == 0 || spans < c.Spans); {
			if err := count(); err != nil {
				return fmt.Errorf("count recording: %w", err)
			}
			spans += uint64(t.recording.spans)
		}
		return nil
	})
	return cost.Each(spans), err
}

// turn sends one load with tracers that begin and end with it, and returns when the sent spans
// are counted. Regular flushes can happen in any turn: they cost about a nanosecond per span,
// which does not matter.
func (t *tracesRun) turn(ctx context.Context, c *Config, loadIndex int, isMeasured bool) error {
	jobs := c.jobs(t.loads[loadIndex].socket)
	for i := range jobs {
		jobs[i].ComputesStats = loadIndex != counted
	}
	var before reading
	var arrived uint64
	did, err := t.drive(ctx, jobs, func() (err error) {
		arrived = t.target.agent.Totals().Counted.Requests
		before, err = t.readFor(loadIndex)
		return err
	})
	if err != nil {
		return err
	}
	sending := time.Since(before.at)
	if loadIndex == counted {
		arrived = t.target.agent.Totals().Counted.Requests - arrived
		if err := t.target.awaitAccounting(before.accounting.Received +
			arrived*uint64(t.recording.counted)); err != nil {
			t.report.fault(err)
		}
	}
	after, err := t.readFor(loadIndex)
	if err != nil {
		return err
	}
	after.at = before.at.Add(sending) // excludes the wait after sending from the load's duration
	t.add(loadIndex, &did, &before, &after, isMeasured)
	return nil
}

// readFor takes a reading of the process that has the turn. A relay has only CPU time.
func (t *tracesRun) readFor(loadIndex int) (n reading, err error) {
	if loadIndex != relayed {
		return t.read()
	}
	n.at = time.Now()
	n.cpu, err = measure.CPUOf(t.relay.cmd.Process.Pid)
	return n, err
}

// add adds the result of a turn, and if it is measured its costs.
func (t *tracesRun) add(loadIndex int, did *result, before, after *reading, isMeasured bool) {
	l := &t.loads[loadIndex]
	l.did.merge(did)
	l.seconds += after.at.Sub(before.at).Seconds()
	if !isMeasured || did.Handed == 0 {
		return
	}
	var cost costs
	cost.add(before, after)
	if loadIndex == counted {
		t.costs.add(before, after)
	}
	spans := float64(did.Handed)
	l.turns = append(l.turns, TracesLoad{
		SpansPerSecond: spans / cost.seconds, CPU: float64(cost.cpu.All) / spans,
		SystemCPU:    float64(cost.cpu.System) / spans,
		CPUPerSecond: float64(cost.cpu.All) / cost.seconds,
		TracerCPU:    float64(did.CPU) / spans, Allocs: cost.grown[mallocs] / spans,
	})
}

// end requests a flush, stops the daemon and fills the report.
func (t *tracesRun) end() error {
	after, err := t.flush()
	if err != nil {
		return err
	}
	if err := t.complete.end(); err != nil {
		return err
	}
	t.report.Seconds = t.loads[counted].seconds
	t.report.addTracers(&t.loads[counted].did)
	if err := t.finish(&after, &t.costs); err != nil {
		return err
	}
	t.addTraces(t.report)
	t.report.TracerCPU = t.report.Traces.Counted.TracerCPU
	return nil
}
