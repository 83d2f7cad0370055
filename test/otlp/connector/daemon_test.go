package connector

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
)

// program is the daemon binary, built from this repository.
var program string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "oc")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		program = filepath.Join(dir, "spanstatsd")
		build := exec.Command("go", "build", "-o", program, "./cmd/spanstatsd")
		build.Dir, build.Stderr = filepath.Join("..", "..", ".."), os.Stderr
		if err := build.Run(); err != nil {
			fmt.Fprintln(os.Stderr, "build the daemon:", err)
			return 1
		}
		return m.Run()
	}())
}

// daemon is a running daemon with the metrics that its exporter has sent.
type daemon struct {
	t       *testing.T
	address string // address for --otlp-addr
	command *exec.Cmd
	ended   chan map[string]any // receives the last line of its log

	mu   sync.Mutex
	sent allSeries
}

func startDaemon(t *testing.T, args ...string) *daemon {
	t.Helper()
	d := &daemon{t: t, sent: allSeries{}, ended: make(chan map[string]any, 1)}
	receiver := httptest.NewServer(http.HandlerFunc(d.receive))
	t.Cleanup(receiver.Close)
	d.command = exec.Command(program, append([]string{
		"run", "--socket", filepath.Join(t.TempDir(), "s"), "--agent-url",
		"off", "--http-addr", "127.0.0.1:0",
		"--otlp-addr", "127.0.0.1:0", "--otlp-metrics-endpoint", receiver.URL + "/v1/metrics", "--span-names", "as-sent",
		"--otlp-instance-id", "none",
		"--mask-names=never", "--max-aggregates", "65536", "--shutdown-grace",
		"60s", "--log-format", "json",
	}, args...)...)
	d.command.Env = []string{"PATH=" + os.Getenv("PATH")}
	log, err := d.command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.command.Process.Kill() })
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		var line struct{ Msg, Addr string }
		_ = json.Unmarshal(lines.Bytes(), &line) // ignores lines that the daemon has not written
		if line.Msg == "receiving OTLP" {
			d.address = line.Addr
			break
		}
	}
	if d.address == "" {
		t.Fatal("the daemon does not log the address of its OTLP receiver")
	}
	go func() {
		last := map[string]any{}
		for lines.Scan() {
			_ = json.Unmarshal(lines.Bytes(), &last)
		}
		d.ended <- last
	}()
	return d
}

// receive handles a request of the daemon's exporter.
func (d *daemon) receive(_ http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	request := pmetricotlp.NewExportRequest()
	if err == nil {
		err = request.UnmarshalProto(body)
	}
	if err != nil {
		d.t.Error(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sent.add(request.Metrics())
}

// stop stops the daemon gracefully and returns the series that its exporter has sent.
func (d *daemon) stop(spans int) allSeries {
	d.t.Helper()
	if err := d.command.Process.Signal(syscall.SIGTERM); err != nil {
		d.t.Fatal(err)
	}
	accounting := <-d.ended
	if err := d.command.Wait(); err != nil || accounting["balanced"] != true ||
		accounting["flushed"] != float64(spans) || accounting["received"] != float64(spans) {
		d.t.Errorf("the daemon ended with %v; its accounting of %d spans: %v", err, spans, accounting)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.sent
}

// way is an encoding and transport used by an SDK.
type way int

const (
	httpProtobuf way = iota
	httpJSON
	byGRPC
	ways
)

// sender exports requests over connections of its own.
type sender struct {
	t      *testing.T
	to     *daemon
	plain  http.Client
	stream http.Client
}

func newSender(t *testing.T, to *daemon) *sender {
	streams := &http.Protocols{}
	streams.SetUnencryptedHTTP2(true)
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", to.address)
	}
	s := &sender{t: t, to: to}
	s.plain.Transport = &http.Transport{DialContext: dial}
	s.stream.Transport = &http.Transport{DialContext: dial, Protocols: streams}
	t.Cleanup(s.plain.CloseIdleConnections)
	t.Cleanup(s.stream.CloseIdleConnections)
	return s
}

// send exports one request and expects it to be accepted.
func (s *sender) send(traces ptrace.Traces, by way) {
	s.t.Helper()
	request := ptraceotlp.NewExportRequestFromTraces(traces)
	encode, media, path, client := request.MarshalProto, "application/x-protobuf", "/v1/traces", &s.plain
	switch by {
	case httpJSON:
		encode, media = request.MarshalJSON, "application/json"
	case byGRPC:
		media, path, client = "application/grpc",
			"/opentelemetry.proto.collector.trace.v1.TraceService/Export", &s.stream
	}
	body, err := encode()
	if err != nil {
		s.t.Fatal(err)
	}
	if by == byGRPC {
		body = append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(body))), body...)
	}
	answer, err := client.Post("http://"+s.to.address+path, media, bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK ||
		by == byGRPC && answer.Trailer.Get("Grpc-Status") != "0" {
		s.t.Fatalf("the response to a request is %s, %v: %q, %v", answer.Status, answer.Trailer, text, err)
	}
}
