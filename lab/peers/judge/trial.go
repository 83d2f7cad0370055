package main

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// durations are the lengths of the phases of a trial.
type durations struct {
	traffic time.Duration // of a scenario, with the fault in the middle
	away    time.Duration // how long the destination is unreachable
	settle  time.Duration // longest time until the last span is in the output
	measure time.Duration // measurement of the capacity, before an overload
}

// The slowest output is that of the Collector with cumulative metrics: it exports a new series as 0, and its value after another
// flush interval of 10 s. A scrape comes up to 5 s later.
var (
	thorough = durations{traffic: 60 * time.Second, away: 60 * time.Second, settle: 27 * time.Second, measure: 8 * time.Second}
	quick    = durations{traffic: 12 * time.Second, away: 12 * time.Second, settle: 27 * time.Second, measure: 4 * time.Second}
)

// trial is one tool in one scenario.
type trial struct {
	bench
	tool     tool
	scenario scenario
	lasts    durations

	candidate *candidate
	group     *controlGroup
	oracle    *oracle
	reported  *lossLog

	generator   *generator
	generatorMu sync.Mutex

	mu         sync.Mutex // guards the process and its counters
	process    *process
	ended      []*process // earlier processes
	isStopping bool       // the end of the process is intended
	crashes    int

	tracked sync.WaitGroup
	over    chan struct{}
	sent    atomic.Int64 // accepted spans
}

// run carries out the trial.
func (t *trial) run() (r result, err error) {
	t.oracle, t.ledger, t.over = newOracle(), newLedger(), make(chan struct{})
	t.generator = newGenerator(t.scenario)
	if t.group, err = newControlGroup(groupName(t.dir), t.scenario.limits); err != nil {
		return r, err
	}
	defer t.group.remove()
	t.bench.limits = t.scenario.limits
	if t.candidate, err = t.tool.prepare(t.bench); err != nil {
		return r, fmt.Errorf("prepare %s: %w", t.tool.name(), err)
	}
	defer t.candidate.output.close()
	t.reported = newLossLog(t.candidate.counters)
	if err := t.start(); err != nil {
		return r, err
	}
	defer func() { t.process.kill() }()
	t.tracked.Go(t.track)
	t.ledger.begin()
	if t.scenario.isOverload {
		t.overload()
	} else {
		t.traffic()
	}
	t.oracle.rejected(t.candidate.sender.finish())
	t.settle()
	t.end((*process).stop)
	close(t.over)
	t.tracked.Wait()
	t.reported.restarted(t.process.lastLines())
	return t.result(), nil
}

func groupName(dir string) string {
	return "judge-" + strings.Trim(strings.NewReplacer("/", "-").Replace(dir), "-")
}

// start starts a process of the tool and waits until it receives spans.
func (t *trial) start() error {
	p, err := startProcess(t.dir, t.group, t.candidate.environ, t.candidate.command...)
	if err != nil {
		return err
	}
	t.mu.Lock()
	if t.process != nil {
		t.ended = append(t.ended, t.process)
	}
	t.process = p
	t.mu.Unlock()
	network := "tcp"
	if strings.HasPrefix(t.candidate.ready, "/") {
		network = "unix"
	}
	const startTimeout = time.Minute
	for deadline := time.Now().Add(startTimeout); ; time.Sleep(20 * time.Millisecond) {
		connection, err := net.Dial(network, t.candidate.ready)
		if err == nil {
			return connection.Close()
		}
		if p.hasEnded() || time.Now().After(deadline) {
			return fmt.Errorf("start %s: it does not receive spans: %s", t.tool.name(), p.lastLines())
		}
	}
}

// end ends the process as intended.
func (t *trial) end(how func(*process)) {
	t.mu.Lock()
	t.isStopping = true
	t.mu.Unlock()
	how(t.process)
}

// replace starts another process after one has ended.
func (t *trial) replace() {
	t.mu.Lock()
	t.reported.restarted(t.process.lastLines())
	t.mu.Unlock()
	t.candidate.output.restarted()
	if err := t.start(); err != nil {
		fmt.Println(err) // the score will be bad
	}
	t.mu.Lock()
	t.isStopping = false
	t.mu.Unlock()
}

