package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spanstatsd/spanstatsd/lab/bench/measure"
	"github.com/spanstatsd/spanstatsd/lab/bench/recorded"
	"github.com/spanstatsd/spanstatsd/lab/standin"
)

// Loads, in the order of their turns.
const (
	relayed        = iota // through the bare relay
	forwarded             // through a daemon, marked as counted
	counted               // through a daemon that counts the spans
	forwardedShare        // through a daemon that counts the spans and forwards only a share

	loads = forwardedShare + 1
)

// share is the fraction of traces that the last load forwards.
const share = "0.05"

// load is one of these loads: the process that receives the requests, and their options.
type load struct {
	target   *process
	source   *sender
	isMarked bool
	spans    uint64 // expected number of counted spans
	turns    []turn // one per round, except the first
}

// turn is the cost per request in one turn.
type turn struct{ cpu, allocs float64 }

func turnCPU(t turn) float64    { return t.cpu }
func turnAllocs(t turn) float64 { return t.allocs }

// row is a request that all loads send, over one protocol.
type row struct {
	options
	request *recorded.Request
	isGRPC  bool
	dest    *receiver
	loads   [loads]load
	ends    []func() error
}

// compareForwarding prints one row per protobuf request and protocol.
func compareForwarding(out io.Writer, o options, requests []*recorded.Request) error {
	fmt.Fprintln(out, "| request | protocol | KB | a bare relay, CPU µs a request | forwarding | times | "+
		"allocations | forwarding and counting | counting, forwarding a share of "+share+" | times a bare relay |")
	fmt.Fprintln(out, "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
	for _, isGRPC := range []bool{false, true} {
		for _, r := range requests {
			if r.IsJSON() || isPacked(r) {
				continue
			}
			one := &row{options: o, request: r, isGRPC: isGRPC}
			err := one.run()
			if err = errors.Join(err, one.close()); err != nil {
				return fmt.Errorf("%s, %s: %w", r.Name, one.protocol(), err)
			}
			one.print(out)
		}
	}
	return nil
}

func (r *row) protocol() string {
	if r.isGRPC {
		return "gRPC"
	}
	return "HTTP/1.1"
}

// run starts all processes, gives the loads their turns, and checks the accounting of the
// daemons.
func (r *row) run() error {
	if err := r.start(); err != nil {
		return err
	}
	for round := range r.rounds + 1 {
		for which := range r.loads {
			if err := r.turn(which, round > 0); err != nil { // the first round is excluded, because its keys and memory are new
				return err
			}
		}
	}
	return r.check()
}

// start starts a receiver, and a relay and two daemons that forward to it.
func (r *row) start() (err error) {
	dir, err := os.MkdirTemp("", "bench-otlp")
	if err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	r.atEnd(func() error { return os.RemoveAll(dir) })
	agent, err := standin.Start(standin.Config{Network: "unix", Address: filepath.Join(dir, "agent")})
	if err != nil {
		return err
	}
	r.atEnd(agent.Close)
	if r.dest, err = startReceiver(r.isGRPC); err != nil {
		return err
	}
	r.atEnd(func() error { r.dest.close(); return nil })
	relay, err := startRelay(r.dest.address, r.isGRPC)
	if err != nil {
		return err
	}
	r.atEnd(relay.end)
	forward := "http://" + r.dest.address
	if r.isGRPC {
		forward = "grpc://" + r.dest.address
	}
	all, err := startDaemon(r.options, filepath.Join(dir, "all.sock"), agent.URL(), forward)
	if err != nil {
		return err
	}
	r.atEnd(all.end)
	sampling, err := startDaemon(r.options, filepath.Join(dir, "share.sock"), agent.URL(), forward,
		"--otlp-keep", share)
	if err != nil {
		return err
	}
	r.atEnd(sampling.end)
	r.loads = [loads]load{
		relayed: {target: relay}, forwarded: {target: all, isMarked: true}, counted: {target: all},
		forwardedShare: {target: sampling},
	}
	for i := range r.loads {
		l := &r.loads[i]
		if l.source, err = newSender(r.request, l.target.address, r.isGRPC); err != nil {
			return err
		}
		r.atEnd(func() error { l.source.close(); return nil })
	}
	return nil
}

func (r *row) atEnd(end func() error) { r.ends = append(r.ends, end) }

// close stops everything in the reverse order of start.
func (r *row) close() (err error) {
	for i := len(r.ends) - 1; i >= 0; i-- {
		err = errors.Join(err, r.ends[i]())
	}
	return err
}

// turn sends one load, and compares it with what arrived.
func (r *row) turn(which int, isMeasured bool) error {
	l := &r.loads[which]
	requests, bytes := r.dest.requests.Load(), r.dest.bytes.Load()
	before, err := l.target.figures()
	if err != nil {
		return err
	}
	spent, err := measure.CPUOf(l.target.cmd.Process.Pid)
	if err != nil {
		return err
	}
	sent, err := l.source.sendFor(r.least, l.isMarked)
	if err != nil {
		return err
	}
	now, err := measure.CPUOf(l.target.cmd.Process.Pid)
	if err != nil {
		return err
	}
	after, err := l.target.figures()
	if err != nil {
		return err
	}
	requests, bytes = r.dest.requests.Load()-requests, r.dest.bytes.Load()-bytes
	if want := uint64(sent); which != forwardedShare &&
		(requests != want || bytes != want*uint64(len(r.request.Message))) {
		return fmt.Errorf("%d requests were sent, %d with %d bytes arrived", sent, requests, bytes)
	}
	if !l.isMarked && which != relayed {
		l.spans += uint64(sent * r.request.Spans)
	}
	if isMeasured {
		l.turns = append(l.turns, turn{
			cpu:    float64((now.All - spent.All).Nanoseconds()) / 1e3 / float64(sent),
			allocs: (after.mallocs - before.mallocs) / float64(sent),
		})
	}
	return nil
}

// check returns an error unless the daemon counted exactly the spans of the unmarked requests.
func (r *row) check() error {
	for _, which := range []int{counted, forwardedShare} {
		l := &r.loads[which]
		f, err := l.target.figures()
		if err == nil && (f.spans != l.spans || f.dropped != 0) {
			err = fmt.Errorf("%d spans were sent to be counted, %d received, %d of them dropped", l.spans,
				f.spans, f.dropped)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *row) print(out io.Writer) {
	var cpu [loads]float64
	var times [loads]float64 // cost as a multiple of the bare relay's, per round
	for i := range r.loads {
		cpu[i] = measure.Median(r.loads[i].turns, turnCPU)
		ratios := make([]float64, len(r.loads[i].turns))
		for round := range ratios {
			ratios[round] = r.loads[i].turns[round].cpu / r.loads[relayed].turns[round].cpu
		}
		times[i] = measure.Median(ratios, func(ratio float64) float64 { return ratio })
	}
	cells := []string{
		"`" + r.request.Name + "`", r.protocol(), fmt.Sprint(len(r.request.Message) / 1000),
		fmt.Sprintf("%.1f", cpu[relayed]), fmt.Sprintf("%.1f", cpu[forwarded]), fmt.Sprintf("%.2f",
			times[forwarded]),
		fmt.Sprintf("%.0f", measure.Median(r.loads[forwarded].turns, turnAllocs)), fmt.Sprintf("%.1f",
			cpu[counted]),
		fmt.Sprintf("%.1f", cpu[forwardedShare]), fmt.Sprintf("%.2f", times[forwardedShare]),
	}
	fmt.Fprintln(out, "| "+strings.Join(cells, " | ")+" |")
}
