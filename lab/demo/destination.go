package demo

import (
	"fmt"
	"path/filepath"

	"github.com/spanstatsd/spanstatsd/internal/daemon"
	"github.com/spanstatsd/spanstatsd/internal/decode/payload"
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/agent"
	"github.com/spanstatsd/spanstatsd/internal/export/otlp"
	"github.com/spanstatsd/spanstatsd/internal/export/points"
	"github.com/spanstatsd/spanstatsd/lab/standin"
	"github.com/spanstatsd/spanstatsd/lab/standin/collector"
)

// destination receives the statistics of the demo's daemon.
type destination interface {
	// choose configures the daemon to export to this destination.
	choose(c *daemon.Config) error
	// begin starts the destination's own work. address is the HTTP address of the running daemon.
	begin(address string) error
	// newReport returns an empty report on received payloads.
	newReport() report
	// counted returns the totals counted so far, and the problems found. Totals that the
	// destination cannot count are copied from sent.
	counted(sent Sent) (counted Sent, problems []string)
	// settle waits for data that must arrive before the daemon stops.
	settle(sent Sent)
	Close() error
}

// served is the common part of destinations that listen. They have received everything when the
// daemon has stopped.
type served struct{}

func (served) begin(string) error { return nil }

func (served) settle(Sent) {}

// Destinations are the names of the available destinations.
var Destinations = []string{"agent", "otlp", "prometheus"}

// startDestination starts the named destination, which passes each accepted payload to take.
func startDestination(name, dir string, take func(arrived any)) (destination, error) {
	switch name {
	case "agent":
		a, err := standin.Start(standin.Config{
			Network: "unix", Address: filepath.Join(dir, "agent.sock"),
			OnPayload: func(r standin.Received) { take(r.Payload) },
		})
		return agentDestination{Agent: a}, err
	case "otlp":
		c, err := collector.Start(collector.Config{
			Network: "unix", Address: filepath.Join(dir, "otlp.sock"),
			OnRequest: func(r collector.Request) { take(r) },
		})
		return otlpDestination{Collector: c}, err
	case "prometheus":
		return &scrapedDestination{dir: dir, take: take}, nil
	}
	return nil, fmt.Errorf("start destination: %q is none", name)
}

// agentDestination is a mock Datadog agent.
type agentDestination struct {
	*standin.Agent
	served
}

func (d agentDestination) choose(c *daemon.Config) (err error) {
	c.Agent.URL, err = agent.ParseURL(d.URL())
	return err
}

func (agentDestination) newReport() report { return &agentReport{} }

func (d agentDestination) counted(Sent) (Sent, []string) {
	t := d.Totals()
	return Sent{Spans: t.Hits, Errors: t.Errors, TopLevel: t.TopLevel, Duration: t.Duration}, t.Problems
}

type agentReport struct{ standin.Rows }

func (r *agentReport) add(arrived any) { r.Add(arrived.(*payload.Payload)) }

func (r *agentReport) table() table {
	var rows []Row
	for _, row := range r.All() {
		rows = append(rows, newRow(row.Service, row.Resource, row.Hits, row.Errors, row.Quantile))
	}
	return rowsTable(rows)
}

// otlpDestination is a mock OpenTelemetry Collector.
type otlpDestination struct {
	*collector.Collector
	served
}

func (d otlpDestination) choose(c *daemon.Config) error {
	endpoint, err := otlp.ParseEndpoint(d.URL())
	if err != nil {
		return err
	}
	dimensions, err := points.ParseDimensions(points.AllDimensions)
	if err != nil {
		return err
	}
	exporter, err := otlp.New(otlp.Config{
		Variables: otlp.Variables{Endpoint: endpoint}, Dimensions: dimensions, Instance: "demo",
		Version: c.Version,
	})
	if err != nil {
		return err
	}
	c.Exporters = []export.Exporter{exporter.Describe()}
	return nil
}

func (otlpDestination) newReport() report { return &otlpReport{} }

// counted returns no top-level spans, because this OTLP mapping does not mark them.
func (d otlpDestination) counted(sent Sent) (Sent, []string) {
	t := d.Totals()
	problems := t.Problems
	if t.Calls != t.Spans {
		problems = append(problems, fmt.Sprintf("%d calls, and histograms of %d spans", t.Calls, t.Spans))
	}
	return Sent{Spans: t.Spans, Errors: t.Errors, TopLevel: sent.TopLevel, Duration: t.Duration}, problems
}

type otlpReport struct{ collector.Rows }

func (r *otlpReport) add(arrived any) { r.Add(arrived.(collector.Request)) }

func (r *otlpReport) table() table {
	var rows []Row
	for _, row := range r.All() {
		rows = append(rows, newRow(row.Service, row.Name, row.Spans, row.Errors, row.Quantile))
	}
	return rowsTable(rows)
}
