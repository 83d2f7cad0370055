// Command agent runs the Datadog trace agent in a separate process, so that its cost can be measured
// separately. No part of the agent is replaced: it samples, counts, compresses, and sends to a fake of
// Datadog's servers.
//
// It also accepts OTLP if an address is given, and keeps the given percentage of OTLP traces.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	gzip "github.com/DataDog/datadog-agent/comp/trace/compression/impl-gzip"
	"github.com/DataDog/datadog-agent/pkg/opentelemetry-mapping-go/otlp/attributes"
	"github.com/DataDog/datadog-agent/pkg/trace/agent"
	"github.com/DataDog/datadog-agent/pkg/trace/config"
	"github.com/DataDog/datadog-agent/pkg/trace/telemetry"
	"github.com/DataDog/datadog-go/v5/statsd"
	"github.com/spanstatsd/spanstatsd/test/agent/realagent"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/metric/noop"
)

func main() {
	if len(os.Args) != 3 && len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: agent SOCKET BACKEND [OTLP-ADDRESS PERCENT]")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, "run agent:", err)
		os.Exit(1)
	}
}

func run(socket, backend string, otlp []string) error {
	conf := realagent.Served(socket)
	conf.Endpoints = []*config.Endpoint{{Host: backend, APIKey: "k"}}
	if len(otlp) != 0 {
		if err := takeOTLP(conf, otlp[0], otlp[1]); err != nil {
			return err
		}
	}
	stop, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	ctx, end := context.WithCancel(context.Background())
	defer end()
	running := agent.NewAgent(ctx, conf, telemetry.NewNoopCollector(), &statsd.NoOpClient{},
		gzip.NewComponent())
	go running.Run()
	<-stop.Done()
	realagent.TakeIn(running)
	end()
	return running.WaitForStopped(context.Background())
}

func takeOTLP(conf *config.AgentConfig, address, percent string) (err error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("read address of OTLP: %w", err)
	}
	otlp := &config.OTLP{BindHost: host}
	if otlp.GRPCPort, err = strconv.Atoi(port); err != nil {
		return fmt.Errorf("read port of OTLP: %w", err)
	}
	if otlp.ProbabilisticSampling, err = strconv.ParseFloat(percent, 64); err != nil {
		return fmt.Errorf("read share of traces: %w", err)
	}
	otlp.AttributesTranslator,
		err = attributes.NewTranslator(component.TelemetrySettings{MeterProvider: noop.NewMeterProvider()})
	if err != nil {
		return fmt.Errorf("make translator of attributes: %w", err)
	}
	conf.OTLPReceiver = otlp
	return nil
}
