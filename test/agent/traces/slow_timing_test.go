package traces

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/lab/bench"
	"github.com/spanstatsd/spanstatsd/lab/bench/measure"
)

// BenchmarkSlow measures the processor time of a pod for a thousand spans per second in recorded
// requests of tracers: with an agent process that counts them, and with a daemon process that counts
// them for the agent. Both receive the same requests at the same time, for about two of the agent's
// intervals.
func BenchmarkSlow(b *testing.B) {
	const seconds, warmUp = 20, 4
	dir := b.TempDir()
	build(b, dir)
	for _, format := range bench.Recorded {
		at := filepath.Join(dir, format)
		alone, upstream, daemon := at+"alone", at+"upstream", at+"daemon"
		intake := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
		}))
		processes := []process{
			{"agent-that-counts", started(b, alone, filepath.Join(dir, "agent"), alone, intake.URL)},
			{"agent-after-daemon", started(b, upstream, filepath.Join(dir, "agent"), upstream, intake.URL)},
			{"daemon", started(b, daemon, filepath.Join(dir, "spanstatsd"), "run", "--socket="+at+"spans",
				"--apm-socket="+daemon,
				"--agent-url=unix://"+upstream, "--http-addr=127.0.0.1:0", "--drop-unsampled=off")},
		}
		time.Sleep(2 * time.Second) // until the daemon knows the agent's features
		tracers := []*http.Client{tracerOf(alone), tracerOf(daemon)}
		var before []measure.CPU
		var measured time.Time
		for start := time.Now(); before == nil || time.Since(measured) < seconds*time.Second; {
			if before == nil && time.Since(start) > warmUp*time.Second {
				before, measured = spent(b, processes), time.Now()
			}
			next, spans := time.Now(), 0
			for _, tracer := range tracers {
				spans = deliver(b, tracer, format)
			}
			time.Sleep(time.Until(next.Add(time.Duration(spans) * time.Millisecond)))
		}
		took := time.Since(measured).Seconds()
		after := spent(b, processes)
		b.Run(format, func(b *testing.B) {
			b.ReportMetric(0, "ns/op") // meaningless here
			for i, p := range processes {
				b.ReportMetric(float64(after[i].Minus(before[i]).All)/1e6/took, p.name+"-cpu-ms/s")
			}
		})
		for i := range processes {
			stop(processes[len(processes)-1-i].cmd)
		}
		intake.Close()
	}
}

// process is a measured process.
type process struct {
	name string
	cmd  *exec.Cmd
}

// build builds the programs.
func build(b *testing.B, dir string) {
	b.Helper()
	for folder, main := range map[string]string{"..": "./pod/agent", "../../..": "./cmd/spanstatsd"} {
		cmd := exec.Command("go", "build", "-o", dir, main)
		cmd.Dir = folder
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("build %s: %v\n%s", main, err, out)
		}
	}
}

// started starts a program that runs until the end of the benchmark, and waits until it listens.
func started(b *testing.B, socket, program string, args ...string) *exec.Cmd {
	b.Helper()
	cmd := exec.Command(program, args...)
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { stop(cmd) })
	for range 1000 {
		if conn, err := net.Dial("unix", socket); err == nil {
			conn.Close()
			return cmd
		}
		time.Sleep(10 * time.Millisecond)
	}
	b.Fatalf("%s does not listen", program)
	return nil
}

// stop stops a process that may already have ended.
func stop(cmd *exec.Cmd) {
	_ = cmd.Process.Signal(syscall.SIGTERM)
	_ = cmd.Wait()
}

func tracerOf(socket string) *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _,
		_ string,
	) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
}

func spent(b *testing.B, processes []process) (all []measure.CPU) {
	b.Helper()
	for _, p := range processes {
		cpu, err := measure.CPUOf(p.cmd.Process.Pid)
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, cpu)
	}
	return all
}

// deliver sends a recorded request whose spans have just ended, and returns the number of spans.
func deliver(b *testing.B, tracer *http.Client, format string) (spans int) {
	b.Helper()
	req, spans, err := bench.Request(format, time.Now())
	if err != nil {
		b.Fatal(err)
	}
	response, err := tracer.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		b.Fatalf("%s: %s", format, response.Status)
	}
	return spans
}
