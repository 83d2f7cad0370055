package datadog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/daemon"
	exporter "github.com/spanstatsd/spanstatsd/internal/export/agent"
	"github.com/spanstatsd/spanstatsd/internal/ingest/datadog"
	"github.com/spanstatsd/spanstatsd/internal/status"
	"github.com/vmihailenco/msgpack/v5"
)

// request is a request received by the agent.
type request struct {
	method, path, query string
	header              http.Header
	body                []byte
}

// fakeAgent accepts and records every request.
type fakeAgent struct {
	*http.Server
	listener net.Listener
	socket   string
	info     string
	respond  func(w http.ResponseWriter, r *http.Request)

	mu       sync.Mutex
	requests []request
}

const plainInfo = `{"endpoints":["/v0.4/traces","/v0.6/stats"],"peer_tags":["out.host"],"span_kinds_stats_computed":["client","server"]}`

func startAgent(t *testing.T) *fakeAgent {
	t.Helper()
	a := &fakeAgent{socket: filepath.Join(t.TempDir(), "agent.sock"), info: plainInfo}
	a.Server = &http.Server{Handler: http.HandlerFunc(a.serve)}
	a.listen(t)
	return a
}

func (a *fakeAgent) listen(t *testing.T) {
	listener, err := net.Listen("unix", a.socket)
	if err != nil {
		t.Fatal(err)
	}
	a.listener = listener
	done := make(chan struct{})
	go func() { defer close(done); _ = a.Serve(listener) }()
	t.Cleanup(func() { a.Close(); <-done })
}

// Close closes the agent, even if it has not started to serve.
func (a *fakeAgent) Close() error {
	return errors.Join(a.listener.Close(), a.Server.Close())
}

func (a *fakeAgent) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the sender disconnected
	}
	if r.URL.Path == "/info" {
		fmt.Fprint(w, a.info)
		return
	}
	a.mu.Lock()
	a.requests = append(a.requests, request{r.Method, r.URL.Path, r.URL.RawQuery, r.Header.Clone(), body})
	respond := a.respond
	a.mu.Unlock()
	if respond != nil && r.URL.Path != "/v0.6/stats" {
		respond(w, r)
	}
}

// of returns the requests to a path.
func (a *fakeAgent) of(path string) (all []request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range a.requests {
		if r.path == path {
			all = append(all, r)
		}
	}
	return all
}

// proxied is a daemon with an agent, and an HTTP client that acts as a tracer.
type proxied struct {
	*daemon.Daemon
	t      *testing.T
	agent  *fakeAgent
	client *http.Client
	socket string
	stop   func() status.Accounting
}

func start(t *testing.T, agent *fakeAgent, change func(*daemon.Config)) *proxied {
	t.Helper()
	p := prepare(t, agent, change)
	p.Start()
	return p
}

// prepare creates a daemon whose sockets exist but do not accept connections yet.
func prepare(t *testing.T, agent *fakeAgent, change func(*daemon.Config)) *proxied {
	t.Helper()
	dir := t.TempDir()
	config := daemon.DefaultConfig()
	config.Ingest.Socket.Path = filepath.Join(dir, "spans.sock")
	config.APM.Socket.Path = filepath.Join(dir, "apm.sock")
	config.HTTPAddr, config.Log = "127.0.0.1:0", slog.New(slog.DiscardHandler)
	config.Agent.URL = exporter.URL{Network: "unix", Address: agent.socket}
	if change != nil {
		change(&config)
	}
	d, err := daemon.New(config)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxied{Daemon: d, t: t, agent: agent, socket: config.APM.Socket.Path}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", p.socket)
	}}
	p.client = &http.Client{Transport: transport}
	p.stop = sync.OnceValue(func() status.Accounting {
		transport.CloseIdleConnections()
		accounting := d.Stop()
		if !accounting.Balanced {
			t.Errorf("accounting does not balance: %+v", accounting)
		}
		return accounting
	})
	t.Cleanup(func() { p.stop() })
	return p
}

// trace returns the body of a request with a server span and a child span that is not counted.
func trace() []byte { return traceWith("") }

