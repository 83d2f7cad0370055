package clients

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"google.golang.org/protobuf/proto"

	metricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"

	"github.com/spanstatsd/spanstatsd/lab/built"
)

// program is the daemon's binary.
var program string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "clients")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		if program, err = built.Plain(dir, built.Daemon); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

// pod is one daemon after the other with the same addresses, and the number of calls in the metrics that all of them
// have exported.
type pod struct {
	t       *testing.T
	socket  string
	otlp    string // address of the OTLP receiver
	metrics string // URL of the receiver of metrics
	flags   []string
	running *exec.Cmd
	log     *bufio.Scanner

	mu    sync.Mutex
	calls map[string]int64 // by resource and attributes, and by metric if that has no metric for calls
}

// newPod returns a pod with a running daemon, which has the given flags in addition to the usual ones.
func newPod(t *testing.T, flags ...string) *pod {
	t.Helper()
	dir, err := os.MkdirTemp("", "pod") // short enough for the path of a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	p := &pod{t: t, socket: filepath.Join(dir, "s"), otlp: freeAddress(t), flags: flags, calls: map[string]int64{}}
	receiver := httptest.NewServer(http.HandlerFunc(p.receive))
	t.Cleanup(receiver.Close)
	p.metrics = receiver.URL + "/v1/metrics"
	p.start()
	return p
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// start starts a daemon, and waits until it listens.
func (p *pod) start() {
	p.t.Helper()
	p.running = exec.Command(program, append([]string{
		"run", "--socket", p.socket, "--otlp-addr", p.otlp, "--agent-url", "off",
		"--http-addr", "127.0.0.1:0", "--otlp-metrics-endpoint", p.metrics, "--otlp-instance-id", "none",
		"--flush-interval", "1s", "--shutdown-grace", "30s", "--log-format", "json",
	}, p.flags...)...)
	p.running.Env = []string{"PATH=" + os.Getenv("PATH")}
	log, err := p.running.StderrPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := p.running.Start(); err != nil {
		p.t.Fatal(err)
	}
	started := p.running
	p.t.Cleanup(func() { _ = started.Process.Kill() })
	p.log = bufio.NewScanner(log)
	for p.log.Scan() {
		var line struct{ Msg string }
		if json.Unmarshal(p.log.Bytes(), &line); line.Msg == "listening for clients" {
			return
		}
	}
	p.t.Fatal("the daemon does not listen")
}

// end sends the daemon a signal, and waits until it has ended.
func (p *pod) end(signal os.Signal) {
	p.t.Helper()
	if err := p.running.Process.Signal(signal); err != nil {
		p.t.Fatal(err)
	}
	for p.log.Scan() { // until the process closes its end of the pipe
	}
	if err := p.running.Wait(); err != nil && signal == syscall.SIGTERM {
		p.t.Errorf("the daemon ended with %v", err)
	}
}

// receive adds the calls of an export request.
func (p *pod) receive(_ http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	request := &metricspb.ExportMetricsServiceRequest{}
	if err == nil {
		err = proto.Unmarshal(body, request)
	}
	if err != nil { // a killed daemon has sent a part of the request, which no receiver counts
		p.t.Log("receive metrics:", err)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, resource := range request.ResourceMetrics {
		for _, scope := range resource.ScopeMetrics {
			for _, metric := range scope.Metrics {
				for _, point := range metric.GetSum().GetDataPoints() {
					p.calls[textOf(resource.Resource.Attributes)+" | "+textOf(point.Attributes)] += point.GetAsInt()
				}
				if metric.Name == "traces.span.metrics.duration" {
					continue // these spans are in the metric for calls
				}
				for _, point := range metric.GetHistogram().GetDataPoints() {
					name := metric.Name + " of " + textOf(resource.Resource.Attributes) + " | " + textOf(point.Attributes)
					p.calls[name] += int64(point.Count)
				}
			}
		}
	}
}

// textOf returns attributes as text, in a fixed order.
func textOf(attributes []*commonpb.KeyValue) string {
	var all []string
	for _, a := range attributes {
		all = append(all, fmt.Sprint(a.Key, "=", a.Value.GetStringValue(), a.Value.GetIntValue()))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// series returns the exported calls of all daemons, by resource and attributes.
func (p *pod) series() map[string]int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.calls)
}
