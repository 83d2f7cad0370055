package fleet

import (
	"net/http"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/client"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
	"github.com/spanstatsd/spanstatsd/lab/standin"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
)

// fault is a fault of a collector.
type fault struct {
	away      time.Duration                       // unavailable at first for this time; negative means always
	onRequest func(w http.ResponseWriter) outcome // decides the outcome of a request; nil for none
	args      []string                            // flags of the daemon
	unsent    string                              // reason of the spans that the collector does not receive
}

// outcome is the outcome of a request.
type outcome int

const (
	accepted outcome = iota
	answered         // onRequest has responded with an error
	partial          // one data point is rejected
)

var faults = map[string]fault{
	"unavailable, then recovers": {away: 3 * time.Second},
	"unavailable for too long":   {away: -1, args: []string{"--retry-age=3s"}, unsent: "expired"},
	"overloaded for a while":     {onRequest: overloaded(3)},
	"rejects one point":          {onRequest: rejectingOne, unsent: "rejected"},
	"rejects everything":         {onRequest: refusing, unsent: "rejected"},
	"healthy":                    {},
}

// If a collector fails and an agent does not, the agent still gets every span, and the daemon's
// accounting shows the outcome of each span for the collector.
func TestAgent_UnaffectedByFailingCollector(t *testing.T) {
	const spans = 400
	for name, row := range faults {
		t.Run(name, func(t *testing.T) {
			agent, err := standin.Start(standin.Config{Network: "tcp", Address: "127.0.0.1:0"})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { agent.Close() })
			r := newReceiver(t)
			r.onRequest = row.onRequest
			if row.away >= 0 {
				time.AfterFunc(row.away, r.start)
			}
			d := startDaemon(t, "node-1", 4, append(row.args, "--agent-url", agent.URL(),
				"--otlp-metrics-endpoint", r.url()+"/v1/metrics")...)
			for pod, c := range d.clients {
				if !c.Publish(snapshots(spans / len(d.clients))) {
					t.Fatalf("pod %d: the client refused spans", pod)
				}
			}
			d.hands(t)
			eventually.True(t, "the agent has every span",
				func() bool { return d.counted("spans_flushed_total", "agent", "") == spans })
			if hits := agent.Totals().Hits; hits != spans {
				t.Errorf("the agent counted %d spans", hits)
			}
			eventually.True(t, "nothing is held for the collector", func() bool {
				return d.counted("spans_flushed_total", "otlp", "")+d.counted("spans_unsent_total", "otlp",
					"") == spans
			})
			flushed, unsent := d.counted("spans_flushed_total", "otlp", ""),
				d.counted("spans_unsent_total", "otlp", row.unsent)
			switch has := r.accepted(); {
			case flushed+unsent != spans || (unsent > 0) != (row.unsent != ""):
				t.Errorf("flushed %d, unsent with reason %q %d", flushed, row.unsent, unsent)
			case flushed > has, row.onRequest == nil && flushed != has:
				// The accounting can report too many rejected points, but never too few.
				t.Errorf("flushed %d, the collector has %d", flushed, has)
			}
			d.stop()
		})
	}
}

// overloaded rejects the given number of requests for a second each.
func overloaded(requests int) func(http.ResponseWriter) outcome {
	return func(w http.ResponseWriter) outcome {
		if requests--; requests < 0 {
			return accepted
		}
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
		return answered
	}
}

func refusing(w http.ResponseWriter) outcome {
	w.WriteHeader(http.StatusBadRequest)
	return answered
}

func rejectingOne(w http.ResponseWriter) outcome {
	response := pmetricotlp.NewExportResponse()
	response.PartialSuccess().SetRejectedDataPoints(1)
	response.PartialSuccess().SetErrorMessage("one point too many")
	body, err := response.MarshalProto()
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(body) // if the daemon has disconnected, its accounting shows it
	return partial
}

func snapshots(n int) []client.Snapshot {
	spans := make([]client.Snapshot, n)
	for i := range spans {
		s := &shapes[i%len(shapes)]
		spans[i] = client.Snapshot{
			Key: s.key, Duration: s.from, End: time.Now(), Error: s.isError,
			TopLevel: true,
		}
		spans[i].Key.Service = "shop"
	}
	return spans
}
