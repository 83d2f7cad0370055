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
	begin   func(*crossing)
	reason  export.Reason
	counted bool // the agent counts the payload that the daemon gives up
	large   bool // the payload exceeds the socket buffer
	smooth  bool // no failure
	silent  bool // the daemon's timeout ends the request
}

var faults = map[string]fault{
	"refuses connections":    {begin: (*crossing).close},
	"socket file replaced":   {begin: (*crossing).open, smooth: true},
	"accepts, never answers": {begin: meeting(hanging).begin, silent: true},
	"reads, never answers":   {begin: meeting(swallowing).begin, reason: export.Ambiguous, silent: true},
	"reset before reading":   {begin: meeting(cutBeforeReading).begin},
	"answers too late": {
		begin: meeting(tooLate).begin, reason: export.Ambiguous, counted: true,
		silent: true,
	},
	"reset while reading": {begin: meeting(cutWhileReading).begin, large: true},
	"reset after reading": {begin: meeting(cutAfterReading).begin, reason: export.Ambiguous},
	"answer is not HTTP":  {begin: saying("220 mail.example ESMTP\r\n").begin, reason: export.Ambiguous},
	"answer is half a header": {
		begin:  saying("HTTP/1.1 200 OK\r\nContent-Le").begin,
		reason: export.Ambiguous,
	},
	"answer has endless head": {
		begin:  saying("HTTP/1.1 200 OK\r\nX: " + endless).begin,
		reason: export.Ambiguous,
	},
	"400":                      {begin: answering(400).begin, reason: export.Rejected},
	"404":                      {begin: answering(404).begin, reason: export.NotWanted},
	"408":                      {begin: answering(408).begin},
	"413":                      {begin: answering(413).begin, reason: export.Rejected},
	"429":                      {begin: answering(429, "Retry-After: 1").begin},
	"500":                      {begin: answering(500).begin},
	"503":                      {begin: answering(503).begin},
	"503 with an endless body": {begin: saying("HTTP/1.1 503 Busy\r\n\r\n" + endless).begin},
}

var endless = strings.Repeat("x", 1<<20)

func (m meeting) begin(c *crossing) { c.meet(m) }

// TestFaultyAgent exposes a daemon to each fault for one payload, between two successful ones. In each
// case the accounting balances, the reason is right, the agent counts nothing twice, other clients are
// served in the meantime, nothing stays queued, and the daemon recovers without a restart.
func TestFaultyAgent(t *testing.T) {
	t.Parallel()
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, c := startCrossed(t, passing, fault.silent)
			p.report("before", 1)
			fault.begin(c)
			resources := 1
			if fault.large {
				resources = 200 // fit in one payload that exceeds the socket buffer
			}
			told := make(chan error, 1)
			go func() { told <- p.tryReport("during", resources) }()
			p.mustServe()
			if fault.reason == "" && !fault.smooth {
				eventually.True(t, "a retry",
					func() bool {
						return p.metric(`spanstatsd_payloads_total{destination="agent",result="retried"}`) > 0
					})
				if p.Status().Destinations[0].IsAccepting {
					t.Error("an agent that did not take the last payload is shown as one that does")
				}
				c.heal()
			}
			if err := <-told; (err == nil) != (fault.reason == "") {
				t.Errorf("the tracer was told %v", err)
			}
			c.heal()
			eventually.True(t, "statistics to be wanted", func() bool { return p.Status().Agent.Stats })
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
func startCrossed(t *testing.T, info meeting, silent bool) (p *pair, c *crossing) {
	t.Helper()
	p = startPair(t, func(config *daemon.Config) {
		c = newCrossing(t, config.Agent.URL.Address)
		c.meetInfo(info)
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
	c.meet(passing)
	c.meetInfo(passing)
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
		p.t.Errorf("when all is over %d payloads wait, and the agent's state is %s", d.Retry.Payloads,
			d.State)
	}
	books := p.Stop()
	lost := uint64(0)
	if f.reason != "" {
		lost = phase
	}
	unsent := p.Status().Destinations[0].Accounting.UnsentBy[string(f.reason)]
	if !books.Balanced || books.Pending != 0 || books.Flushed != 3*phase-lost || books.Unsent != lost ||
		unsent != lost {
		p.t.Errorf("the books are %+v, with %d unsent as %q", books, unsent, f.reason)
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
		info   meeting
		reason export.Reason
	}{
		"missing":       {answering(404), export.NotWanted},
		"huge":          {saying("HTTP/1.1 200 OK\r\n\r\n{\"version\": \"" + endless + endless), ""},
		"not JSON":      {saying("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>"), ""},
		"not HTTP":      {saying("220 mail.example ESMTP\r\n"), ""},
		"never answers": {hanging, ""},
		"500":           {answering(500), ""},
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
				p.report("after", 1) // the answer's state shows that there is something to ask
			}
			eventually.True(t, "the tracer to hear of it", func() bool {
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
