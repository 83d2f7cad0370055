package program

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/client"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
	"github.com/vmihailenco/msgpack/v5"
)

// manager acts as a service manager that keeps sockets open across daemons.
type manager struct {
	t     *testing.T
	files []*os.File
	args  []string
}

func newManager(t *testing.T, args ...string) *manager { return &manager{t: t, args: args} }

// listen creates a socket that is passed to every daemon.
func (m *manager) listen(network, address string) net.Addr {
	m.t.Helper()
	listener, err := net.Listen(network, address)
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { listener.Close() })
	file, err := listener.(interface{ File() (*os.File, error) }).File()
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { file.Close() })
	m.files = append(m.files, file)
	return listener.Addr()
}

// start starts a daemon with the sockets.
func (m *manager) start(more ...string) *process {
	m.t.Helper()
	cmd := program(m.t, append(m.args, more...)...)
	cmd.Env = append(cmd.Env, fmt.Sprintf("LISTEN_FDS=%d", len(m.files)))
	cmd.ExtraFiles = m.files
	cmd.Args = append([]string{"sh", "-c", `LISTEN_PID=$$ exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
	daemon, _ := listening(m.t, cmd)
	return daemon
}

// stop shuts a daemon down gracefully and returns its accounting.
func (m *manager) stop(daemon *process) map[string]any {
	m.t.Helper()
	if err := daemon.Process.Signal(syscall.SIGTERM); err != nil {
		m.t.Fatal(err)
	}
	code, log := daemon.exit()
	accounting := log[len(log)-1]
	if code != 0 || accounting["balanced"] != true || accounting["received"] == 0.0 {
		m.t.Errorf("exit code %d, last line %v", code, accounting)
	}
	return accounting
}

// tracesOf returns a v0.4 body with the given number of traces that differ from those of all other
// bodies.
func tracesOf(t *testing.T, number uint64, count int) []byte {
	all := make([]any, count)
	for i := range all {
		all[i] = []any{map[string]any{
			"service": "shop", "name": "http.request", "resource": "GET /", "trace_id": number + 1,
			"span_id": i + 1,
			"start":   time.Now().UnixNano(), "duration": 1000,
			"meta":    map[string]string{"span.kind": "server"},
			"metrics": map[string]float64{"_sampling_priority_v1": 1},
		}}
	}
	body, err := msgpack.Marshal(all)
	if err != nil {
		t.Error(err)
	}
	return body
}

// TestSocketActivation_RestartLosesNoTraces sends traces over both sockets of the agent API, with a
// connection per request, and spans of the native client, while three daemons follow one another. Each
// request must get a response, each span must be counted once, and the accounting of all daemons must
// balance.
func TestSocketActivation_RestartLosesNoTraces(t *testing.T) {
	dir := sockets(t)
	agent := startAgent(t, "unix", filepath.Join(dir, "agent"))
	spans, traces := filepath.Join(dir, "s"), filepath.Join(dir, "a")
	m := newManager(t, "run", "--socket", spans, "--apm-socket", traces, "--agent-url", agent.URL(),
		"--http-addr", "127.0.0.1:0", "--log-format", "json")
	m.listen("unix", spans)
	addr := m.listen("tcp", "127.0.0.1:0").String()
	m.listen("unix", traces)
	daemon := m.start("--apm-addr", addr)
	var sent, succeeded atomic.Uint64
	stop, sending := make(chan struct{}), sync.WaitGroup{}
	for i := range 6 {
		sending.Go(func() {
			sendTraces(t, stop, []string{"unix " + traces, "tcp " + addr}[i%2], &sent,
				&succeeded)
		})
	}
	c, err := client.Open(client.Config{Socket: spans, MaxBackoff: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	published := uint64(0)
	for restarts := 0; restarts < 3; restarts++ {
		for before := succeeded.Load(); succeeded.Load() < before+200; published++ {
			c.Publish([]client.Snapshot{{
				Key: client.Key{Service: "a", Operation: "b", Resource: "c"},
				End: time.Now(),
			}})
			time.Sleep(time.Millisecond)
		}
		eventually.True(t, "spans are received",
			func() bool { return metric(daemon.get("/metrics"), "spanstatsd_spans_received_total") > 0 })
		if restarts < 2 {
			m.stop(daemon)
			daemon = m.start("--apm-addr", addr)
		}
	}
	close(stop)
	sending.Wait()
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
	m.stop(daemon)
	got := agent.Totals()
	t.Logf("%d requests with 10 traces each, %d of them left to the agent; %d spans of our client",
		sent.Load(), got.Uncounted.Requests, published)
	if sent.Load() != succeeded.Load() || got.Counted.Requests+got.Uncounted.Requests != sent.Load() {
		t.Errorf("%d requests, %d responses, and the agent has %d and %d", sent.Load(), succeeded.Load(),
			got.Counted.Requests, got.Uncounted.Requests)
	}
	if want := published + 10*got.Counted.Requests; got.Hits != want {
		t.Errorf("the agent has %d hits, not %d", got.Hits, want)
	}
}

// sendTraces sends one request after another until stop is closed, each over a new connection, like a
// tracer whose connection was closed.
func sendTraces(t *testing.T, stop chan struct{}, to string, sent, succeeded *atomic.Uint64) {
	network, address, _ := strings.Cut(to, " ")
	tracer := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, address)
		},
	}}
	for {
		select {
		case <-stop:
			return
		default:
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://agent/v0.4/traces",
			bytes.NewReader(tracesOf(t, sent.Add(1), 10)))
		if err != nil {
			t.Error(err)
			return
		}
		request.Header.Set("Content-Type", "application/msgpack")
		request.Header.Set("X-Datadog-Trace-Count", "10")
		response, err := tracer.Do(request)
		if err != nil {
			t.Errorf("a request of a tracer failed during the restart: %v", err)
			return
		}
		response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Errorf("a tracer got the response %s", response.Status)
		}
		succeeded.Add(1)
	}
}

// TestSocketActivation_UnknownSocketIsRejected: clients of such a socket would wait forever.
func TestSocketActivation_UnknownSocketIsRejected(t *testing.T) {
	dir := sockets(t)
	m := newManager(t)
	m.listen("unix", filepath.Join(dir, "other"))
	cmd := program(t, "run", "--socket", filepath.Join(dir, "s"), "--http-addr", "127.0.0.1:0")
	cmd.Env = append(cmd.Env, "LISTEN_FDS=1")
	cmd.ExtraFiles = m.files
	cmd.Args = append([]string{"sh", "-c", `LISTEN_PID=$$ exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "no flag has the address "+filepath.Join(dir, "other")) {
		t.Errorf("%v: %s", err, out)
	}
}
