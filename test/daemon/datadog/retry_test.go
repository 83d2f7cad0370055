package datadog

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/daemon"
	exporter "github.com/spanstatsd/spanstatsd/internal/export/agent"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
)

// slowAgent is a fake agent that responds to trace requests on demand.
type slowAgent struct {
	*fakeAgent
	release []chan struct{} // in the order of the requests
}

func startSlowAgent(t *testing.T, requests int) *slowAgent {
	t.Helper()
	a := &slowAgent{fakeAgent: startAgent(t)}
	for range requests {
		a.release = append(a.release, make(chan struct{}))
	}
	come := make(chan chan struct{}, requests)
	for _, release := range a.release {
		come <- release
	}
	ended := make(chan struct{})
	t.Cleanup(func() { close(ended) })
	a.respond = func(http.ResponseWriter, *http.Request) {
		select {
		case <-<-come:
		case <-ended:
		}
	}
	return a
}

// has waits until the agent has received n requests.
func (a *slowAgent) has(t *testing.T, n int) {
	t.Helper()
	eventually.True(t, fmt.Sprint(n, " requests are at the agent"), func() bool {
		return len(a.of("/v0.4/traces")) == n
	})
}

// tracerConn is a tracer's connection, controlled byte by byte.
type tracerConn struct {
	*net.UnixConn
	t    *testing.T
	from *bufio.Reader
}

func (p *proxied) dial() *tracerConn {
	p.t.Helper()
	conn, err := net.Dial("unix", p.socket)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { conn.Close() })
	return &tracerConn{conn.(*net.UnixConn), p.t, bufio.NewReader(conn)}
}

func (c *tracerConn) put(path string, body []byte) {
	c.t.Helper()
	if _, err := fmt.Fprintf(c,
		"PUT %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/msgpack\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body); err != nil {
		c.t.Fatal(err)
	}
}

// responded reads a response, which must be successful.
func (c *tracerConn) responded() {
	c.t.Helper()
	resp, err := http.ReadResponse(c.from, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		c.t.Errorf("status %d: %v", resp.StatusCode, err)
	}
}

// countedOnce stops the daemon and checks that every attempt was marked and one was counted.
func (p *proxied) countedOnce(attempts int) {
	p.t.Helper()
	if accounting := p.stop(); accounting.Received != 1 || accounting.Flushed != 1 {
		p.t.Errorf("accounting: %+v", accounting)
	}
	all := p.agent.of("/v0.4/traces")
	for _, r := range all {
		if r.header.Get(mark) != "true" {
			p.t.Errorf("an attempt is not marked: %v", r.header)
		}
	}
	if len(all) != attempts {
		p.t.Errorf("the agent received %d attempts, want %d", len(all), attempts)
	}
}

// TestRetry_DuringFirstAttempt tests the ways in which tracers time
// out. The retry must be marked like the first attempt, and only one of them counted.
func TestRetry_DuringFirstAttempt(t *testing.T) {
	for name, leave := range map[string]func(first *tracerConn){
		"it closes the first connection, as Python and Node do": func(first *tracerConn) { first.Close() },
		"the first connection is half closed": func(first *tracerConn) {
			first.CloseWrite()
		},
		"the first connection is half open": func(*tracerConn) {},
	} {
		t.Run(name, func(t *testing.T) {
			agent := startSlowAgent(t, 2)
			p := start(t, agent.fakeAgent, nil)
			body := trace()
			first, second := p.dial(), p.dial()
			first.put("/v0.4/traces", body)
			agent.has(t, 1)
			leave(first)
			second.put("/v0.4/traces", body)
			agent.has(t, 2)
			close(agent.release[0])
			close(agent.release[1])
			second.responded()
			p.await("duplicate", 1)
			p.countedOnce(2)
		})
	}
}

// TestRetry_OvertakesFirstAttempt retries while the first attempt waits for the agent.
// The response to the retry arrives first, then there is a third attempt, and then the first one
// completes.
func TestRetry_OvertakesFirstAttempt(t *testing.T) {
	agent := startSlowAgent(t, 3)
	p := start(t, agent.fakeAgent, nil)
	body := trace()
	first, second, third := p.dial(), p.dial(), p.dial()
	first.put("/v0.4/traces", body)
	agent.has(t, 1)
	close(agent.release[1])
	close(agent.release[2])
	second.put("/v0.4/traces", body)
	second.responded()
	second.Close()
	third.put("/v0.4/traces", body)
	third.responded()
	close(agent.release[0])
	first.responded()
	p.await("duplicate", 2)
	p.countedOnce(3)
}