// traceWith is trace with a tag of any length.
func traceWith(padding string) []byte {
	span := func(id, parent uint64, kind string) map[string]any {
		return map[string]any{
			"service":   "shop",
			"name":      "web.request",
			"resource":  "GET /",
			"type":      "web",
			"trace_id":  uint64(1),
			"span_id":   id,
			"parent_id": parent, "start": time.Now().UnixNano(), "duration": int64(1e6), "error": 0,
			"meta": map[string]string{"span.kind": kind, "env": "prod", "padding": padding}, "metrics": map[string]float64{},
		}
	}
	body, err := msgpack.Marshal([]any{[]any{span(1, 0, "server"), span(2, 1, "internal")}})
	if err != nil {
		panic(err)
	}
	return body
}

func (p *proxied) send(path string, body []byte, header ...string) (*http.Response, string) {
	p.t.Helper()
	req, err := http.NewRequest(http.MethodPut, "http://localhost"+path, bytes.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/msgpack")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := p.client.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return resp, string(text)
}

// only returns the single request to a path.
func (p *proxied) only(path string) request {
	p.t.Helper()
	all := p.agent.of(path)
	if len(all) != 1 {
		p.t.Fatalf("the agent got %d requests to %s", len(all), path)
	}
	return all[0]
}

const mark = "Datadog-Client-Computed-Stats"

// TestRequest_CountedAndForwarded checks that the body is forwarded unchanged and marked, that the response is
// returned unchanged, and that the span is in a payload for that tracer.
func TestRequest_CountedAndForwarded(t *testing.T) {
	agent := startAgent(t)
	agent.respond = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Datadog-Rates-Payload-Version", "v7")
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprint(w, `{"rate_by_service":{}}`)
	}
	p := start(t, agent, nil)
	body := trace()
	resp, text := p.send("/v0.4/traces?a=b", body, "Datadog-Meta-Lang", "ruby", "Datadog-Container-ID", "c1",
		"X-Datadog-Trace-Count", "1")
	if resp.StatusCode != http.StatusAccepted || text != `{"rate_by_service":{}}` ||
		resp.Header.Get("Datadog-Rates-Payload-Version") != "v7" {
		t.Errorf("status %d, body %q, headers %v", resp.StatusCode, text, resp.Header)
	}
	got := p.only("/v0.4/traces")
	if !bytes.Equal(got.body, body) || got.query != "a=b" || got.method != http.MethodPut ||
		got.header.Get("X-Datadog-Trace-Count") != "1" {
		t.Errorf("forwarded %s?%s with %v and %d bytes", got.method, got.query, got.header, len(got.body))
	}
	if got.header.Get(mark) != "true" {
		t.Errorf("the request is not marked: %v", got.header)
	}
	if accounting := p.stop(); accounting.Received != 1 || accounting.Flushed != 1 {
		t.Errorf("accounting: %+v", accounting)
	}
	payload := p.only("/v0.6/stats")
	if payload.header.Get("Datadog-Container-ID") != "c1" ||
		payload.header.Get("Datadog-Meta-Lang") != "ruby" {
		t.Errorf("the payload's headers: %v", payload.header)
	}
	if !bytes.Contains(payload.body, []byte("GET /")) || !bytes.Contains(payload.body, []byte("prod")) {
		t.Errorf("the payload: %q", payload.body)
	}
}

