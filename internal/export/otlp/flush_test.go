package otlp

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
	"github.com/spanstatsd/spanstatsd/internal/testutil/testcycle"
)

// startFlusher starts a flusher with this exporter only. It probes frequently unless the test sets
// another interval.
func startFlusher(t *testing.T, x *Exporter) (*export.Flusher, export.Destination) {
	t.Helper()
	if x.probeInterval == probeInterval {
		x.probeInterval = 5 * time.Millisecond
	}
	f, err := export.New(export.Config{}, x.Describe())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		f.Close(ctx)
	})
	return f, f.Destinations()[0]
}

// The state of a receiver is known without traffic, also after it has become unavailable.
func TestDestination_StateWithoutTraffic(t *testing.T) {
	r := started(t, nil)
	x := exporterTo(t, r.URL, nil)
	x.probeInterval = time.Minute // the first probe has enough time
	_, d := startFlusher(t, x)
	eventually.True(t, "the receiver is known", func() bool { return d.Stats().Reachable })
}

// A receiver that has recovered gets the queued payloads immediately, and they count as flushed.
func TestDestination_RecoveredGetsQueued(t *testing.T) {
	path := filepath.Join(t.TempDir(), "otlp.sock")
	x := exporterTo(t, "unix://"+path, nil)
	f, d := startFlusher(t, x)
	f.Accept(testcycle.Spans(7))
	f.Accept(testcycle.Spans(5))
	eventually.True(t, "a try has failed", func() bool { return d.Stats().Payloads[export.ResultRetried] > 0 })
	if s := d.Stats(); s.Pending != 12 || s.Flushed != 0 || s.Reachable {
		t.Errorf("without a receiver: %+v", s)
	}
	r := newReceiver(t, nil)
	_ = r.Listener.Close()
	var err error
	if r.Listener, err = net.Listen("unix", path); err != nil {
		t.Fatal(err)
	}
	r.Start()
	eventually.True(t, "what waited was delivered", func() bool { return d.Stats().Flushed == 12 })
	if s := d.Stats(); s.Pending != 0 || !s.Reachable || !s.IsAccepting {
		t.Errorf("afterwards %+v", s)
	}
	payloads, _ := r.got()
	first := mustRead(t, payloads[0].body)[0].Metrics[callsName].Points[0]
	if len(payloads) != 2 || *first.Calls != 7 {
		t.Errorf("%d payloads, the first of %d spans, want the older one first", len(payloads), *first.Calls)
	}
}

// The spans of rejected points count as unsent, the others as flushed.
func TestAccounting_RejectedPoints(t *testing.T) {
	r := started(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(partialBody(1, "too old"))
	})
	f, d := startFlusher(t, exporterTo(t, r.URL, nil))
	c := newCycle()
	origin := c.Origin(testOrigin)
	for operation, spans := range map[string]int{"four": 4, "nine": 9} {
		key := c.Key(origin, testKey(operation))
		for range spans {
			c.Add(0, key, 0, 1000, 0, 1)
		}
	}
	f.Accept(c.Seal())
	eventually.True(t, "the payload has its outcome", func() bool { return d.Stats().Pending == 0 })
	if s := d.Stats(); s.Flushed != 4 || s.Unsent[export.Rejected] != 9 {
		t.Errorf("%d flushed and %v unsent, want 4 and 9", s.Flushed, s.Unsent)
	}
}

// Payloads without a response are ambiguous. Only one is: a probe precedes the next payload.
func TestAccounting_NoResponseIsAmbiguous(t *testing.T) {
	r := started(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	f, d := startFlusher(t, exporterTo(t, r.URL, nil))
	f.Accept(testcycle.Spans(7))
	eventually.True(t, "the payload has its outcome", func() bool { return d.Stats().Pending == 0 })
	if s := d.Stats(); s.Unsent[export.Ambiguous] != 7 || s.Flushed != 0 {
		t.Errorf("%+v", s)
	}
	eventually.True(t, "the silent receiver is probed", func() bool { _, probes := r.got(); return probes > 0 })
}
