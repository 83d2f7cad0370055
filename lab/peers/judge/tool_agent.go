package main

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// traceAgent is the trace agent of Datadog, which receives traces of tracers that don't compute statistics themselves.
type traceAgent struct{}

func (traceAgent) name() string { return "Datadog agent" }
func (traceAgent) build() (program, module string) {
	return "agent", "github.com/DataDog/datadog-agent/pkg/trace"
}

func (traceAgent) path() string { return "`/v0.4/traces`, to Datadog's servers" }

func (traceAgent) prepare(b bench) (*candidate, error) {
	free, err := ports(1)
	if err != nil {
		return nil, err
	}
	backend, err := startDatadogBackend(b.ledger)
	if err != nil {
		return nil, err
	}
	metrics, err := startDogStatsD()
	if err != nil {
		return nil, err
	}
	return &candidate{
		command: []string{filepath.Join(b.programs, "agent"), strconv.Itoa(free[0]), backend.url(), metrics.address()},
		environ: goMemoryLimit(b.limits),
		ready:   local(free[0]),
		sender:  newDatadogSender(local(free[0])),
		output:  backend, counters: metrics,
	}, nil
}

// agentLosses are the agent's counters of losses, and whether they count spans. Each trace of the judge has one span.
var agentLosses = map[string]bool{
	"datadog.trace_agent.receiver.spans_dropped":    true,
	"datadog.trace_agent.normalizer.traces_dropped": true,
	"datadog.trace_agent.stats_writer.dropped":      false, // payloads
}

// dogStatsD receives the metrics of an agent about itself.
type dogStatsD struct {
	socket     net.PacketConn
	mu         sync.Mutex
	losses     losses
	hasMetrics bool // whether the agent has sent any metric
}

func startDogStatsD() (*dogStatsD, error) {
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the agent's metrics: %w", err)
	}
	d := &dogStatsD{socket: socket, losses: losses{}}
	go d.receive()
	return d, nil
}

func (d *dogStatsD) address() string { return d.socket.LocalAddr().String() }

// receive reads until the judge ends.
func (d *dogStatsD) receive() {
	packet := make([]byte, 64<<10)
	for {
		n, _, err := d.socket.ReadFrom(packet)
		if err != nil {
			return
		}
		for line := range strings.Lines(string(packet[:n])) {
			d.count(line)
		}
	}
}

// count adds a line such as name:value|c|#tags.
func (d *dogStatsD) count(line string) {
	name, rest, _ := strings.Cut(line, ":")
	text, _, _ := strings.Cut(rest, "|")
	value, err := strconv.ParseFloat(text, 64)
	countsSpans, isLoss := agentLosses[name]
	if !countsSpans {
		value *= otherUnit // NaN for 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hasMetrics = d.hasMetrics || strings.HasPrefix(name, "datadog.trace_agent.")
	if err == nil && isLoss && value > 0 {
		d.losses[name] += value
	}
}

// fromLog returns nil: the agent's library logs nothing here.
func (d *dogStatsD) fromLog([]byte) losses { return nil }

func (d *dogStatsD) restarted() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.losses)
}

// read returns the losses since the last restart.
func (d *dogStatsD) read() (losses, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.hasMetrics {
		return nil, errors.New("the agent has sent no metrics yet")
	}
	copied := losses{}
	copied.add(d.losses)
	return copied, nil
}
