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

// retryBytes is the size of the retry queue: enough for payloads that are queued while the agent
// misbehaves and while a daemon waits before its next attempt (5 s to 8 s). The default, half of the
// limit, was barely enough.
const retryBytes = "16MiB"

// startAll starts everything except the hostile processes.
func (s *soak) startAll(ctx context.Context) (err error) {
	if s.agent, err = newAgent(filepath.Join(s.dir, "agent"), s.ledger); err != nil {
		return err
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	if s.destination, err = newDestination(port, s.ledger); err != nil {
		return err
	}
	if s.metrics, err = collector.Start(collector.Config{OnRequest: s.ledger.recordMetrics}); err != nil {
		return err
	}
	for _, config := range []struct {
		name                        string
		inheritsSockets, hasMetrics bool
		flags                       []string
	}{
		{"otel", false, true, []string{
			"--otlp-forward=http://" + port, "--otlp-metrics-endpoint=" + s.metrics.URL(),
		}},
		{"datadog", true, false, []string{"--otlp-forward=grpc://" + port, "--otlp-semantics=datadog"}},
	} {
		d, err := s.newDaemon(config.name, config.flags...)
		if err != nil {
			return err
		}
		if d.hasMetrics = config.hasMetrics; config.inheritsSockets {
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

// newDaemon returns a daemon with unused addresses. It does not start it.
func (s *soak) newDaemon(name string, extraFlags ...string) (*daemon, error) {
	var ports [3]string
	for i := range ports {
		var err error
		if ports[i], err = freePort(); err != nil {
			return nil, err
		}
	}
	t := target{
		Spans: filepath.Join(s.dir, name+"-s"), APM: filepath.Join(s.dir, name+"-a"),
		OTLP: filepath.Join(s.dir, name+"-o"), APMAddr: ports[0], OTLPAddr: ports[1], StatusAddr: ports[2],
	}
	flags := []string{
		"run", "--debug", "--agent-url=" + s.agent.URL(), "--socket=" + t.Spans, "--apm-socket=" + t.APM,
		"--apm-addr=" + t.APMAddr, "--otlp-socket=" + t.OTLP, "--otlp-addr=" + t.OTLPAddr,
		"--http-addr=" + t.StatusAddr, "--log-format=json", "--flush-interval=2s", "--shutdown-grace=20s",
		"--retry-bytes=" + retryBytes,
	}
	return &daemon{name: name, program: s.program, flags: append(flags, extraFlags...), target: t, log: s.log}, nil
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
	return "", errors.New("find a free port: all are in use; end other processes that listen on ports from 20000 to 29999")
}

// startSenders starts the well-behaved senders of a daemon: one per receiver and format.
func (s *soak) startSenders(ctx context.Context, d *daemon) {
	startSender := func(name, address string, f format, abandons *atomic.Bool) {
		name = d.name + "-" + name
		snd := &sender{
			name: name, address: address, format: f, abandons: abandons, ledger: s.ledger,
			account: s.ledger.open(name),
		}
		snd.account.isMerged, snd.account.hasMetrics = f.path == "/v0.6/stats", d.hasMetrics
		s.senders.Go(func() { snd.run(ctx, s.stop) })
	}
	for name, f := range tracerFormats {
		startSender("unix-"+name, d.target.APM, f, nil)
		startSender("tcp-"+name, d.target.APMAddr, f, nil)
	}
	startSender("impatient-v04", d.target.APMAddr, tracerFormats["v04"], &s.abandons)
	for name, f := range sdkFormats {
		startSender("unix-"+name, d.target.OTLP, f, nil)
		startSender("tcp-"+name, d.target.OTLPAddr, f, nil)
		startSender("impatient-"+name, d.target.OTLPAddr, f, &s.abandons)
	}
	for _, keys := range []int{20, 400} {
		name := fmt.Sprintf("%s-native-%d", d.name, keys)
		n := &nativeSender{
			name: name, socket: d.target.Spans, keys: keys, ledger: s.ledger, account: s.ledger.open(name),
		}
		n.account.hasMetrics = d.hasMetrics
		s.senders.Go(func() {
			if err := n.run(ctx, s.stop); err != nil {
				s.violation("%v", err)
			}
		})
	}
}