// TestForward_Uncounted checks that uncounted requests are forwarded unchanged and without the counted
// marker.
func TestForward_Uncounted(t *testing.T) {
	for _, test := range []struct {
		name   string
		path   string
		body   []byte
		header []string
		info   string
		result string
		change func(*daemon.Config)
	}{
		{name: "broken", path: "/v0.4/traces", body: trace()[:40], result: "unparsable"},
		{name: "no msgpack", path: "/v0.5/traces", body: []byte("{}"), result: "unparsable"},
		{
			name: "JSON", path: "/v0.4/traces", body: []byte("[[]]"),
			header: []string{"Content-Type", "application/json"}, result: "unparsable",
		},
		{
			name: "JSON to the agent", path: "/v0.4/traces", body: trace(),
			header: []string{"Content-Type", "application/msgpack; charset"}, result: "unparsable",
		},
		{
			name: "cross-site", path: "/v0.4/traces", body: trace(),
			header: []string{"Sec-Fetch-Site", "cross-site"}, result: "unparsable",
		},
		{
			name:   "computed by its tracer",
			path:   "/v0.4/traces",
			body:   trace(),
			header: []string{mark, "yes"},
			result: "computed_by_client",
		},
		{
			name: "too large", path: "/v0.4/traces", body: append(trace(), make([]byte, 1<<20)...),
			result: "too_large", change: func(c *daemon.Config) {
				c.APM.MaxBody = 1 << 20
			},
		},
		{
			name: "filtered by tags", path: "/v0.4/traces", body: trace(), result: "not_wanted",
			info: `{"endpoints":["/v0.6/stats"],"filter_tags":{"reject":["a:b"]}}`,
		},
		{
			name: "old agent", path: "/v0.4/traces", body: trace(), result: "not_wanted",
			info: `{"endpoints":[]}`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			agent := startAgent(t)
			if test.info != "" {
				agent.info = test.info
			}
			p := start(t, agent, test.change)
			if test.info != "" {
				p.learned()
			}
			if resp, _ := p.send(test.path, test.body, test.header...); resp.StatusCode != http.StatusOK {
				t.Errorf("status %d", resp.StatusCode)
			}
			got := agent.of(test.path)
			last := got[len(got)-1]
			if !bytes.Equal(last.body, test.body) || last.header.Get(mark) == "true" {
				t.Errorf("forwarded %d of %d bytes, marked %q", len(last.body), len(test.body),
					last.header.Get(mark))
			}
			p.await(test.result, 1)
			if accounting := p.stop(); accounting.Aggregated != 0 && test.info == "" {
				t.Errorf("accounting: %+v", accounting)
			}
		})
	}
}

// results returns the results of trace requests from the daemon's metrics.
func (p *proxied) results() map[string]int { return p.resultsOf("spanstatsd_apm_requests_total") }

func (p *proxied) resultsOf(metric string) map[string]int {
	p.t.Helper()
	results := map[string]int{}
	for line := range strings.Lines(p.metrics()) {
		if rest, ok := strings.CutPrefix(line, metric+`{result="`); ok {
			n := 0
			name, count, _ := strings.Cut(rest, `"} `)
			if _, err := fmt.Sscan(count, &n); err != nil {
				p.t.Fatal(err)
			}
			results[name] = n
		}
	}
	return results
}

// metrics returns the daemon's metrics as text.
func (p *proxied) metrics() string {
	p.t.Helper()
	resp, err := http.Get("http://" + p.HTTPAddr() + "/metrics")
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(text)
}

// metric returns the value of a metric without labels.
func (p *proxied) metric(name string) string {
	p.t.Helper()
	for line := range strings.Lines(p.metrics()) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	p.t.Fatalf("there is no metric %s", name)
	return ""
}

