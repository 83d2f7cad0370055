package program

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/client"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
)

// TestKill_ClientLosesNothing kills a daemon under load, and later shuts another one down
// gracefully. The agent must get each span once, except for spans that the client reports as ambiguous,
// which the next daemon shows in its metrics. A graceful shutdown must leave no ambiguous spans.
func TestKill_ClientLosesNothing(t *testing.T) {
	dir := sockets(t)
	agent := startAgent(t, "unix", filepath.Join(dir, "agent"))
	socket := filepath.Join(dir, "s")
	start := func() *process {
		return daemonProcess(t, agent.URL(), socket, "--shutdown-grace", "30s", "--drainers", "fixed:2",
			"--ring-slots", "65536", "--flush-interval", "1s")
	}
	c, err := client.Open(client.Config{
		Socket: socket, MaxAge: 5 * time.Millisecond, MaxBackoff: 50 * time.Millisecond,
		Origin: client.Origin{Service: "shop"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	// during ends a daemon under load and starts the next one.
	during := func(end func()) (next *process) {
		stop := make(chan struct{})
		publishing := load(t, c, stop)
		more := func() { // publishes spans
			before := c.Stats().Sent
			eventually.True(t, "the daemon has more", func() bool { return c.Stats().Sent > before+5000 })
		}
		more()
		if err := c.Flush(t.Context()); err != nil { // waits until some spans are settled
			t.Fatal(err)
		}
		more()
		before := c.Stats()
		end()
		next = start()
		eventually.True(t, "the client is back",
			func() bool { return c.Stats().Connects == before.Connects+1 })
		close(stop)
		publishing.Wait()
		if err := c.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		return next
	}
	lost := func() uint64 { return c.Stats().Sent - agent.Totals().Hits }

	first := start()
	eventually.True(t, "the client is connected", func() bool { return c.Stats().Connects == 1 })
	second := during(func() {
		if err := first.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		first.exit()
	})
	lostSpans, stats := lost(), c.Stats()
	if lostSpans > stats.Ambiguous || stats.Unconfirmed > 0 || stats.Unsettled > 0 {
		t.Errorf("%d spans are lost, or %d counted twice; client stats %+v", lostSpans, -lostSpans, stats)
	}
	if reported := metric(second.get("/metrics"),
		`spanstatsd_client_lost_spans_total{reason="ambiguous"}`); reported != float64(stats.Ambiguous) {
		t.Errorf("the next daemon reports %g ambiguous spans, the client %d", reported, stats.Ambiguous)
	}
	third := during(func() {
		if err := second.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		second.exit()
	})
	if s := c.Stats(); s.Unconfirmed > 0 || s.Ambiguous != stats.Ambiguous || lost() != lostSpans {
		t.Errorf("after a graceful shutdown, %d more spans are lost; client stats %+v", lost()-lostSpans, s)
	}
	if reported := metric(third.get("/metrics"),
		`spanstatsd_client_lost_spans_total{reason="ambiguous"}`); reported != 0 {
		t.Errorf("after a graceful shutdown the next daemon reports %g ambiguous spans", reported)
	}
}
