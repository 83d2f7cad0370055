package program

import (
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// TestPausedDaemon_CountsWrittenSpans stops the daemon's process with SIGSTOP while tracers
// connect, write, and disconnect or stay. The daemon must account for all their spans, even though it
// gets SIGTERM before it has read any.
func TestPausedDaemon_CountsWrittenSpans(t *testing.T) {
	dir := sockets(t)
	agent := startAgent(t, "unix", filepath.Join(dir, "agent"))
	socket := filepath.Join(dir, "s")
	daemon := daemonProcess(t, agent.URL(), socket)
	signal := func(signals ...syscall.Signal) {
		t.Helper()
		for _, s := range signals {
			if err := daemon.Process.Signal(s); err != nil {
				t.Fatal(err)
			}
		}
	}
	signal(syscall.SIGSTOP)
	const tracers, each = 40, 100
	for i := range tracers {
		conn, err := net.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		if _, err := conn.Write(helloAndSpans(fmt.Sprint("tracer ", i%7), each)); err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			conn.Close()
		}
	}
	signal(syscall.SIGTERM, syscall.SIGCONT)
	code, log := daemon.exit()
	last := log[len(log)-1]
	if code != 0 || last["received"] != float64(tracers*each) || last["flushed"] != float64(tracers*each) ||
		last["balanced"] != true {
		t.Errorf("exit code %d; of %d spans: %v", code, tracers*each, last)
	}
}

// helloAndSpans returns all messages of a short-lived process.
func helloAndSpans(service string, n int) []byte {
	frames := wire.AppendHello(nil, &wire.Hello{Version: wire.Version, Origin: span.Origin{Service: service}})
	key := wire.AppendKey(nil, &span.Key{Service: service, Operation: "op", Resource: "r"})
	start := len(frames)
	frames = wire.BeginSpans(frames)
	for range n {
		frames = wire.AppendWhole(frames, key, 1000, time.Now().UnixNano(), span.TopLevel, 1)
	}
	wire.EndSpans(frames, start, n)
	return frames
}

// TestStop_CountsShortProcesses has short-lived processes connect, write and disconnect during a
// shutdown. The spans of each process that could connect and write must be counted.
func TestStop_CountsShortProcesses(t *testing.T) {
	const each = 20
	dir := sockets(t)
	agent := startAgent(t, "unix", filepath.Join(dir, "agent"))
	socket := filepath.Join(dir, "s")
	daemon := daemonProcess(t, agent.URL(), socket)
	var handedOver atomic.Uint64
	var running sync.WaitGroup
	for i := range 8 {
		running.Go(func() {
			for {
				conn, err := net.Dial("unix", socket)
				if err != nil {
					return // the daemon is shutting down
				}
				if _, err := conn.Write(helloAndSpans(fmt.Sprint("short ", i), each)); err == nil {
					handedOver.Add(each)
				}
				conn.Close()
			}
		})
	}
	eventually.True(t, "the clients have connected and disconnected", func() bool { return handedOver.Load() > 1000*each })
	if err := daemon.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	code, log := daemon.exit()
	running.Wait()
	last, want := log[len(log)-1], float64(handedOver.Load())
	if code != 0 || last["received"] != want || last["balanced"] != true {
		t.Errorf("exit code %d; of %.0f spans: %v", code, want, last)
	}
}
