package daemon_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/daemon"
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
	"github.com/spanstatsd/spanstatsd/lab/standin"
)

// fault is a way in which an agent fails to accept a payload. If reason is set, the payload is lost
// with that reason. Otherwise the daemon retries until the agent recovers, and no span is lost.
type fault struct {
	apply   func(*crossing)
	reason  export.Reason
	counted bool // the agent counts the payload that the daemon gives up
	large   bool // the payload exceeds the socket buffer
	smooth  bool // no failure
	silent  bool // the daemon's timeout ends the request
}

var faults = map[string]fault{
	"refuses connections":     {apply: (*crossing).close},
	"socket file replaced":    {apply: (*crossing).open, smooth: true},
	"accepts, never responds": {apply: connHandler(hanging).apply, silent: true},
	"reads, never responds":   {apply: connHandler(discarding).apply, reason: export.Ambiguous, silent: true},
	"reset before reading":    {apply: connHandler(cutBeforeReading).apply},
	"responds too late": {
		apply: connHandler(tooLate).apply, reason: export.Ambiguous, counted: true,
		silent: true,
	},
	"reset while reading":  {apply: connHandler(cutWhileReading).apply, large: true},
	"reset after reading":  {apply: connHandler(cutAfterReading).apply, reason: export.Ambiguous},
	"response is not HTTP": {apply: responding("220 mail.example ESMTP\r\n").apply, reason: export.Ambiguous},
	"response is half a header": {
		apply:  responding("HTTP/1.1 200 OK\r\nContent-Le").apply,
		reason: export.Ambiguous,
	},
	"response has endless head": {
		apply:  responding("HTTP/1.1 200 OK\r\nX: " + endless).apply,
		reason: export.Ambiguous,
	},
	"400":                      {apply: respondingStatus(400).apply, reason: export.Rejected},
	"404":                      {apply: respondingStatus(404).apply, reason: export.NotWanted},
	"408":                      {apply: respondingStatus(408).apply},
	"413":                      {apply: respondingStatus(413).apply, reason: export.Rejected},
	"429":                      {apply: respondingStatus(429, "Retry-After: 1").apply},
	"500":                      {apply: respondingStatus(500).apply},
	"503":                      {apply: respondingStatus(503).apply},
	"503 with an endless body": {apply: responding("HTTP/1.1 503 Busy\r\n\r\n" + endless).apply},
}

var endless = strings.Repeat("x", 1<<20)

func (m connHandler) apply(c *crossing) { c.handleStats(m) }

// TestFaultyAgent exposes a daemon to each fault for one payload, between two successful ones. In each
// case the accounting balances, the reason is right, the agent counts nothing twice, other clients are
// served in the meantime, nothing stays queued, and the daemon recovers without a restart.
func TestFaultyAgent(t *testing.T) {
	t.Parallel()
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, c := startCrossed(t, forwarding, fault.silent)
			p.report("before", 1)
			fault.apply(c)
			resources := 1
			if fault.large {
				resources = 200 // fit in one payload that exceeds the socket buffer
			}
			reported := make(chan error, 1)
			go func() { reported <- p.tryReport("during", resources) }()
			p.mustServe()
			if fault.reason == "" && !fault.smooth {
				eventually.True(t, "a retry",
					func() bool {
						return p.metric(`spanstatsd_payloads_total{destination="agent",result="retried"}`) > 0
					})
				if p.Status().Destinations[0].IsAccepting {
					t.Error("the status shows an agent as accepting that rejected the last payload")
				}
				c.heal()
			}
			if err := <-reported; (err == nil) != (fault.reason == "") {
				t.Errorf("result reported to the tracer: %v", err)
			}
			c.heal()
			eventually.True(t, "the agent to accept statistics", func() bool { return p.Status().Agent.Stats })
			p.report("after", 1)
			p.expect(fault)
		})
	}
}

// phase is the number of spans published in each phase of a test.
const phase = 600

// startCrossed starts a pair with a proxy in between. info handles all requests for the agent's
// features. If silent is set, the agent will not respond, so the daemon's timeout is short; otherwise a
// short timeout would fail on a busy machine.
func startCrossed(t *testing.T, info connHandler, silent bool) (p *pair, c *crossing) {
	t.Helper()
	p = startPair(t, func(config *daemon.Config) {
		c = newCrossing(t, config.Agent.URL.Address)
		c.handleInfo(info)
		config.Agent.URL.Address = c.path
		config.Flush.Timeout = time.Minute
		if silent {
			config.Flush.Timeout = 5 * time.Second
		}
		neverEnd(&config.Aggregate) // otherwise part of a phase could be a payload of its own
	})
	return p, c
}

// heal forwards all later connections.
func (c *crossing) heal() {
	c.handleStats(forwarding)
	c.handleInfo(forwarding)
	c.close()
	c.open()
}

