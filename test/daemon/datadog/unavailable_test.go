package datadog

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/daemon"
)

// TestAgentUnavailable_ConnectionEnds checks that, as without the daemon, a tracer gets no
// response from an unreachable agent, regardless of the request. Tracers that retry such an error do
// so, and the others lose no more than without the daemon.
func TestAgentUnavailable_ConnectionEnds(t *testing.T) {
	body := trace()
	for name, request := range map[string]string{
		"traces":                 fmt.Sprintf("PUT /v0.4/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/msgpack\r\nContent-Length: %d\r\n\r\n%s", len(body), body),
		"traces that it counted": fmt.Sprintf("PUT /v0.4/traces HTTP/1.1\r\nHost: x\r\n%s: yes\r\nContent-Length: %d\r\n\r\n%s", mark, len(body), body),
		"GET /info":              "GET /info HTTP/1.1\r\nHost: x\r\n\r\n",
		"telemetry":              "POST /telemetry/proxy/x HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody",
	} {
		t.Run(name, func(t *testing.T) {
			agent := startAgent(t)
			p := start(t, agent, func(c *daemon.Config) { c.APM.Buffer = 0 })
			agent.Close()
			conn := p.dial()
			if _, err := io.WriteString(conn, request); err != nil {
				t.Fatal(err)
			}
			if response, err := conn.from.Peek(1); len(response) > 0 || err != io.EOF {
				t.Errorf("response %q: %v", response, err)
			}
			if failed := p.metric("spanstatsd_apm_failed_requests_total"); failed != "1" {
				t.Errorf("%s requests failed", failed)
			}
			received := uint64(0)
			if name == "traces" { // spans of traces are counted nevertheless
				p.await("counted", 1)
				received = 1
			}
			if accounting := p.stop(); accounting.Received != received {
				t.Errorf("accounting: %+v", accounting)
			}
		})
	}
}

// TestAgentUnavailable_WaitShorterThanTimeouts checks that requests wait for an unreachable agent, but
// not until a tracer's timeout, so that no tracer retries in the meantime.
func TestAgentUnavailable_WaitShorterThanTimeouts(t *testing.T) {
	const shortest = 2 * time.Second // shortest timeout of a tracer (dd-trace-js, ddtrace)
	config := daemon.DefaultConfig().APM
	if config.Buffer <= 0 || config.Buffer >= shortest {
		t.Errorf("it waits for %s", config.Buffer)
	}
	agent := startAgent(t)
	p := start(t, agent, nil)
	agent.Close()
	if got := p.attempt(trace()); got != "cut" {
		t.Errorf("response %s", got)
	}
	if waited := p.metric("spanstatsd_apm_waited_requests_total"); waited != "1" {
		t.Errorf("%s requests waited", waited)
	}
}

// TestAgentUnavailable_RetryingTracerLosesNothing uses a tracer like dd-trace-js, which retries
// once after a network error and never after a response. Its spans must arrive although the agent
// restarted during the first attempt.
func TestAgentUnavailable_RetryingTracerLosesNothing(t *testing.T) {
	agent := startAgent(t)
	p := start(t, agent, func(c *daemon.Config) { c.APM.Buffer = 0 })
	flush := trace()
	agent.Close()
	_, err := p.client.Post("http://localhost/v0.4/traces", "application/msgpack",
		strings.NewReader(string(flush)))
	agent.restart(t)
	if err != nil {
		var resp *http.Response
		if resp, err = p.client.Post("http://localhost/v0.4/traces", "application/msgpack",
			strings.NewReader(string(flush))); err == nil {
			resp.Body.Close()
		}
	}
	if err != nil {
		t.Error(err)
	}
	if got := p.only("/v0.4/traces"); string(got.body) != string(flush) || got.header.Get(mark) != "true" {
		t.Errorf("the agent got %d bytes, marked %q", len(got.body), got.header.Get(mark))
	}
	if accounting := p.stop(); accounting.Received != 1 || accounting.Flushed != 1 {
		t.Errorf("accounting: %+v", accounting)
	}
}