// track samples memory and counters. It restarts a process that has ended by itself, as Kubernetes does.
func (t *trial) track() {
	const interval = 250 * time.Millisecond
	ticks := time.NewTicker(interval)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
		case <-t.over:
			return
		}
		if t.hasCrashed() {
			t.crashes++
			t.replace()
		}
	}
}

func (t *trial) hasCrashed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.process.hasEnded() {
		return !t.isStopping
	}
	t.process.sample()
	t.reported.update()
	return false
}

// traffic sends the spans of the scenario, with the fault in the middle.
func (t *trial) traffic() {
	lasts := t.lasts.traffic
	if t.scenario.fault == destinationAway {
		lasts += t.lasts.away
	}
	var fault sync.WaitGroup
	fault.Go(func() {
		time.Sleep(t.lasts.traffic / 2)
		t.inject()
	})
	interval := time.Duration(t.scenario.spansPerRequest) * time.Second / time.Duration(t.scenario.spansPerSecond)
	t.sendEvery(interval, lasts)
	fault.Wait()
}

func (t *trial) inject() {
	switch t.scenario.fault {
	case restart:
		t.end((*process).stop)
		t.replace()
	case kill:
		t.end((*process).kill)
		t.replace()
	case destinationAway:
		_ = t.candidate.output.setAway(true) // closing can't fail
		time.Sleep(t.lasts.away)
		if err := t.candidate.output.setAway(false); err != nil {
			fmt.Println(err) // the score will be bad
		}
	case noFault:
	}
}

// mostInFlight is the number of requests without a response at which the sender stops sending more, as an SDK with a full queue does.
const mostInFlight = 512

// sendEvery sends requests at a fixed rate and returns after the last one has been accepted or rejected. A request that exceeds
// mostInFlight is not sent, so the oracle does not expect it.
func (t *trial) sendEvery(interval, lasts time.Duration) {
	inFlight := make(chan struct{}, mostInFlight)
	var sending sync.WaitGroup
	start := time.Now()
	for due, number := start, 1; due.Sub(start) < lasts; due, number = due.Add(interval), number+1 {
		time.Sleep(time.Until(due))
		select {
		case inFlight <- struct{}{}:
		default:
			continue
		}
		r, repeat := t.nextRequest(), t.scenario.repeatOneIn > 0 && number%t.scenario.repeatOneIn == 0
		sending.Go(func() {
			t.send(r, repeat)
			<-inFlight
		})
	}
	sending.Wait()
}

func (t *trial) nextRequest() request {
	t.generatorMu.Lock()
	defer t.generatorMu.Unlock()
	return t.generator.next(time.Now())
}

func (t *trial) send(r request, repeat bool) {
	spans := float64(len(r.spans) * r.weight)
	t.oracle.sent(r)
	if t.candidate.sender.send(r, repeat) {
		t.sent.Add(int64(len(r.spans)))
	} else {
		t.oracle.rejected(spans)
	}
}

// settle waits until every span is in the output, but not longer than a tool needs.
func (t *trial) settle() {
	for deadline := time.Now().Add(t.lasts.settle); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if t.ledger.total() >= t.oracle.total() {
			return
		}
	}
}

// result returns the score and the cost.
func (t *trial) result() result {
	r := result{Tool: t.tool.name(), Scenario: t.scenario.name, Crashes: t.crashes, Told: t.oracle.told}
	r.Reported = t.reported.ended
	r.score = t.oracle.judge(t.ledger.counts, r.Reported, t.scenario.sampledOneIn > 0)
	var cpu time.Duration
	for _, p := range append(t.ended, t.process) {
		cpu += p.cpu()
		r.PeakMiB = max(r.PeakMiB, float64(p.peakKiB.Load())/1024)
	}
	r.CPUMicros = float64(cpu.Microseconds()) / max(1, float64(t.sent.Load()))
	r.Gap = t.ledger.gap
	return r
}