// TestRetry_ConcurrentAttempts has sixteen attempts in flight together.
func TestRetry_ConcurrentAttempts(t *testing.T) {
	const attempts = 16
	agent := startSlowAgent(t, attempts)
	p := start(t, agent.fakeAgent, nil)
	body := trace()
	var sending sync.WaitGroup
	for range attempts {
		conn := p.dial()
		sending.Go(func() { conn.put("/v0.4/traces", body); conn.responded() })
	}
	agent.has(t, attempts)
	for _, release := range agent.release {
		close(release)
	}
	sending.Wait()
	p.await("duplicate", attempts-1)
	p.countedOnce(attempts)
}

// TestRetry_ConnectionClosedBeforeWrite has the agent accept the connection and close
// it. The request was counted before, and its retry must be recognized.
func TestRetry_ConnectionClosedBeforeWrite(t *testing.T) {
	agent := startAgent(t)
	socket := filepath.Join(t.TempDir(), "breaks")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, agent, func(c *daemon.Config) {
		c.Agent.URL = exporter.URL{Network: "unix", Address: socket}
	})
	ended, upstream := make(chan struct{}), &http.Server{Handler: agent.Handler}
	var isBack atomic.Bool
	go func() {
		defer close(ended)
		for !isBack.Load() {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
		_ = upstream.Serve(listener)
	}()
	t.Cleanup(func() { listener.Close(); upstream.Close(); <-ended })
	body := trace()
	if got := p.attempt(body); got == "200" {
		t.Error("the first attempt got a response")
	}
	p.await("counted", 1)
	isBack.Store(true)
	eventually.True(t, "the agent is back", func() bool { return p.attempt(body) == "200" })
	p.await("duplicate", 1)
	if accounting := p.stop(); accounting.Received != 1 || accounting.Flushed != 1 {
		t.Errorf("accounting: %+v", accounting)
	}
}

// TestRetry_StatisticsMergedOnce has a tracer disconnect before it reads the response to
// its statistics. After a retry they must be merged once.
func TestRetry_StatisticsMergedOnce(t *testing.T) {
	p := start(t, startAgent(t), nil)
	body := statistics(t, goSketch, time.Now().Truncate(10*time.Second), "r", 7, 1000)
	first := p.dial()
	first.put("/v0.6/stats", body)
	eventually.True(t, "they are merged", func() bool {
		return p.resultsOf("spanstatsd_apm_stats_requests_total")["merged"] == 1
	})
	second := p.dial()
	second.put("/v0.6/stats", body)
	second.responded()
	first.Close()
	third := p.dial()
	third.put("/v0.6/stats", body)
	third.responded()
	if results := p.resultsOf("spanstatsd_apm_stats_requests_total"); results["duplicate"] != 2 {
		t.Errorf("results %v", results)
	}
	if accounting := p.stop(); accounting.Received != 7 || accounting.Flushed != 7 {
		t.Errorf("accounting: %+v", accounting)
	}
}

// TestRetry_WithoutMemory checks a retry whose body exceeds the available memory. It is not forwarded,
// because the agent would count it again. The daemon closes the tracer's connection, and the tracer
// retries.
func TestRetry_WithoutMemory(t *testing.T) {
	const memory = 256 << 10
	agent := startAgent(t)
	p := start(t, agent, func(c *daemon.Config) { c.APM.MaxBody, c.APM.MaxBodyBytes = memory, memory })
	body := traceWith(strings.Repeat("x", memory*3/8))
	p.send("/v0.4/traces", body)
	stalled := p.dial()
	if _, err := fmt.Fprintf(stalled, "PUT /v0.4/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/msgpack\r\n"+
		"Content-Length: %d\r\n\r\n%s", memory/2, strings.Repeat("x", memory*3/8)); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "half of the memory is in use", func() bool {
		return p.metric("spanstatsd_apm_buffered_bytes") == fmt.Sprint(memory/2)
	})
	if got := p.attempt(body); got != "cut" {
		t.Errorf("response to a retry without memory: %s", got)
	}
	stalled.Close()
	p.free()
	if got := p.attempt(body); got != "200" {
		t.Errorf("response to the next retry: %s", got)
	}
	if got := p.results(); got["too_large"] != 1 || got["duplicate"] != 1 {
		t.Errorf("%v", got)
	}
	p.countedOnce(2)
}
