// Command agent runs the unmodified Datadog trace agent in a process of its own. It receives traces at a TCP port
// of the loopback interface, and sends its statistics and traces to a stand-in of Datadog's servers and its own metrics to
// a DogStatsD server.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	gzip "github.com/DataDog/datadog-agent/comp/trace/compression/impl-gzip"
	"github.com/DataDog/datadog-agent/pkg/trace/agent"
	"github.com/DataDog/datadog-agent/pkg/trace/config"
	"github.com/DataDog/datadog-agent/pkg/trace/telemetry"
	"github.com/DataDog/datadog-go/v5/statsd"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: agent PORT BACKEND-URL DOGSTATSD-ADDRESS")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "run agent:", err)
		os.Exit(1)
	}
}

func run(port, backend, dogstatsd string) error {
	conf := config.New()
	conf.Hostname, conf.DefaultEnv, conf.AgentVersion = "judge", "none", "7.85.4"
	conf.Endpoints = []*config.Endpoint{{Host: backend, APIKey: "judge"}}
	conf.TelemetryConfig.Enabled = false
	// The defaults of the agent's configuration file. Those of config.New serve one connection at a time.
	conf.MaxConnections, conf.DecoderTimeout = 1000, 1000
	var err error
	if conf.ReceiverPort, err = strconv.Atoi(port); err != nil {
		return fmt.Errorf("read port: %w", err)
	}
	metrics, err := statsd.New(dogstatsd, statsd.WithoutTelemetry())
	if err != nil {
		return fmt.Errorf("connect to DogStatsD: %w", err)
	}
	stop, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	running := agent.NewAgent(stop, conf, telemetry.NewNoopCollector(), metrics, gzip.NewComponent())
	go running.Run()
	<-stop.Done()
	if err := running.WaitForStopped(context.Background()); err != nil {
		return err
	}
	return metrics.Close()
}
