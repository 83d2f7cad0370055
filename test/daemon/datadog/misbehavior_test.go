package datadog

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/daemon"
	exporter "github.com/spanstatsd/spanstatsd/internal/export/agent"
	"github.com/spanstatsd/spanstatsd/internal/ingest/datadog"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
	"github.com/vmihailenco/msgpack/v5"
)

// say writes raw bytes to the daemon and reads until the daemon closes the connection: after the last
// request if that asks for it, or after the end of the input.
func (p *proxied) say(bytes string, isAll bool) string {
	p.t.Helper()
	conn, err := net.Dial("unix", p.socket)
	if err != nil {
		p.t.Fatal(err)
	}
	defer conn.Close()
	if !isAll {
		bytes += "GET /end HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
	}
	_, _ = io.WriteString(conn, bytes) // fails if the daemon closes the connection early
	if isAll {
		_ = conn.(*net.UnixConn).CloseWrite()
	}
	respond, _ := io.ReadAll(conn)
	return string(respond)
}

// TestRequest_Unusual checks that unusual requests are counted exactly once, by the daemon or by the agent,
// and get a response.
func TestRequest_Unusual(t *testing.T) {
	body := string(trace())
	request := func(method, path, header, body string) string {
		return fmt.Sprintf("%s %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/msgpack\r\nContent-Length: %d\r\n%s\r\n%s", method, path, len(body), header, body)
	}
	const named = "Connection: Datadog-Client-Computed-Stats, datadog-client-computed-top-level\r\n"
	trailing := "PUT /v0.4/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/msgpack\r\nTransfer-Encoding: chunked\r\n" +
		"Trailer: Datadog-Client-Computed-Stats, X-Other\r\n\r\n" +
		fmt.Sprintf("%x;ext=1\r\n%s\r\n0\r\nDatadog-Client-Computed-Stats: true\r\nX-Other: y\r\n\r\n",
			len(body), body)
	one := request("PUT", "/v0.4/traces", "", body)
	for name, test := range map[string]struct {
		sent     string
		got      int    // requests received by the agent
		mark     string // marker of each request
		received uint64
		response string // beginning of the first response
	}{
		"three of the same at once": {strings.Repeat(one, 3), 3, "true", 1, "HTTP/1.1 200"},
		"with a forged mark": {
			request("PUT", "/v0.4/traces", named+mark+": yes\r\n", body), 1, "yes", 0,
			"HTTP/1.1 200",
		},
		"naming a mark of ours": {
			request("PUT", "/v0.4/traces", named, body), 1, "true", 1,
			"HTTP/1.1 200",
		},
		"marked in its trailer": {trailing, 1, "true", 1, "HTTP/1.1 200"},
		"two marks": {request("PUT", "/v0.4/traces", mark+": false\r\n"+mark+": true\r\n",
			body), 1, "true", 1, "HTTP/1.1 200"},
		"with Content-Encoding of an uncompressed body": {
			request("PUT", "/v0.4/traces", "Content-Encoding: gzip\r\n", body), 1, "",
			0, "HTTP/1.1 200",
		},
		"GET":              {request("GET", "/v0.4/traces", "", ""), 1, "", 0, "HTTP/1.1 200"},
		"without a length": {"PUT /v0.4/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/msgpack\r\n\r\n", 1, "", 0, "HTTP/1.1 200"},
		"longer than its Content-Length": {strings.Replace(one, fmt.Sprintf("Content-Length: %d", len(body)),
			fmt.Sprintf("Content-Length: %d", len(body)-1), 1), 1, "", 0, "HTTP/1.1 200"},
		"shorter than its Content-Length": {one[:len(one)-1], 0, "", 0, "HTTP/1.1 400"},
		"two lengths": {
			request("PUT", "/v0.4/traces", "Content-Length: 1\r\n", body), 0, "", 0,
			"HTTP/1.1 400",
		},
		"of another protocol": {
			"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00", 0,
			"", 0, "HTTP/1.1 505",
		},
		"a header of many lines": {
			request("PUT", "/v0.4/traces", strings.Repeat("a: b\r\n", 200), body), 0,
			"", 0, "HTTP/1.1 400",
		},
		"a header of many bytes": {request("PUT", "/v0.4/traces", "a: "+strings.Repeat("b", 30<<10)+"\r\n",
			body), 0, "", 0, "HTTP/1.1 431"},
		"another path, the same": {request("PUT", "/v0.4/%74races", "", body), 1, "true", 1, "HTTP/1.1 200"},
		"invalid chunks":         {"PUT /v0.4/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/msgpack\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 0, "", 0, "HTTP/1.1 400"},
		"an odd encoding":        {"PUT /v0.4/traces HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 0, "", 0, "HTTP/1.1 501"},
	} {
		for _, drop := range []datadog.Dropping{datadog.DropOff, datadog.DropOn} {
			t.Run(fmt.Sprintf("%s, dropping %v", name, drop), func(t *testing.T) {
				agent := startAgent(t)
				p := start(t, agent, func(c *daemon.Config) { c.APM.DropUnsampled = drop })
				if respond := p.say(test.sent, test.got == 0); !strings.HasPrefix(respond, test.response) {
					t.Errorf("response %.80q", respond)
				}
				all := agent.of("/v0.4/traces")
				if len(all) != test.got {
					t.Errorf("the agent got %d requests", len(all))
				}
				for _, r := range all {
					if strings.Join(r.header[mark], "+") != test.mark || r.header.Get("X-Other") != "" {
						t.Errorf("the agent got %v", r.header)
					}
				}
				if accounting := p.stop(); accounting.Received != test.received || accounting.Flushed != test.received {
					t.Errorf("accounting: %+v", accounting)
				}
			})
		}
	}
}

// TestPaths_ForwardedUnchanged checks that a path that is not exactly an endpoint is forwarded unchanged and
// not redirected by the daemon.
func TestPaths_ForwardedUnchanged(t *testing.T) {
	agent := startAgent(t)
	p := start(t, agent, nil)
	for _, path := range []string{"//v0.4/traces", "/v0.4/traces/", "/evp_proxy/v4/a//b/../c"} {
		p.say("PUT "+path+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 1\r\n\r\n\x90", false)
		if len(agent.of(path)) != 1 {
			t.Errorf("%s did not arrive", path)
		}
	}
}

// misbehavingAgent returns an agent that treats the first request of each connection with the next of the
// given functions, and later connections like good.
func misbehavingAgent(t *testing.T, healthy *fakeAgent, misbehave func(net.Conn, *bufio.Reader)) (socket string,
	misbehaved *atomic.Int32,
) {
	t.Helper()
	socket, misbehaved = filepath.Join(t.TempDir(), "misbehaving"), new(atomic.Int32)
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				from := bufio.NewReader(conn)
				if first, err := from.Peek(len("PUT /v0.4")); err == nil && string(first) == "PUT /v0.4" &&
					misbehaved.Add(1) == 1 {
					misbehave(conn, from)
					return
				}
				upstream, err := net.Dial("unix", healthy.socket)
				if err != nil {
					return
				}
				defer upstream.Close()
				go func() { _, _ = io.Copy(upstream, from); upstream.(*net.UnixConn).CloseWrite() }()
				_, _ = io.Copy(conn, upstream)
			}()
		}
	}()
	return socket, misbehaved
}

