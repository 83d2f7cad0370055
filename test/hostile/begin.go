package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"sync/atomic"

	"github.com/spanstatsd/spanstatsd/lab/standin/collector"
)

// memoryLimit is the memory limit of each daemon. With all receivers enabled, most derived limits are
// small.
const memoryLimit = "192MiB"

// retryBytes is the size of the retry queue: enough for payloads that wait while the agent misbehaves
// and while a daemon pauses before its next attempt (5 s to 8 s). The default, half of the limit, was
// barely enough.
const retryBytes = "16MiB"

// begin starts everything except the hostile processes.
func (s *soak) begin(ctx context.Context) (err error) {
	if s.agent, err = newAgent(filepath.Join(s.dir, "agent"), s.ledger); err != nil {
		return err
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	if s.behind, err = newDestination(port, s.ledger); err != nil {
		return err
	}
	if s.metrics, err = collector.Start(collector.Config{OnRequest: s.ledger.metricsOf}); err != nil {
		return err
	}
	for _, one := range []struct {
		name                string
		isGiven, hasMetrics bool
		flags               []string
	}{
		{"otel", false, true, []string{
			"--otlp-forward=http://" + port, "--otlp-metrics-endpoint=" + s.metrics.URL(),
		}},
		{"datadog", true, false, []string{"--otlp-forward=grpc://" + port, "--otlp-semantics=datadog"}},
	} {
		d, err := s.place(one.name, one.flags...)
		if err != nil {
			return err
		}
		if d.hasMetrics = one.hasMetrics; one.isGiven {
			if err := d.listen(); err != nil {
				return err
			}
		}
		if err := d.start(); err != nil {
			return err
		}
		s.daemons = append(s.daemons, d)
		s.startSenders(ctx, d)
	}
	return nil
}

// place chooses the addresses of a daemon.
func (s *soak) place(name string, more ...string) (*daemon, error) {
	var ports [3]string
	for i := range ports {
		var err error
		if ports[i], err = freePort(); err != nil {
			return nil, err
		}
	}
	at := target{
		Spans: filepath.Join(s.dir, name+"-s"), APM: filepath.Join(s.dir, name+"-a"),
		OTLP: filepath.Join(s.dir, name+"-o"), APMAddr: ports[0], OTLPAddr: ports[1], Page: ports[2],
	}
	flags := []string{
		"run", "--debug", "--agent-url=" + s.agent.URL(), "--socket=" + at.Spans, "--apm-socket=" + at.APM,
		"--apm-addr=" + at.APMAddr, "--otlp-socket=" + at.OTLP, "--otlp-addr=" + at.OTLPAddr,
		"--http-addr=" + at.Page, "--log-format=json", "--flush-interval=2s", "--shutdown-grace=20s",
		"--retry-bytes=" + retryBytes,
	}
	return &daemon{name: name, program: s.program, flags: append(flags, more...), at: at, log: s.log}, nil
}

// freePort returns an unused port outside the kernel's range for outgoing connections, so that it stays
// free while a daemon restarts.
func freePort() (string, error) {
	for range 1000 {
		address := fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(10_000))
		listener, err := net.Listen("tcp", address)
		if err == nil {
			return address, listener.Close()
		}
	}
	return "", errors.New("find a free port: there is none")
}

// startSenders starts the polite senders of a daemon: one per receiver and format.
func (s *soak) startSenders(ctx context.Context, d *daemon) {
	begin := func(name, address string, speaks format, hurries *atomic.Bool) {
		name = d.name + "-" + name
		p := &polite{
			name: name, address: address, speaks: speaks, hurries: hurries, ledger: s.ledger,
			account: s.ledger.open(name),
		}
		p.account.isMerged, p.account.hasMetrics = speaks.path == "/v0.6/stats", d.hasMetrics
		s.polite.Go(func() { p.run(ctx, s.stop) })
	}
	for name, speaks := range tracerFormats {
		begin("unix-"+name, d.at.APM, speaks, nil)
		begin("tcp-"+name, d.at.APMAddr, speaks, nil)
	}
	begin("hurried-v04", d.at.APMAddr, tracerFormats["v04"], &s.hurry)
	for name, speaks := range sdkFormats {
		begin("unix-"+name, d.at.OTLP, speaks, nil)
		begin("tcp-"+name, d.at.OTLPAddr, speaks, nil)
		begin("hurried-"+name, d.at.OTLPAddr, speaks, &s.hurry)
	}
	for _, keys := range []int{20, 400} {
		name := fmt.Sprintf("%s-ours-%d", d.name, keys)
		o := &ours{
			name: name, socket: d.at.Spans, keys: keys, ledger: s.ledger, account: s.ledger.open(name),
		}
		o.account.hasMetrics = d.hasMetrics
		s.polite.Go(func() {
			if err := o.run(ctx, s.stop); err != nil {
				s.noticed("%v", err)
			}
		})
	}
}
