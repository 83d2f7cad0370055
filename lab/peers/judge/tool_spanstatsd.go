package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
)

// spanstatsd is the daemon of this repository, with one of its receivers and one of its exporters.
type spanstatsd struct{ input input }

// input is a way for spans to reach the daemon.
type input int

const (
	overOTLP    input = iota // to Prometheus
	overDatadog              // to a Datadog agent
	overSocket               // to OTLP metrics with delta temporality
)

func (s spanstatsd) name() string {
	return [...]string{"spanstatsd, OTLP", "spanstatsd, Datadog API", "spanstatsd, socket"}[s.input]
}

func (spanstatsd) build() (program, module string) { return "spanstatsd", "" }

func (s spanstatsd) path() string {
	return [...]string{
		"OTLP over HTTP, to a Prometheus that scrapes it", "`/v0.4/traces`, to a Datadog agent",
		"the Go client, to OTLP metrics with delta temporality",
	}[s.input]
}

func (s spanstatsd) prepare(b bench) (*candidate, error) {
	free, err := ports(2)
	if err != nil {
		return nil, err
	}
	socket, status, receiver := filepath.Join(b.dir, "spans.sock"), local(free[0]), local(free[1])
	made := &candidate{
		command: []string{
			filepath.Join(b.programs, "spanstatsd"), "run", "--socket", socket, "--http-addr", status,
			"--log-format", "json",
		},
		ready:    receiver,
		counters: spanstatsdCounters{"http://" + status + "/metrics"},
	}
	switch s.input {
	case overOTLP:
		// With a scrape interval of 5 s, as docs/prometheus.md recommends.
		made.command = append(made.command, "--otlp-addr", receiver, "--prometheus", "--shutdown-grace", "10s")
		made.output = startScraper("http://"+status+"/metrics/spans", b.ledger)
		made.sender = newOTLPSender(receiver)
	case overDatadog:
		agent, err := startAgentOutput(b.ledger)
		if err != nil {
			return nil, err
		}
		made.command = append(made.command, "--apm-addr", receiver, "--agent-url", agent.url())
		made.output = agent
		made.sender = newDatadogSender(receiver)
	case overSocket:
		destination, err := startOTLPDestination(b.ledger)
		if err != nil {
			return nil, err
		}
		made.command = append(made.command, "--otlp-metrics-endpoint", destination.url()+"/v1/metrics")
		made.ready, made.output = socket, destination
		if made.sender, err = newNativeSender(socket); err != nil {
			return nil, err
		}
	}
	return made, nil
}

// spanstatsdCounters reads the daemon's metrics about itself. Each counts spans.
type spanstatsdCounters struct{ url string }

func (spanstatsdCounters) restarted() {}

// fromLog reads the accounting in the last line of a graceful shutdown.
func (spanstatsdCounters) fromLog(log []byte) losses {
	lines := bytes.Split(bytes.TrimSpace(log), []byte("\n"))
	var last struct {
		Msg             string
		Dropped, Unsent float64
	}
	if json.Unmarshal(lines[len(lines)-1], &last) != nil || last.Msg != "stopped" {
		return nil // the process was killed
	}
	return losses{"dropped, in the log": last.Dropped, "unsent, in the log": last.Unsent}
}

func (c spanstatsdCounters) read() (losses, error) {
	isLoss := map[string]bool{
		"spanstatsd_spans_dropped_total": true, "spanstatsd_spans_unsent_total": true,
		"spanstatsd_spans_lost_to_crashes_total": true,
	}
	samples, err := readSamples(c.url, func(metric string) bool { return isLoss[metric] })
	if err != nil {
		return nil, err
	}
	found := losses{}
	for _, s := range samples {
		if s.value > 0 {
			name := strings.TrimSuffix(strings.TrimPrefix(s.metric(), "spanstatsd_spans_"), "_total")
			found[fmt.Sprintf("%s: %s", name, s.label("reason"))] += s.value
		}
	}
	return found, nil
}
