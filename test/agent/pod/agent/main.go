// Command agent is the Datadog trace agent as a process of its own, so that what it costs
// can be told from what others cost. Nothing of it is replaced: it samples, counts,
// packs and sends to the address that stands in the place of Datadog's own.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	gzip "github.com/DataDog/datadog-agent/comp/trace/compression/impl-gzip"
	"github.com/DataDog/datadog-agent/pkg/trace/agent"
	"github.com/DataDog/datadog-agent/pkg/trace/config"
	"github.com/DataDog/datadog-agent/pkg/trace/telemetry"
	"github.com/DataDog/datadog-go/v5/statsd"
	"github.com/spanstatsd/spanstatsd/test/agent/realagent"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: agent SOCKET BACKEND")
		os.Exit(2)
	}
	conf := realagent.Served(os.Args[1])
	conf.Endpoints = []*config.Endpoint{{Host: os.Args[2], APIKey: "k"}}
	stop, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	ctx, end := context.WithCancel(context.Background())
	running := agent.NewAgent(ctx, conf, telemetry.NewNoopCollector(), &statsd.NoOpClient{}, gzip.NewComponent())
	go running.Run()
	<-stop.Done()
	realagent.TakeIn(running)
	end()
	if err := running.WaitForStopped(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "stop agent:", err)
		os.Exit(1)
	}
}