// await waits until a result has been counted n times. That happens when a request is complete, which
// the tracer can know earlier.
func (p *proxied) await(result string, n int) {
	p.t.Helper()
	for range 30_000 {
		if p.results()[result] >= n {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if got := p.results(); got[result] < n {
		p.t.Errorf("results %v, want %d of %s", got, n, result)
	}
}

// learned waits until the daemon knows the agent's features, before which it counts every request.
func (p *proxied) learned() {
	p.t.Helper()
	for range 6_000 {
		p.send("/v0.4/traces", []byte{0x90})
		if p.results()["not_wanted"] > 0 {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	p.t.Fatal("the daemon does not detect the features of the agent")
}

// TestAgent_Unavailable: a tracer sees the same as without the daemon. Its spans are counted, and not again
// when it retries.
func TestAgent_Unavailable(t *testing.T) {
	agent := startAgent(t)
	p := start(t, agent, nil)
	agent.Close()
	body := trace()
	if got := p.attempt(body); got != "cut" {
		t.Errorf("response %s", got)
	}
	p.await("counted", 1)
	agent.restart(t)
	if resp, _ := p.send("/v0.4/traces", body); resp.StatusCode != http.StatusOK {
		t.Errorf("status %d after the agent recovered", resp.StatusCode)
	}
	p.await("duplicate", 1)
	if accounting := p.stop(); accounting.Received != 1 || accounting.Flushed != 1 {
		t.Errorf("accounting: %+v", accounting)
	}
}

// restart restarts a closed agent.
func (a *fakeAgent) restart(t *testing.T) {
	os.Remove(a.socket)
	a.Server = &http.Server{Handler: http.HandlerFunc(a.serve)}
	a.listen(t)
}

// waiting waits until n requests wait for the agent.
func (p *proxied) waiting(n int) {
	p.t.Helper()
	for range 30_000 {
		if p.metric("spanstatsd_apm_waiting_requests") == fmt.Sprint(n) {
			return
		}
		time.Sleep(time.Millisecond)
	}
	p.t.Fatalf("not %d requests wait for the agent", n)
}

// TestAgentUnavailable_Briefly checks that, with a buffer, a request waits, is counted once, and is
// forwarded when the agent is available again. A request whose body is not in memory does not wait.
func TestAgentUnavailable_Briefly(t *testing.T) {
	agent := startAgent(t)
	p := start(t, agent, func(c *daemon.Config) { c.APM.Buffer = time.Minute })
	body := trace()
	p.send("/v0.4/traces", body)
	agent.Close()
	// This request fails on the closed idle connection. Otherwise a request with a body would use that
	// connection and, as already sent, would not wait.
	if resp, err := p.client.Get("http://localhost/info"); err == nil {
		resp.Body.Close()
		t.Errorf("response to /info: %v", resp)
	}
	responded := make(chan int)
	for range 2 {
		another := trace()
		go func() {
			resp, _ := p.send("/v0.4/traces", another)
			responded <- resp.StatusCode
		}()
	}
	p.waiting(2)
	agent.restart(t)
	for range 2 {
		if code := <-responded; code != http.StatusOK {
			t.Errorf("status %d after the agent recovered", code)
		}
	}
	p.await("counted", 3)
	for _, r := range agent.of("/v0.4/traces") {
		if r.header.Get(mark) != "true" || len(r.body) != len(body) {
			t.Errorf("forwarded %d bytes with %v", len(r.body), r.header)
		}
	}
	if n := p.metric("spanstatsd_apm_waited_requests_total"); n != "2" {
		t.Errorf("%s requests waited", n)
	}
	if accounting := p.stop(); accounting.Received != 3 {
		t.Errorf("accounting: %+v", accounting)
	}
}

// TestAgentUnavailable_Permanently checks that a waiting request ends without a response after its timeout, or
// immediately when the daemon shuts down.
func TestAgentUnavailable_Permanently(t *testing.T) {
	for name, test := range map[string]struct {
		buffer time.Duration
		stop   bool
	}{"over": {time.Millisecond, false}, "stopped": {time.Minute, true}} {
		t.Run(name, func(t *testing.T) {
			agent := startAgent(t)
			p := start(t, agent, func(c *daemon.Config) {
				c.APM.Buffer, c.ShutdownGrace = test.buffer, 10*time.Minute
			})
			agent.Close()
			responded := make(chan string)
			go func() { responded <- p.attempt(trace()) }()
			if test.stop {
				p.waiting(1)
				go p.stop()
			}
			if got := <-responded; got != "cut" {
				t.Errorf("response %s", got)
			}
			if accounting := p.stop(); accounting.Received != 1 {
				t.Errorf("accounting: %+v", accounting)
			}
		})
	}
}

// TestRequest_ExceedsRing checks that a request that exceeds the capacity of the ring is left to the agent
// completely.
func TestRequest_ExceedsRing(t *testing.T) {
	agent := startAgent(t)
	p := start(t, agent, func(c *daemon.Config) { c.Aggregate.RingSlots, c.Admit.MaxBatch = 256, 256 })
	one := trace()
	body := append([]byte{0xdc, 0x02, 0x00}, bytes.Repeat(one[1:], 512)...)
	if resp, _ := p.send("/v0.4/traces", body); resp.StatusCode != http.StatusOK {
		t.Errorf("status %d", resp.StatusCode)
	}
	if got := p.only("/v0.4/traces"); got.header.Get(mark) != "" || !bytes.Equal(got.body, body) {
		t.Errorf("marked %q", got.header.Get(mark))
	}
	if accounting := p.stop(); accounting.Received != 512 || accounting.Dropped["left_to_agent"] != 512 ||
		accounting.Aggregated != 0 {
		t.Errorf("accounting: %+v", accounting)
	}
}

// TestTrace_UnsampledNotForwarded checks that a trace rejected by sampling is counted and not forwarded, unless it
// contains an error. That is the default if the agent supports it, and the number of dropped traces is
// reported to the agent.
func TestTrace_UnsampledNotForwarded(t *testing.T) {
	traces := func(priorities ...float64) []byte {
		var all []any
		for i, priority := range priorities {
			all = append(all, []any{map[string]any{
				"service":  "shop",
				"name":     "web.request",
				"resource": "GET /",
				"span_id":  uint64(i + 1),
				"start":    time.Now().UnixNano(),
				"duration": 1,
				"error":    i % 2,
				"meta":     map[string]string{},
				"metrics":  map[string]float64{"_sampling_priority_v1": priority},
			}})
		}
		body, err := msgpack.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		return body
	}
	for _, test := range []struct {
		name        string
		drop        datadog.Dropping
		info        string
		forward     int
		sendDropped string
	}{
		{"off", datadog.DropOff, `{"endpoints":["/v0.6/stats"],"client_drop_p0s":true}`, 4, "1"},
		{
			"an agent that requires unsampled traces", datadog.DropAuto,
			`{"endpoints":["/v0.6/stats"],"client_drop_p0s":false}`, 4, "1",
		},
		{"an agent without the feature", datadog.DropAuto, `{"endpoints":["/v0.6/stats"]}`, 4, "1"},
		{
			"an agent that accepts client-side drops", daemon.DefaultConfig().APM.DropUnsampled,
			`{"endpoints":["/v0.6/stats"],"client_drop_p0s":true}`, 2, "3",
		},
		{"on", datadog.DropOn, `{"endpoints":["/v0.6/stats"],"client_drop_p0s":true}`, 2, "3"},
		{
			"on, with an agent that requires unsampled traces", datadog.DropOn,
			`{"endpoints":["/v0.6/stats"],"client_drop_p0s":false}`, 2, "3",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			agent := startAgent(t)
			agent.info = test.info
			p := start(t, agent, func(c *daemon.Config) { c.APM.DropUnsampled = test.drop })
			var last request
			sent := 0
			for range 30_000 { // until the daemon knows the agent's features
				body := traces(0, 0, -1, 2) // the second has an error; new times, so that no request is taken for a retry
				p.send("/v0.4/traces", body, "X-Datadog-Trace-Count", "4",
					"Datadog-Client-Dropped-P0-Traces", "1", "Datadog-Client-Dropped-P0-Spans", "1")
				sent++
				got := agent.of("/v0.4/traces")
				if last = got[len(got)-1]; test.forward == 4 || len(last.body) < len(body) {
					break
				}
				time.Sleep(time.Millisecond)
			}
			var forwarded [][]map[string]any
			if err := msgpack.Unmarshal(last.body, &forwarded); err != nil {
				t.Fatal(err)
			}
			if len(forwarded) != test.forward ||
				last.header.Get("X-Datadog-Trace-Count") != fmt.Sprint(test.forward) {
				t.Errorf("%d traces were forwarded, announced as %s", len(forwarded),
					last.header.Get("X-Datadog-Trace-Count"))
			}
			if got := last.header.Get("Datadog-Client-Dropped-P0-Traces") +
				last.header.Get("Datadog-Client-Dropped-P0-Spans"); got != test.sendDropped+test.sendDropped {
				t.Errorf("dropped traces and spans reported to the agent: %s", got)
			}
			if last.header.Get(mark) != "true" {
				t.Error("the request is not marked")
			}
			if accounting := p.stop(); accounting.Received != uint64(4*sent) || accounting.Dropped["left_to_agent"] != 0 {
				t.Errorf("%d requests, accounting: %+v", sent, accounting)
			}
		})
	}
}

// TestForward_Streams checks that an endless response, and the request body of its tracer, are
// forwarded chunk by chunk.
func TestForward_Streams(t *testing.T) {
	agent := startAgent(t)
	first, second := make(chan struct{}), make(chan struct{})
	agent.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/evp_proxy/v4/x" {
			agent.serve(w, r)
			return
		}
		piece := make([]byte, 5)
		if _, err := io.ReadFull(r.Body, piece); err != nil || string(piece) != "hello" {
			t.Errorf("the agent read %q: %v", piece, err)
		}
		close(first)
		rest, err := io.ReadAll(r.Body)
		if err != nil || string(rest) != "world" {
			t.Errorf("the agent read %q: %v", rest, err)
		}
		fmt.Fprint(w, "one")
		w.(http.Flusher).Flush()
		<-second
		fmt.Fprint(w, "two")
	})
	p := start(t, agent, nil)
	from, to := io.Pipe()
	go func() {
		io.WriteString(to, "hello")
		<-first // arrives without any later data
		io.WriteString(to, "world")
		to.Close()
	}()
	resp, err := p.client.Post("http://localhost/evp_proxy/v4/x", "text/plain", from)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	piece := make([]byte, 3)
	if _, err := io.ReadFull(resp.Body, piece); err != nil || string(piece) != "one" {
		t.Errorf("read %q: %v", piece, err)
	}
	close(second)
	if rest, err := io.ReadAll(resp.Body); err != nil || string(rest) != "two" {
		t.Errorf("read %q: %v", rest, err)
	}
}