// report publishes the spans of a phase and flushes them.
func (p *pair) report(service string, resources int) {
	p.t.Helper()
	if err := p.tryReport(service, resources); err != nil {
		p.t.Fatalf("%s: %v", service, err)
	}
}

func (p *pair) tryReport(service string, resources int) error {
	c := p.client(service)
	for i := range phase {
		resource := fmt.Sprint(i % resources)
		if resources > 1 {
			resource += strings.Repeat("r", 4000)
		}
		spans := batch(1, resource)
		spans[0].Key.Service = service
		if !c.Publish(spans) {
			return fmt.Errorf("not published: %+v", c.Stats())
		}
	}
	// Longer than Flush.Timeout: on a busy machine, the proxy can close a connection that it has not accepted yet.
	ctx, cancel := context.WithTimeout(p.t.Context(), 3*time.Minute)
	defer cancel()
	return c.Flush(ctx)
}

// mustServe checks that a new tracer can connect and that a probe succeeds.
func (p *pair) mustServe() {
	p.t.Helper()
	c := p.client("another")
	eventually.True(p.t, "a new tracer to be welcomed", func() bool { return c.Stats().Connected })
	resp, err := http.Get("http://" + p.HTTPAddr() + "/readyz")
	if err != nil {
		p.t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		p.t.Errorf("not ready: %s", resp.Status)
	}
}

// expect stops the daemon and compares its accounting with the agent's counts.
func (p *pair) expect(f fault) {
	p.t.Helper()
	if d := p.Status().Destinations[0]; d.Retry.Payloads != 0 || d.Retry.Bytes != 0 ||
		d.State != export.StateAccepting {
		p.t.Errorf("at the end %d payloads are queued, and the agent has state %s", d.Retry.Payloads,
			d.State)
	}
	accounting := p.Stop()
	lost := uint64(0)
	if f.reason != "" {
		lost = phase
	}
	unsent := p.Status().Destinations[0].Accounting.UnsentBy[string(f.reason)]
	if !accounting.Balanced || accounting.Pending != 0 || accounting.Flushed != 3*phase-lost || accounting.Unsent != lost ||
		unsent != lost {
		p.t.Errorf("accounting is %+v, with %d spans unsent for reason %q", accounting, unsent, f.reason)
	}
	want := map[string]uint64{"before": phase, "during": phase, "after": phase}
	if lost > 0 && !f.counted {
		want["during"] = 0
	}
	got := map[string]uint64{}
	totals := p.agent.Totals()
	for _, row := range totals.Rows {
		got[row.Service] += row.Hits
	}
	for service := range want {
		if got[service] != want[service] {
			p.t.Errorf("the agent counted %d spans of %q, want %d", got[service], service, want[service])
		}
	}
	if totals.ProblemCount > 0 {
		p.t.Errorf("problems: %v", totals.Problems)
	}
}

// TestFaultyInfo lets the request for the agent's features fail from the start. Payloads are sent with
// default features, unless the agent reports that it has no features; after a successful response,
// tracers are notified.
func TestFaultyInfo(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		info   connHandler
		reason export.Reason
	}{
		"missing":        {respondingStatus(404), export.NotWanted},
		"huge":           {responding("HTTP/1.1 200 OK\r\n\r\n{\"version\": \"" + endless + endless), ""},
		"not JSON":       {responding("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>"), ""},
		"not HTTP":       {responding("220 mail.example ESMTP\r\n"), ""},
		"never responds": {hanging, ""},
		"500":            {respondingStatus(500), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, c := startCrossed(t, row.info, false)
			if row.reason == "" {
				p.report("during", 1)
			} else {
				eventually.True(t, "the downgrade", func() bool { return !p.Status().Agent.Stats })
			}
			info := standin.DefaultInfo()
			info.PeerTags = []string{"my.peer"}
			p.agent.SetInfo(info)
			c.heal()
			tracer := p.client("after")
			if row.reason == "" {
				p.report("after", 1) // the state in the response makes the daemon query the agent
			}
			eventually.True(t, "the tracer to be notified", func() bool {
				f := tracer.Features()
				return f.Stats && len(f.PeerTags) == 1 && f.PeerTags[0] == "my.peer"
			})
			p.report("after that", 1)
			p.stop()
		})
	}
}

// TestPeerTags_Change checks that the daemon notices a new agent configuration by the state in a
// response, and notifies the tracers.
func TestPeerTags_Change(t *testing.T) {
	p := startPair(t, nil)
	tracer := p.client("shop")
	eventually.True(t, "the first features", func() bool { return len(tracer.Features().PeerTags) > 1 })
	info := standin.DefaultInfo()
	info.PeerTags = []string{"my.peer"}
	p.agent.SetInfo(info)
	p.report("shop", 1)
	eventually.True(t, "the next", func() bool {
		f := tracer.Features()
		return f.Stats &&
			len(f.PeerTags) == 1
	})
	p.stop()
}
