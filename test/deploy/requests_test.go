//go:build requests

package deploy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/client"
	"github.com/spanstatsd/spanstatsd/lab/bench/recorded"
	"github.com/spanstatsd/spanstatsd/lab/standin"
	shapes "github.com/spanstatsd/spanstatsd/lab/workload"
)

// TestRequests_AreEnough measures a daemon in an ordinary pod: all receivers enabled, 500 spans per
// second from a client and 500 in an SDK's requests, with an agent and a Prometheus. The maximum and
// the 99th percentile over the seconds of its memory and processor usage must be within the requests of
// the manifests and the chart.
func TestRequests_AreEnough(t *testing.T) {
	length, err := time.ParseDuration(os.Getenv("TIME"))
	if err != nil {
		t.Fatalf("parse TIME, the duration of the measurement: %v", err)
	}
	dir := t.TempDir()
	agent, err := standin.Start(standin.Config{Network: "unix", Address: filepath.Join(dir, "agent")})
	if err != nil {
		t.Fatal(err)
	}
	defer agent.Close()
	daemon := exec.Command(binary, "run", "--socket", filepath.Join(dir, "s"), "--agent-url", agent.URL(),
		"--apm-socket", filepath.Join(dir,
			"apm"), "--otlp-addr", "127.0.0.1:24318", "--prometheus", "--http-addr", "127.0.0.1:29126")
	daemon.Env = append(os.Environ(), "GOMEMLIMIT=192MiB", "GOMAXPROCS=1")
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	c, err := client.Open(client.Config{Socket: filepath.Join(dir, "s")})
	if err != nil {
		t.Fatal(err)
	}
	go handOver(ctx, c)
	go exportSpans(ctx, t)
	memory, cpu := sample(ctx, t, daemon.Process.Pid)
	if err := c.Close(context.Background()); err != nil {
		t.Error(err)
	}
	_ = daemon.Process.Signal(syscall.SIGTERM)
	if err := daemon.Wait(); err != nil {
		t.Error(err)
	}
	if hits := agent.Totals().Hits; hits < uint64(length.Seconds())*900 {
		t.Errorf("the agent has %d spans", hits)
	}
	t.Logf("memory: 99 %% %.1f MiB, most %.1f MiB; processors: 99 %% %.1fm, mean %.1fm", at99(memory),
		slices.Max(memory),
		at99(cpu), mean(cpu))
	if most := float64(leastRequest.Value()) / (1 << 20); slices.Max(memory) > most {
		t.Errorf("the daemon uses %.1f MiB of memory, and requests %.0f", slices.Max(memory), most)
	}
	if most := float64(leastCPU.MilliValue()); mean(cpu) > most {
		t.Errorf("the daemon uses %.1fm of CPU, and requests %.0fm", mean(cpu), most)
	}
}

// handOver publishes 500 spans per second with a client.
func handOver(ctx context.Context, c *client.Client) {
	generator, _ := shapes.New(shapes.Stable, 1)
	spans, batch := make([]shapes.Snapshot, 5), make([]client.Snapshot, 5)
	for range time.Tick(10 * time.Millisecond) {
		if ctx.Err() != nil {
			return
		}
		generator.Fill(spans, time.Now().UnixNano())
		for i, s := range spans {
			batch[i] = client.Snapshot{
				Key: client.Key{
					Service:   s.Key.Service,
					Operation: s.Key.Operation,
					Resource:  s.Key.Resource,
					Kind:      s.Key.Kind,
				},
				Duration: time.Duration(s.Duration), End: time.Unix(0, s.End), TopLevel: true,
			}
		}
		c.Publish(batch)
	}
}

// exportSpans sends recorded spans of an SDK, 500 per second in requests of 512.
func exportSpans(ctx context.Context, t *testing.T) {
	request, err := recorded.Load("java")
	if err != nil {
		t.Error(err)
		return
	}
	message := slices.Clone(request.Message)
	for range time.Tick(time.Duration(request.Spans) * time.Second / 500) {
		if ctx.Err() != nil {
			return
		}
		request.Stamp(message, time.Now())
		response, err := http.Post("http://127.0.0.1:24318/v1/traces", "application/x-protobuf",
			bytes.NewReader(message))
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.Copy(io.Discard, response.Body)
		response.Body.Close()
		scrape, err := http.Get("http://127.0.0.1:29126/metrics/spans")
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.Copy(io.Discard, scrape.Body)
		scrape.Body.Close()
	}
}

// sample measures, every second, the memory of a process in MiB and its processor usage in thousandths.
func sample(ctx context.Context, t *testing.T, pid int) (memory, cpu []float64) {
	last, before := processor(t, pid), time.Now()
	for {
		select {
		case <-ctx.Done():
			return memory, cpu
		case <-time.After(time.Second):
		}
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
		if err != nil {
			t.Fatal(err)
		}
		pages, _ := strconv.Atoi(strings.Fields(string(text))[1])
		memory = append(memory, float64(pages*os.Getpagesize())/(1<<20))
		used, now := processor(t, pid), time.Now()
		cpu = append(cpu, float64(used-last)/now.Sub(before).Seconds()*1000)
		last, before = used, now
	}
}

// processor returns the processor time of all threads of a process, in seconds.
func processor(t *testing.T, pid int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, fields, _ := strings.Cut(string(text), ") ") // after the program name
	user, _ := strconv.ParseFloat(strings.Fields(fields)[11], 64)
	system, _ := strconv.ParseFloat(strings.Fields(fields)[12], 64)
	return (user + system) / 100
}

func at99(of []float64) float64 {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)*99/100]
}

func mean(of []float64) (sum float64) {
	for _, x := range of {
		sum += x / float64(len(of))
	}
	return sum
}