// TestBody_TracerDisconnects checks that nothing is forwarded or counted if the tracer disconnects within the body.
func TestBody_TracerDisconnects(t *testing.T) {
	agent := startAgent(t)
	p := start(t, agent, nil)
	conn, err := net.Dial("unix", p.socket)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn,
		"PUT /v0.4/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/msgpack\r\nContent-Length: 100\r\n\r\nhalf")
	conn.(*net.UnixConn).CloseWrite()
	if _, err := io.ReadAll(conn); err != nil && !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	conn.Close()
	p.await("incomplete", 1)
	if n := len(agent.of("/v0.4/traces")); n != 0 {
		t.Errorf("the agent got %d requests", n)
	}
}

// TestTracers_Concurrent has eight tracers with different origins send at the same time. Every span must
// be counted once, in the accounting and in the payloads.
func TestTracers_Concurrent(t *testing.T) {
	agent := startAgent(t)
	p := start(t, agent, nil)
	const tracers, requests = 8, 50
	var sending sync.WaitGroup
	for i := range tracers {
		sending.Go(func() {
			for range requests {
				p.send("/v0.4/traces", trace(), "Datadog-Meta-Tracer-Version", fmt.Sprint(i))
			}
		})
	}
	sending.Wait()
	marked := 0
	for _, r := range agent.of("/v0.4/traces") {
		if r.header.Get(mark) == "true" {
			marked++
		}
	}
	accounting := p.stop()
	if uint64(marked) != accounting.Aggregated || accounting.Received != tracers*requests ||
		accounting.Flushed != accounting.Aggregated {
		t.Errorf("%d requests are marked, accounting: %+v", marked, accounting)
	}
}

