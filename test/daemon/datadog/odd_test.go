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
	answer, _ := io.ReadAll(conn)
	return string(answer)
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
		answers  string // beginning of the first response
	}{
		"three of the same at once": {strings.Repeat(one, 3), 3, "true", 1, "HTTP/1.1 200"},
		"naming its own mark": {
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
		"said to be compressed": {
			request("PUT", "/v0.4/traces", "Content-Encoding: gzip\r\n", body), 1, "",
			0, "HTTP/1.1 200",
		},
		"asked for":        {request("GET", "/v0.4/traces", "", ""), 1, "", 0, "HTTP/1.1 200"},
		"without a length": {"PUT /v0.4/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/msgpack\r\n\r\n", 1, "", 0, "HTTP/1.1 200"},
		"longer than it says": {strings.Replace(one, fmt.Sprintf("Content-Length: %d", len(body)),
			fmt.Sprintf("Content-Length: %d", len(body)-1), 1), 1, "", 0, "HTTP/1.1 200"},
		"shorter than it says": {one[:len(one)-1], 0, "", 0, "HTTP/1.1 400"},
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
		"another path, the same":  {request("PUT", "/v0.4/%74races", "", body), 1, "true", 1, "HTTP/1.1 200"},
		"chunks that are not one": {"PUT /v0.4/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/msgpack\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 0, "", 0, "HTTP/1.1 400"},
		"an odd encoding":         {"PUT /v0.4/traces HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 0, "", 0, "HTTP/1.1 501"},
	} {
		for _, drop := range []datadog.Dropping{datadog.DropOff, datadog.DropOn} {
			t.Run(fmt.Sprintf("%s, dropping %v", name, drop), func(t *testing.T) {
				agent := startAgent(t)
				p := start(t, agent, func(c *daemon.Config) { c.APM.DropUnsampled = drop })
				if answer := p.say(test.sent, test.got == 0); !strings.HasPrefix(answer, test.answers) {
					t.Errorf("answered %.80q", answer)
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
				if books := p.stop(); books.Received != test.received || books.Flushed != test.received {
					t.Errorf("the books: %+v", books)
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

// rudeAgent returns an agent that treats the first request of each connection with the next of the
// given functions, and later connections like good.
func rudeAgent(t *testing.T, good *fakeAgent, rude func(net.Conn, *bufio.Reader)) (socket string,
	met *atomic.Int32,
) {
	t.Helper()
	socket, met = filepath.Join(t.TempDir(), "rude"), new(atomic.Int32)
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
					met.Add(1) == 1 {
					rude(conn, from)
					return
				}
				behind, err := net.Dial("unix", good.socket)
				if err != nil {
					return
				}
				defer behind.Close()
				go func() { _, _ = io.Copy(behind, from); behind.(*net.UnixConn).CloseWrite() }()
				_, _ = io.Copy(conn, behind)
			}()
		}
	}()
	return socket, met
}

// TestAgent_Misbehaving checks that, whatever an agent does to a request, the tracer gets a response or a
// closed connection, the memory of the body is released, and a retry is not counted again.
func TestAgent_Misbehaving(t *testing.T) {
	small, large := trace(), padded(t, 3<<20) // larger than any socket buffer
	answer := func(text string) func(net.Conn, *bufio.Reader) {
		return func(conn net.Conn, from *bufio.Reader) {
			if req, err := http.ReadRequest(from); err == nil {
				_, _ = io.Copy(io.Discard, req.Body)
			}
			_, _ = io.WriteString(conn, text)
		}
	}
	for name, test := range map[string]struct {
		rude  func(net.Conn, *bufio.Reader)
		body  []byte
		codes string // what its tracer may get, "cut" for no whole answer
	}{
		"closes at once": {func(net.Conn, *bufio.Reader) {}, small, "cut"},
		"closes within the body": {func(_ net.Conn, from *bufio.Reader) {
			_, _ = from.Discard(1000)
		}, large, "cut"},
		"refuses before the body": {func(conn net.Conn, _ *bufio.Reader) {
			io.WriteString(conn, "HTTP/1.1 413 x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		}, large, "413 cut"},
		"closes without an answer": {answer(""), small, "cut"},
		"answers no HTTP":          {answer("what?\r\n\r\n"), small, "cut"},
		"breaks off its answer": {
			answer("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"),
			small, "cut",
		},
		"breaks off a chunk":             {answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n40\r\nhalf"), small, "cut"},
		"announces for ever":             {answer(strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", 50)), small, "cut"},
		"switches to what nobody speaks": {answer("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"), small, "cut"},
		"answers with a huge header": {answer("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1<<20) +
			"\r\n\r\n"), small, "cut"},
		"is overloaded": {
			answer("HTTP/1.1 429 x\r\nContent-Length: 0\r\n\r\n"), small,
			"429",
		},
	} {
		t.Run(name, func(t *testing.T) {
			good := startAgent(t)
			socket, met := rudeAgent(t, good, test.rude)
			p := start(t, good, func(c *daemon.Config) {
				c.Agent.URL = exporter.URL{Network: "unix", Address: socket}
			})
			if code := p.attempt(test.body); !strings.Contains(test.codes, code) {
				t.Errorf("answered %s", code)
			}
			if met.Load() == 0 {
				t.Fatal("the agent was not met")
			}
			for range 10 { // after a connection has been broken, another pooled one can be closed, too
				if p.attempt(test.body) == "200" {
					break
				}
			}
			last := good.of("/v0.4/traces")
			if len(last) == 0 || last[len(last)-1].header.Get(mark) != "true" ||
				!bytes.Equal(last[len(last)-1].body, test.body) {
				t.Errorf("%d requests came through", len(last))
			}
			p.await("duplicate", 1)
			p.free()
			if books := p.stop(); books.Received != 1 || books.Flushed != 1 {
				t.Errorf("the books: %+v", books)
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
	good := startAgent(t)
	left := make(chan struct{})
	socket, met := rudeAgent(t, good, func(conn net.Conn, _ *bufio.Reader) { <-left })
	p := start(t, good, func(c *daemon.Config) {
		c.Agent.URL = exporter.URL{Network: "unix", Address: socket}
	})
	body := padded(t, 3<<20)
	conn, err := net.Dial("unix", p.socket)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn,
		"PUT /v0.4/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/msgpack\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	eventually.True(t, "the agent is met", func() bool { return met.Load() > 0 })
	conn.Close()
	p.free()
	p.await("counted", 1)
	close(left)
	for range 10 {
		if p.attempt(body) == "200" {
			break
		}
	}
	p.await("duplicate", 1)
	if books := p.stop(); books.Received != 1 || books.Flushed != 1 {
		t.Errorf("the books: %+v", books)
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
	var tries atomic.Int32
	agent.mu.Lock()
	agent.requests, agent.answer = nil, func(w http.ResponseWriter, r *http.Request) {
		switch tries.Add(1) {
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
		p.told(body)
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
		told := r.header.Get("Datadog-Client-Dropped-P0-Traces") +
			r.header.Get("Datadog-Client-Dropped-P0-Spans") + r.header.Get("X-Datadog-Trace-Count")
		if len(forwarded) != 1 || told != "521" || r.header.Get(mark) != "true" {
			t.Errorf("try %d: %d traces, told %s: %v", i, len(forwarded), told, r.header)
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

// told sends a body of a tracer that has dropped three traces itself.
func (p *proxied) told(body []byte) {
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
	p.t.Fatal("the daemon does not learn that the agent may be spared traces")
}
