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

// destination is where the demo's daemon sends statistics, and nowhere else.
type destination interface {
	// choose has the daemon send there.
	choose(c *daemon.Config) error
	// begin is told where the daemon answers, once it runs.
	begin(address string) error
	// newReport is an empty report on what it was sent.
	newReport() report
	// counted is what it has counted so far, and what was wrong with it. What it is not
	// told it takes from what the tracers sent.
	counted(sent Sent) (counted Sent, problems []string)
	// settle waits for what must be there before the daemon stops.
	settle(sent Sent)
	Close() error
}

// served is a destination that listens, and has everything when the daemon has stopped.
type served struct{}

func (served) begin(string) error { return nil }

func (served) settle(Sent) {}

// Destinations are the names of those that a demo can have.
var Destinations = []string{"agent", "otlp", "prometheus"}

// startDestination starts one, which hands over all that it accepts.
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

// agentDestination is a stand-in for the Datadog agent.
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

// otlpDestination is a stand-in for an OpenTelemetry Collector.
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

// counted has no top-level spans: nothing says which are in this dialect.
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
