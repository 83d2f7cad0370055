package stats

import (
	"context"
	"maps"
	"net"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
)

// Whatever befalls a payload on its way to the real agent, the agent counts it
// once at most; and where the daemon can't know whether it did, the daemon says
// so. Afterwards all is as before.
func TestTheAgentCountsNothingTwice(t *testing.T) {
	for name, row := range map[string]struct {
		trouble trouble
		passes  bool   // by itself, so that the daemon tries until it is over
		arrives uint64 // of the hundred spans in trouble, what the agent counts
		reason  string // under which the daemon gives them up
	}{
		"the connection ends before the agent hears": {trouble: cutBefore, reason: "ambiguous"},
		"the answer is lost":                         {trouble: cutAfter, reason: "ambiguous", arrives: 100},
		"the answer is not HTTP": {
			trouble: unreadable, reason: "ambiguous",
			arrives: 100,
		},
		"the agent is overloaded": {trouble: overloaded, passes: true, arrives: 100},
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
			f.befall(row.trouble)
			if row.passes {
				go func() { f.await(2); f.befall(none) }()
			}
			if err := send("in trouble"); (err == nil) != row.passes {
				t.Errorf("the tracer was told %v", err)
			}
			f.befall(none)
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
			if b := d.books(); !b.Balanced || b.Flushed != 300-lost || b.Unsent != lost || b.Held != 0 {
				t.Errorf("the books: %v", b)
			}
			d.stop()
			o.Stop()
			want := map[string]uint64{"before": 100, "in trouble": row.arrives, "after": 100}
			if row.arrives == 0 {
				delete(want, "in trouble")
			}
			if got := o.hits(); !maps.Equal(got, want) {
				t.Errorf("the agent counted %v, want %v", got, want)
			}
		})
	}
}

// await returns when so many payloads have come by, or a minute later.
func (f *front) await(n int) {
	for end := time.Now().Add(time.Minute); len(f.posted()) < n && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
}

// An agent that goes, and another that comes in its place on the same path, as at an upgrade:
// payloads made meanwhile wait, and arrive once.
func TestTheAgentIsReplaced(t *testing.T) {
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
	if b := d.books(); !b.Balanced || b.Flushed != 200 {
		t.Errorf("the books: %v", b)
	}
	d.stop()
	new.Stop()
	if first, second := old.hits(), new.hits(); first["before"] != 100 || second["meanwhile"] != 100 ||
		len(first)+len(second) != 2 {
		t.Errorf("the old agent counted %v, the new one %v", first, second)
	}
}

// SIGTERM while the agent is away, or there and silent, ends the daemon within its
// grace, and the last line of its log says what is lost.
func TestStopWhileTheAgentIsAway(t *testing.T) {
	for name, listens := range map[string]bool{"nobody listens": false, "who listens is silent": true} {
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
			eventually.True(t, "all is received", func() bool { return d.books().Received >= 100 })
			d.stop()
			if last := d.stopped(); last["unsent"] != 100.0 || last["flushed"] != 0.0 ||
				d.cmd.ProcessState.ExitCode() != 0 {
				t.Errorf("exit code %d, last line %v", d.cmd.ProcessState.ExitCode(), last)
			}
		})
	}
}
