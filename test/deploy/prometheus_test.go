//go:build prometheus

package deploy

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/client"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
	"github.com/spanstatsd/spanstatsd/lab/standin"
)

// TestPrometheus lets a real server scrape a daemon under load, and queries it over its API for the
// drop rate, the accounting, the state of the drop alert, and every query of the dashboards.
//
// In addition to two tracers, a third one speaks another protocol version, so that some spans are
// dropped at any machine speed.
func TestPrometheus(t *testing.T) {
	dir, err := os.MkdirTemp("", "pr")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	agent, err := standin.Start(standin.Config{Network: "unix", Address: filepath.Join(dir, "agent")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { agent.Close() })
	target := freeAddress(t)
	const objective = "--slo=shop: service=shop, 300ms, 99.9%"
	sloRules := filepath.Join(dir, "slo.yaml")
	printed, err := exec.Command(binary, "slo", "rules", objective).Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(sloRules, printed, 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, binary, "run", "--socket", filepath.Join(dir, "s"), "--agent-url", agent.URL(), "--http-addr",
		target, "--prometheus", objective,
		"--flush-interval", "1s", "--log-level", "error")
	server := startPrometheus(t, dir, target, sloRules)

	ctx, stop := context.WithCancel(t.Context())
	var publishing sync.WaitGroup
	clients := []*client.Client{openClient(t, dir, "one"), openClient(t, dir, "two")}
	for _, c := range clients {
		publishing.Go(func() { publish(ctx, c) })
	}
	refused := uint64(0)
	publishing.Go(func() { refused = speakAnotherVersion(ctx, filepath.Join(dir, "s")) })
	server.await(`sum(rate(spanstatsd_spans_dropped_total{reason="refused"}[30s])) > 0`)
	server.await(`sum(rate(spanstatsd_spans_received_total[30s])) >
		sum(rate(spanstatsd_spans_dropped_total[30s]))`)
	server.await(`ALERTS{alertname="SpanstatsdDropping", alertstate="firing", reason="refused"}`)
	stop()
	publishing.Wait()

	sent := refused
	for _, c := range clients {
		if err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		sent += c.Stats().Sent
	}
	// The daemon has received exactly the spans that the tracers have sent, and holds none.
	server.await(fmt.Sprintf("spanstatsd_spans_received_total == %d and on (instance) "+
		"sum by (instance) (spanstatsd_spans_pending) == 0", sent))
	received := server.ask("spanstatsd_spans_received_total")
	aggregated := server.ask("sum(spanstatsd_spans_aggregated_total)")
	dropped := server.ask("sum(spanstatsd_spans_dropped_total)")
	flushed := server.ask(`spanstatsd_spans_flushed_total{destination="agent"}`)
	unsent := server.ask(`sum(spanstatsd_spans_unsent_total{destination="agent"})`)
	if received != aggregated+dropped || aggregated != flushed+unsent || dropped == 0 ||
		flushed != float64(agent.Totals().Hits) {
		t.Errorf("received %v, aggregated %v, dropped %v, flushed %v, unsent %v; the agent counted %d",
			received, aggregated, dropped, flushed, unsent, agent.Totals().Hits)
	}
	t.Logf("accounting in Prometheus: received %.0f = aggregated %.0f + dropped %.0f; flushed %.0f, "+
		"unsent %.0f", received, aggregated, dropped, flushed, unsent)
	for _, file := range dashboards {
		server.runQueries(&file)
	}
	server.rulesAreWell(daemonRules, requestRules, ruleFile{rules: sloRules})
}

func openClient(t *testing.T, dir, service string) *client.Client {
	t.Helper()
	c, err := client.Open(client.Config{
		Socket: filepath.Join(dir, "s"),
		Origin: client.Origin{Service: service},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// publish publishes about ten thousand spans per second.
func publish(ctx context.Context, c *client.Client) {
	batch := make([]client.Snapshot, 50)
	for i := range batch {
		route := fmt.Sprint("/", i)
		batch[i].Key = client.Key{
			Service: "shop", Operation: "http.request", Resource: "GET " + route, Type: "web", Kind: "server",
			HTTPMethod: "GET", HTTPEndpoint: route, HTTPStatus: 200,
		}
		batch[i].Duration = time.Millisecond
	}
	for ctx.Err() == nil {
		for i := range batch {
			batch[i].End = time.Now()
		}
		c.Publish(batch)
		time.Sleep(5 * time.Millisecond)
	}
}

// speakAnotherVersion sends ten spans ten times a second, which the daemon refuses, and returns the
// number of spans.
func speakAnotherVersion(ctx context.Context, socket string) (spans uint64) {
	key := wire.AppendKey(nil, &span.Key{Service: "shop", Operation: "op"})
	for ctx.Err() == nil {
		frames := wire.AppendHello(nil, &wire.Hello{Version: wire.Version + 1})
		start := len(frames)
		frames = wire.BeginSpans(frames)
		for range 10 {
			frames = wire.AppendWhole(frames, key, 1000, time.Now().UnixNano(), span.TopLevel, 1)
		}
		wire.EndSpans(frames, start, 10)
		if conn, err := net.Dial("unix", socket); err == nil {
			if _, err := conn.Write(frames); err == nil {
				spans += 10
			}
			conn.Close()
		}
		time.Sleep(100 * time.Millisecond)
	}
	return spans
}

// start starts a program that runs until the end of the test.
func start(t *testing.T, name string, args ...string) {
	t.Helper()
	startWith(t, nil, name, args...)
}

// startWith starts a program with additional variables, and with a standard input that stays open and
// empty.
func startWith(t *testing.T, env []string, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env, cmd.Stderr = append(os.Environ(), env...), os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // to kill its child processes as well
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
}