// TestAgent_Misbehaving checks that, whatever an agent does to a request, the tracer gets a response or a
// closed connection, the memory of the body is released, and a retry is not counted again.
func TestAgent_Misbehaving(t *testing.T) {
	small, large := trace(), padded(t, 3<<20) // larger than any socket buffer
	respond := func(text string) func(net.Conn, *bufio.Reader) {
		return func(conn net.Conn, from *bufio.Reader) {
			if req, err := http.ReadRequest(from); err == nil {
				_, _ = io.Copy(io.Discard, req.Body)
			}
			_, _ = io.WriteString(conn, text)
		}
	}
	for name, test := range map[string]struct {
		misbehave func(net.Conn, *bufio.Reader)
		body      []byte
		codes     string // possible responses at the tracer; "cut" for an incomplete one
	}{
		"closes at once": {func(net.Conn, *bufio.Reader) {}, small, "cut"},
		"closes within the body": {func(_ net.Conn, from *bufio.Reader) {
			_, _ = from.Discard(1000)
		}, large, "cut"},
		"refuses before the body": {func(conn net.Conn, _ *bufio.Reader) {
			io.WriteString(conn, "HTTP/1.1 413 x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		}, large, "413 cut"},
		"closes without a response": {respond(""), small, "cut"},
		"responds with no HTTP":     {respond("what?\r\n\r\n"), small, "cut"},
		"truncates its response": {
			respond("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"),
			small, "cut",
		},
		"truncates a chunk":               {respond("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n40\r\nhalf"), small, "cut"},
		"sends endless 103 responses":     {respond(strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", 50)), small, "cut"},
		"switches to an unknown protocol": {respond("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"), small, "cut"},
		"responds with a huge header": {respond("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1<<20) +
			"\r\n\r\n"), small, "cut"},
		"is overloaded": {
			respond("HTTP/1.1 429 x\r\nContent-Length: 0\r\n\r\n"), small,
			"429",
		},
	} {
		t.Run(name, func(t *testing.T) {
			healthy := startAgent(t)
			socket, misbehaved := misbehavingAgent(t, healthy, test.misbehave)
			p := start(t, healthy, func(c *daemon.Config) {
				c.Agent.URL = exporter.URL{Network: "unix", Address: socket}
			})
			if code := p.attempt(test.body); !strings.Contains(test.codes, code) {
				t.Errorf("response %s", code)
			}
			if misbehaved.Load() == 0 {
				t.Fatal("the agent received no trace request")
			}
			for range 10 { // after a connection has failed, another pooled one can be closed, too
				if p.attempt(test.body) == "200" {
					break
				}
			}
			last := healthy.of("/v0.4/traces")
			if len(last) == 0 || last[len(last)-1].header.Get(mark) != "true" ||
				!bytes.Equal(last[len(last)-1].body, test.body) {
				t.Errorf("%d requests arrived at the healthy agent", len(last))
			}
			p.await("duplicate", 1)
			p.free()
			if accounting := p.stop(); accounting.Received != 1 || accounting.Flushed != 1 {
				t.Errorf("accounting: %+v", accounting)
			}
		})
	}
}

// padded returns a body of roughly the given length with one span to count.
func padded(t *testing.T, length int) []byte {
	t.Helper()
	body, err := msgpack.Marshal([]any{[]any{map[string]any{
		"service":  "shop",
		"name":     "web.request",
		"resource": "GET /",
		"span_id":  uint64(1),
		"start":    time.Now().UnixNano(),
		"duration": 1,
		"meta":     map[string]string{"span.kind": "server", "padding": strings.Repeat("x", length)},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// attempt sends a body over a new connection and returns the outcome for the tracer.
func (p *proxied) attempt(body []byte, header ...string) string {
	p.t.Helper()
	req, err := http.NewRequest(http.MethodPut, "http://localhost/v0.4/traces", bytes.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/msgpack")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	req.GetBody = nil // prevents net/http from retrying
	resp, err := p.client.Transport.RoundTrip(req)
	if err != nil {
		return "cut"
	}
	defer resp.Body.Close()
	if _, err := io.ReadAll(resp.Body); err != nil {
		return "cut"
	}
	return fmt.Sprint(resp.StatusCode)
}

// free waits until no memory is held for bodies.
func (p *proxied) free() {
	p.t.Helper()
	held := ""
	for range 30_000 {
		if held = p.metric("spanstatsd_apm_buffered_bytes"); held == "0" {
			return
		}
		time.Sleep(time.Millisecond)
	}
	p.t.Errorf("%s bytes are still held", held)
}

// TestAgentHangs_TracerDisconnects checks that neither the body nor the connection is held once a
// tracer has abandoned its request to an agent that does not respond, and that a retry is counted once.
func TestAgentHangs_TracerDisconnects(t *testing.T) {
	healthy := startAgent(t)
	disconnected := make(chan struct{})
	socket, misbehaved := misbehavingAgent(t, healthy, func(conn net.Conn, _ *bufio.Reader) { <-disconnected })
	p := start(t, healthy, func(c *daemon.Config) {
		c.Agent.URL = exporter.URL{Network: "unix", Address: socket}
	})
	body := padded(t, 3<<20)
	conn, err := net.Dial("unix", p.socket)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn,
		"PUT /v0.4/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/msgpack\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	eventually.True(t, "the agent has received a request", func() bool { return misbehaved.Load() > 0 })
	conn.Close()
	p.free()
	p.await("counted", 1)
	close(disconnected)
	for range 10 {
		if p.attempt(body) == "200" {
			break
		}
	}
	p.await("duplicate", 1)
	if accounting := p.stop(); accounting.Received != 1 || accounting.Flushed != 1 {
		t.Errorf("accounting: %+v", accounting)
	}
}

// TestDropUnsampled_Retry checks that the unsampled traces of a request that the agent refused are removed
// and reported again in the retry, but counted once in the metrics. A connection error during the first
// attempt makes no difference.
func TestDropUnsampled_Retry(t *testing.T) {
	agent := startAgent(t)
	agent.info = strings.Replace(plainInfo, "{", `{"client_drop_p0s":true,`, 1)
	p := start(t, agent, nil)
	p.dropping()
	var attempts atomic.Int32
	agent.mu.Lock()
	agent.requests, agent.respond = nil, func(w http.ResponseWriter, r *http.Request) {
		switch attempts.Add(1) {
		case 1:
			w.WriteHeader(http.StatusTooManyRequests)
		case 2:
			panic(http.ErrAbortHandler)
		}
	}
	agent.mu.Unlock()
	before := p.metric("spanstatsd_apm_unsampled_traces_total")
	body := priorities(t, 1, 0, -1)
	for range 3 {
		p.sendDropped(body)
	}
	all := agent.of("/v0.4/traces")
	if len(all) != 3 {
		t.Fatalf("the agent got %d requests", len(all))
	}
	for i, r := range all {
		var forwarded []any
		if err := msgpack.Unmarshal(r.body, &forwarded); err != nil {
			t.Fatal(err)
		}
		sendDropped := r.header.Get("Datadog-Client-Dropped-P0-Traces") +
			r.header.Get("Datadog-Client-Dropped-P0-Spans") + r.header.Get("X-Datadog-Trace-Count")
		if len(forwarded) != 1 || sendDropped != "521" || r.header.Get(mark) != "true" {
			t.Errorf("attempt %d: %d traces, reported as dropped: %s; headers %v", i, len(forwarded), sendDropped, r.header)
		}
	}
	after := p.metric("spanstatsd_apm_unsampled_traces_total")
	if counted(t, after)-counted(t, before) != 2 {
		t.Errorf("from %s to %s unsampled traces", before, after)
	}
}

func counted(t *testing.T, text string) (n int) {
	t.Helper()
	if _, err := fmt.Sscan(text, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// sendDropped sends a body of a tracer that has dropped three traces itself.
func (p *proxied) sendDropped(body []byte) {
	p.t.Helper()
	p.attempt(body, "X-Datadog-Trace-Count", "3", "Datadog-Client-Dropped-P0-Traces", "3",
		"Datadog-Client-Dropped-P0-Spans", "0")
}

// priorities returns a body with one trace of one span per sampling priority.
func priorities(t *testing.T, of ...int) []byte {
	t.Helper()
	var all []any
	for i, priority := range of {
		all = append(all, []any{map[string]any{
			"service":  "shop",
			"name":     "web.request",
			"resource": "GET /",
			"span_id":  uint64(i + 1),
			"start":    time.Now().UnixNano(),
			"duration": 1, "metrics": map[string]float64{"_sampling_priority_v1": float64(priority)},
		}})
	}
	body, err := msgpack.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// dropping waits until the daemon knows that it can drop unsampled traces for the agent.
func (p *proxied) dropping() {
	p.t.Helper()
	for range 6_000 {
		p.send("/v0.4/traces", priorities(p.t, 0))
		if p.metric("spanstatsd_apm_unsampled_traces_total") != "0" {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	p.t.Fatal("the daemon does not detect that the agent accepts client-side drops")
}
