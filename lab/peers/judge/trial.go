package main

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// durations are the lengths of the phases of a trial.
type durations struct {
	traffic time.Duration // duration of the traffic of a scenario, with the fault in the middle
	outage  time.Duration // time that the destination is unreachable
	settle  time.Duration // longest time until the last span is in the output
	measure time.Duration // measurement of the capacity, before an overload
}

// The slowest output is that of the Collector with cumulative metrics: it exports a new series as 0, and its value after another
// flush interval of 10 s. A scrape comes up to 5 s later. A fault is not at a multiple of the flush interval, where little is lost.
var (
	thorough = durations{traffic: 70 * time.Second, outage: 60 * time.Second, settle: 27 * time.Second, measure: 8 * time.Second}
	quick    = durations{traffic: 12 * time.Second, outage: 12 * time.Second, settle: 27 * time.Second, measure: 4 * time.Second}
)

// trial is one tool in one scenario.
type trial struct {
	scenario scenario
	lasts    durations
	tool     *supervisor
	sender   sender
	output   output
	oracle   *oracle
	ledger   *ledger
	accepted atomic.Int64 // spans that the tool has accepted

	generatorMu sync.Mutex
	generator   *generator
}

// runTrial carries out a trial in an empty directory.
func runTrial(one tool, s scenario, lasts durations, b bench) (r result, err error) {
	r.Tool = one.name() // for the row of a failed trial, too
	b.ledger, b.limits = newLedger(), s.limits
	candidate, err := one.prepare(b)
	if err != nil {
		return r, fmt.Errorf("prepare %s: %w", one.name(), err)
	}
	defer candidate.output.close()
	t := &trial{
		scenario: s, lasts: lasts, sender: candidate.sender, output: candidate.output,
		oracle: newOracle(), ledger: b.ledger, generator: newGenerator(s),
	}
	if t.tool, err = supervise(b, candidate); err != nil {
		return r, err
	}
	t.ledger.begin()
	if s.isOverload {
		t.overload()
	} else {
		t.traffic()
	}
	t.oracle.rejected(t.sender.finish())
	t.settle()
	t.tool.stop()
	if err := t.tool.losses.check(); err != nil {
		return r, fmt.Errorf("%s: %w", one.name(), err)
	}
	r = t.result()
	r.Tool = one.name()
	return r, nil
}

// traffic sends the spans of the scenario, with the fault in the middle.
func (t *trial) traffic() {
	lasts := t.lasts.traffic
	if t.scenario.fault == destinationOutage {
		lasts += t.lasts.outage
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

// inject causes the fault of the scenario, and returns when it is over.
func (t *trial) inject() {
	switch t.scenario.fault {
	case restart:
		t.tool.end((*process).stop)
		t.tool.replace()
	case kill:
		t.tool.end((*process).kill)
		t.tool.replace()
	case destinationOutage:
		_ = t.output.setUnreachable(true) // closing can't fail
		time.Sleep(t.lasts.outage)
		if err := t.output.setUnreachable(false); err != nil {
			fmt.Fprintln(os.Stderr, err) // the score will be bad
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
	if t.sender.send(r, repeat) {
		t.accepted.Add(int64(len(r.spans)))
	} else {
		t.oracle.rejected(spans)
	}
}

// settle waits until every span is in the output, but not longer than a tool needs. If spans may be doubled, their number does not show
// whether every span is there.
func (t *trial) settle() {
	mayDouble := t.scenario.repeatOneIn > 0 || t.scenario.isOverload
	for deadline := time.Now().Add(t.lasts.settle); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if !mayDouble && t.ledger.total() >= t.oracle.total() {
			return
		}
	}
}

// result returns the score and the cost.
func (t *trial) result() result {
	r := result{Scenario: t.scenario.name, Crashes: t.tool.crashes, Told: t.oracle.told, Reported: t.tool.losses.ended}
	r.score = t.oracle.judge(t.ledger.counts, r.Reported, t.scenario.sampledOneIn > 0)
	r.Gap = t.ledger.gap
	var cpu time.Duration
	cpu, r.PeakMiB = t.tool.cost()
	r.CPUMicros = float64(cpu.Microseconds()) / max(1, float64(t.accepted.Load()))
	return r
}
