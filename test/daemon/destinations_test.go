package daemon_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/daemon"
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/agent"
	"github.com/spanstatsd/spanstatsd/lab/standin"
)

// plain is an exporter whose destination accepts or refuses every payload.
type plain struct {
	name    string
	rejects bool

	mu    sync.Mutex
	spans uint64
}

func (p *plain) describe() export.Exporter {
	return export.Exporter{
		Name: p.name, URL: "memory://" + p.name, Push: p,
		Watch: func(_ context.Context, link *export.Link) { link.SetReachable() },
	}
}

func (p *plain) Deliver(_ context.Context, payload *export.Payload) export.Attempt {
	if p.rejects {
		return export.Attempt{Outcome: export.OutcomeRefused, Err: errors.New("it will not have it")}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spans += payload.Spans
	return export.Attempt{}
}

func (p *plain) Encode(c *export.Cycle, emit func(*export.Payload)) (made export.Encoded) {
	for i := range c.Rows {
		emit(&export.Payload{Body: []byte(c.Rows[i].Key().Resource), Spans: c.Rows[i].Spans})
	}
	return made
}

func (p *plain) accepted() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.spans
}

// TestDestinations_EachHasEverySpan checks that the agent and two other destinations get each span,
// that each accounting balances, that metrics and status distinguish the destinations, and that a
// waiting tracer is notified of a refusal by one of them.
func TestDestinations_EachHasEverySpan(t *testing.T) {
	healthy, rejecting := &plain{name: "good"}, &plain{name: "refusing", rejects: true}
	p := startPair(t, func(c *daemon.Config) { c.Exporters = []export.Exporter{healthy.describe(), rejecting.describe()} })
	c := p.client("shop")
	c.Publish(batch(100, "a"))
	if err := c.Flush(t.Context()); err == nil || !strings.Contains(err.Error(), "send payload to refusing") {
		t.Errorf("result for a waiting tracer: %v", err)
	}
	if healthy.accepted() != 100 || p.agent.Totals().Hits != 100 {
		t.Errorf("the agent has %d of 100 spans, the healthy destination %d", p.agent.Totals().Hits, healthy.accepted())
	}
	status := p.Status()
	for i, want := range []struct {
		name            string
		flushed, unsent uint64
		state           export.State
	}{{"agent", 100, 0, export.StateAccepting}, {"good", 100, 0, export.StateAccepting}, {"refusing", 0, 100, export.StateRejecting}} {
		d := &status.Destinations[i]
		if d.Name != want.name || d.Accounting.Flushed != want.flushed || d.Accounting.Unsent != want.unsent ||
			d.Accounting.UnsentBy["rejected"] != want.unsent || d.Accounting.Pending != 0 || d.State != want.state ||
			len(d.Flushes) != 1 {
			t.Errorf("destination %d: %+v, want %+v", i, d, want)
		}
	}
	if !status.Accounting.Balanced || status.Agent.State != export.StateAccepting {
		t.Errorf("accounting %+v, agent %+v", status.Accounting, status.Agent)
	}
	response, err := http.Get("http://" + p.HTTPAddr() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	metrics, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		`spanstatsd_spans_flushed_total{destination="agent"} 100`,
		`spanstatsd_spans_flushed_total{destination="good"} 100`,
		`spanstatsd_spans_flushed_total{destination="refusing"} 0`,
		`spanstatsd_spans_unsent_total{destination="refusing",reason="rejected"} 100`,
		`spanstatsd_spans_pending{destination="refusing"} 0`,
		`spanstatsd_destination_accepting{destination="refusing"} 0`,
		`spanstatsd_destination_accepting{destination="good"} 1`,
		`spanstatsd_payload_bytes_count{destination="good"} 1`,
	} {
		if !strings.Contains(string(metrics), "\n"+line+"\n") {
			t.Errorf("metrics lack %s", line)
		}
	}
	p.stop()
}

// TestDestinations_WithoutAgent checks that the statistics reach the other destination, and that tracers get the
// features of an agent with default settings.
func TestDestinations_WithoutAgent(t *testing.T) {
	healthy := &plain{name: "good"}
	p := startPair(t, func(c *daemon.Config) {
		c.Agent.URL, c.Exporters = agent.URL{}, []export.Exporter{healthy.describe()}
	})
	c := p.client("shop")
	c.Publish(batch(100, "a"))
	if err := c.Flush(t.Context()); err != nil {
		t.Error(err)
	}
	status := p.Status()
	if healthy.accepted() != 100 || status.Accounting.Flushed != 100 || status.Agent.State != "off" ||
		len(status.Destinations) != 1 {
		t.Errorf("the healthy destination has %d spans; %+v, agent %+v", healthy.accepted(), status.Accounting, status.Agent)
	}
	if accounting := p.Stop(); !accounting.Balanced || p.agent.Totals().Payloads != 0 {
		t.Errorf("accounting %+v", accounting)
	}
}

// TestDestinations_AgentWithoutEndpoint checks that statistics still reach the other
// destination when the agent turns out to lack the endpoint, and that only the agent's are unsent.
func TestDestinations_AgentWithoutEndpoint(t *testing.T) {
	healthy := &plain{name: "good"}
	p := startPair(t, func(c *daemon.Config) { c.Exporters = []export.Exporter{healthy.describe()} })
	p.agent.SetFault(func(*http.Request) standin.Fault {
		return standin.Fault{Kind: standin.Answer, Status: http.StatusNotFound}
	})
	c := p.client("shop")
	for range 3 {
		c.Publish(batch(100, "a"))
		if err := c.Flush(t.Context()); err == nil {
			t.Error("the agent has it")
		}
	}
	if agent := p.Status().Destinations[0]; agent.Accounting.UnsentBy[string(export.NotWanted)] != 300 {
		t.Errorf("accounting of the agent: %+v", agent.Accounting)
	}
	if accounting := p.Accounting(); healthy.accepted() != 300 || accounting.DroppedTotal() != 0 {
		t.Errorf("the healthy destination has %d of 300 spans; accounting %+v", healthy.accepted(), accounting)
	}
	p.stop()
}
