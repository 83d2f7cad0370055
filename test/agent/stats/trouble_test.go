package stats

import (
	"context"
	"maps"
	"net"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
)

// TestAgent_CountsNothingTwice checks that the real agent counts each payload at most once, whatever
// disruption it meets. If the daemon can't know whether the agent has counted it, the daemon reports it
// as ambiguous. Afterwards everything works again.
func TestAgent_CountsNothingTwice(t *testing.T) {
	for name, row := range map[string]struct {
		disruption disruption
		passes     bool   // ends by itself, so that the daemon retries until then
		arrives    uint64 // how many of the hundred disrupted spans the agent counts
		reason     string // reason for which the daemon gives them up
	}{
		"the connection ends before the agent hears": {disruption: cutBefore, reason: "ambiguous"},
		"the answer is lost":                         {disruption: cutAfter, reason: "ambiguous", arrives: 100},
		"the answer is not HTTP": {
			disruption: unreadable, reason: "ambiguous",
			arrives: 100,
		},
		"the agent is overloaded": {disruption: overloaded, passes: true, arrives: 100},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := here(t)
			o := startOracle(t, at.path("agent"), nil)
			f := startFront(t, at.path("front"), o.Socket)
			d := startDaemon(t, at.path("spans"), f.url())
			c := d.tracer(origin)
			send := func(resource string) error {
				publish(t, c, shopSpans(100, resource))
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				return c.Flush(ctx)
			}
			if err := send("before"); err != nil {
				t.Fatal(err)
			}
			f.disrupt(row.disruption)
			if row.passes {
				go func() { f.await(2); f.disrupt(none) }()
			}
			if err := send("during the disruption"); (err == nil) != row.passes {
				t.Errorf("result reported to the tracer: %v", err)
			}
			f.disrupt(none)
			if err := send("after"); err != nil {
				t.Fatal(err)
			}
			lost := uint64(0)
			if row.reason != "" {
				lost = 100
				if got := d.unsent(row.reason); got != "100" {
					t.Errorf("%s spans are %s", got, row.reason)
				}
			}
			if b := d.accounting(); !b.Balanced || b.Flushed != 300-lost || b.Unsent != lost || b.Pending != 0 {
				t.Errorf("accounting: %v", b)
			}
			d.stop()
			o.Stop()
			want := map[string]uint64{"before": 100, "during the disruption": row.arrives, "after": 100}
			if row.arrives == 0 {
				delete(want, "during the disruption")
			}
			if got := o.hits(); !maps.Equal(got, want) {
				t.Errorf("the agent counted %v, want %v", got, want)
			}
		})
	}
}

// await waits until n payloads have been recorded, or for a minute.
func (f *front) await(n int) {
	for end := time.Now().Add(time.Minute); len(f.posted()) < n && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
}

// TestAgent_IsReplaced stops the agent and starts another one on the same path, as in an upgrade.
// Payloads in the meantime must wait and arrive once.
func TestAgent_IsReplaced(t *testing.T) {
	t.Parallel()
	at := here(t)
	socket := at.path("agent")
	old := startOracle(t, socket, nil)
	d := startDaemon(t, at.path("spans"), "unix://"+socket)
	c := d.tracer(origin)
	publish(t, c, shopSpans(100, "before"))
	if err := c.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	old.Stop()
	publish(t, c, shopSpans(100, "meanwhile"))
	flushed := make(chan error, 1)
	go func() { flushed <- c.Flush(t.Context()) }()
	eventually.True(t, "a payload is retried",
		func() bool {
			return d.metric(`spanstatsd_payloads_total{destination="agent",result="retried"}`) != "0"
		})
	new := startOracle(t, socket, nil)
	if err := <-flushed; err != nil {
		t.Fatal(err)
	}
	if b := d.accounting(); !b.Balanced || b.Flushed != 200 {
		t.Errorf("accounting: %v", b)
	}
	d.stop()
	new.Stop()
	if first, second := old.hits(), new.hits(); first["before"] != 100 || second["meanwhile"] != 100 ||
		len(first)+len(second) != 2 {
		t.Errorf("the old agent counted %v, the new one %v", first, second)
	}
}

// SIGTERM with an agent that is unreachable or does not respond ends the daemon within its grace
// period, and the last log line contains the number of lost spans.
func TestStop_AgentUnavailable(t *testing.T) {
	for name, listens := range map[string]bool{"no listener": false, "listener without responses": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := here(t)
			if listens {
				silent, err := net.Listen("unix", at.path("agent"))
				if err != nil {
					t.Fatal(err)
				}
				defer silent.Close()
			}
			d := startDaemon(t, at.path("spans"), "unix://"+at.path("agent"), "--shutdown-grace=1s")
			c := d.tracer(origin)
			publish(t, c, shopSpans(100, "lost"))
			eventually.True(t, "all is received", func() bool { return d.accounting().Received >= 100 })
			d.stop()
			if last := d.stopped(); last["unsent"] != 100.0 || last["flushed"] != 0.0 ||
				d.cmd.ProcessState.ExitCode() != 0 {
				t.Errorf("exit code %d, last line %v", d.cmd.ProcessState.ExitCode(), last)
			}
		})
	}
}