// TestBody_MemoryIsReleased checks that no memory is held for bodies after the requests, whether or not the
// agent responded.
func TestBody_MemoryIsReleased(t *testing.T) {
	agent := startAgent(t)
	p := start(t, agent, func(c *daemon.Config) { c.APM.MaxBody, c.APM.MaxBodyBytes = 1<<16, 1<<20 })
	const requests = 100
	for range requests {
		p.send("/v0.4/traces", trace())
	}
	p.await("counted", requests)
	for range 100 {
		p.send("/v0.4/traces", bytes.Repeat([]byte{0}, 1<<17)) // too large
	}
	p.await("too_large", 100)
	agent.Close()
	p.attempt(trace())
	p.attempt(trace())
	p.await("counted", requests+2)
	p.free() // a result is counted slightly before the body is released
}

// TestRetry_CountedOnce checks that a body that the agent refuses or loses is counted once, however often it
// is retried, and marked each time, and that a different body is counted.
func TestRetry_CountedOnce(t *testing.T) {
	agent := startAgent(t)
	var attempts atomic.Int32
	agent.respond = func(w http.ResponseWriter, _ *http.Request) {
		switch attempts := attempts.Add(1); {
		case attempts%2 == 0:
			panic(http.ErrAbortHandler) // closes the connection
		case attempts < 5:
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}
	p := start(t, agent, nil)
	body := trace()
	for _, want := range []string{"429", "cut", "429", "cut", "200"} {
		if got := p.attempt(body); got != want {
			t.Errorf("response %s, want %s", got, want)
		}
	}
	for _, r := range agent.of("/v0.4/traces") {
		if r.header.Get(mark) != "true" || !bytes.Equal(r.body, body) {
			t.Errorf("an attempt is marked %q and has %d bytes", r.header.Get(mark), len(r.body))
		}
	}
	p.await("duplicate", 4)
	agent.mu.Lock()
	agent.respond = nil
	agent.mu.Unlock()
	p.send("/v0.4/traces", trace())
	if accounting := p.stop(); accounting.Received != 2 || accounting.Flushed != 2 {
		t.Errorf("accounting: %+v", accounting)
	}
}

// TestOrigins_OutliveBodies checks that the publisher of an origin is still found after the memory of
// its body was reused.
func TestOrigins_OutliveBodies(t *testing.T) {
	agent := startAgent(t)
	p := start(t, agent, nil)
	body := func(baseService string) []byte {
		body, err := msgpack.Marshal([]any{[]any{map[string]any{
			"service":  "shop",
			"name":     "web.request",
			"resource": "GET /",
			"span_id":  uint64(1),
			"start":    time.Now().UnixNano(),
			"duration": 1,
			"meta":     map[string]string{"_dd.base_service": baseService},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		return body
	}
	const requests = 20
	for range requests {
		p.send("/v0.4/traces", body("first"))
		p.send("/v0.4/traces", body("other"), "X-Datadog-Process-Tags", strings.Repeat("x", 1<<13))
	}
	p.await("counted", 2*requests)
	if n := p.metric("spanstatsd_apm_origins"); n != "2" {
		t.Errorf("two origins became %s", n)
	}
	p.stop()
	hits := map[string]int{}
	for _, r := range agent.of("/v0.6/stats") {
		var payload struct {
			Service string
			Stats   []struct{ Stats []struct{ Hits int } }
		}
		if err := msgpack.Unmarshal(r.body, &payload); err != nil {
			t.Fatal(err)
		}
		for _, bucket := range payload.Stats {
			for _, group := range bucket.Stats {
				hits[payload.Service] += group.Hits
			}
		}
	}
	if hits["first"] != requests || hits["other"] != requests || len(hits) != 2 {
		t.Errorf("the payloads say %v", hits)
	}
}

// TestFraming_BodyArrivesOnce checks that for each HTTP framing, a body reaches the agent once, complete and marked,
// and that the data after it is not interpreted as a part of it.
func TestFraming_BodyArrivesOnce(t *testing.T) {
	body := string(trace())
	chunked := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body)
	for name, request := range map[string]string{
		"expecting":         fmt.Sprintf("PUT /v0.4/traces HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: %d\r\n", len(body)),
		"old":               fmt.Sprintf("POST /v0.4/traces HTTP/1.0\r\nContent-Length: %d\r\n", len(body)),
		"chunked":           "PUT /v0.4/traces HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n",
		"upgrading":         fmt.Sprintf("PUT /v0.4/traces HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: %d\r\n", len(body)),
		"hiding the mark":   fmt.Sprintf("PUT /v0.4/traces HTTP/1.1\r\nHost: x\r\nConnection: Datadog-Client-Computed-Stats\r\nContent-Length: %d\r\n", len(body)),
		"of another origin": fmt.Sprintf("PUT http://elsewhere/v0.4/traces HTTP/1.1\r\nHost: elsewhere\r\nContent-Length: %d\r\n", len(body)),
	} {
		t.Run(name, func(t *testing.T) {
			agent := startAgent(t)
			p := start(t, agent, nil)
			conn, err := net.Dial("unix", p.socket)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			sent := body
			if strings.Contains(request, "chunked") {
				sent = chunked
			}
			fmt.Fprintf(conn, "%sContent-Type: application/msgpack\r\n\r\n%s", request, sent)
			next := 0
			if name != "old" { // its connection ends with the response
				fmt.Fprint(conn, "GET /next HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
				next = 1
			}
			if _, err := io.ReadAll(conn); err != nil {
				t.Error(err)
			}
			got := p.only("/v0.4/traces")
			if string(got.body) != body || got.header.Get(mark) != "true" {
				t.Errorf("forwarded %d of %d bytes, marked %q", len(got.body), len(body),
					got.header.Get(mark))
			}
			if got := len(agent.of("/next")); got != next {
				t.Errorf("the next request was forwarded %d times", got)
			}
			if accounting := p.stop(); accounting.Received != 1 || accounting.Flushed != 1 {
				t.Errorf("accounting: %+v", accounting)
			}
		})
	}
}
