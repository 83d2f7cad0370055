package program

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/client"
	"github.com/spanstatsd/spanstatsd/internal/eventually"
)

// TestAClientKnowsWhatAKilledDaemonTook kills a daemon in the middle of load, and later
// ends another in order: the client says of the first how many spans it may have taken
// with it, no fewer than the agent never got and not all, the next daemon exposes that,
// and the second has taken none.
func TestAClientKnowsWhatAKilledDaemonTook(t *testing.T) {
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
	// during has a daemon end under load, and the next one count what is left of it.
	during := func(end func()) (next *process) {
		stop := make(chan struct{})
		publishing := load(t, c, stop)
		more := func() { // spans are handed over
			before := c.Stats().Sent
			eventually.True(t, "the daemon has more", func() bool { return c.Stats().Sent > before+5000 })
		}
		more()
		if err := c.Flush(t.Context()); err != nil { // some have had their outcome
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
	eventually.True(t, "the client is there", func() bool { return c.Stats().Connects == 1 })
	second := during(func() {
		if err := first.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		first.exit()
	})
	taken, died := lost(), c.Stats().Unconfirmed
	if died < taken || died == 0 || died >= c.Stats().Sent {
		t.Errorf("the client says that of %d spans at most %d are lost, and %d are", c.Stats().Sent, died,
			taken)
	}
	if told := metric(second.get("/metrics"),
		`spanstatsd_client_lost_spans_total{reason="daemon_died"}`); told != float64(died) {
		t.Errorf("the next daemon says that %g spans are lost, and the client %d", told, died)
	}
	third := during(func() {
		if err := second.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		second.exit()
	})
	if more := c.Stats().Unconfirmed - died; more != 0 || lost() != taken {
		t.Errorf("after a stop in order, %d spans more are unconfirmed, and %d lost", more, lost()-taken)
	}
	if told := metric(third.get("/metrics"),
		`spanstatsd_client_lost_spans_total{reason="daemon_died"}`); told != 0 {
		t.Errorf("after a stop in order, the next daemon says that %g spans are lost", told)
	}
}
