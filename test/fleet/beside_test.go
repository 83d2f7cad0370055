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

// trouble is a fault of a collector.
type trouble struct {
	away      time.Duration                    // unavailable at first for this time; negative means always
	onRequest func(w http.ResponseWriter) fate // decides the outcome of a request; nil for none
	args      []string                         // flags of the daemon
	unsent    string                           // reason of the spans that the collector does not receive
}

// fate is the outcome of a request.
type fate int

const (
	taken     fate = iota
	answered       // onRequest has responded with an error
	leavesOut      // one data point is rejected
)

var troubles = map[string]trouble{
	"it is away, and comes back":        {away: 3 * time.Second},
	"it is away for too long":           {away: -1, args: []string{"--retry-age=3s"}, unsent: "expired"},
	"it has too much to do for a while": {onRequest: overloaded(3)},
	"it leaves out a part":              {onRequest: leavingOut, unsent: "rejected"},
	"it refuses everything":             {onRequest: refusing, unsent: "rejected"},
	"it is well":                        {},
}

// If a collector fails and an agent does not, the agent still gets every span, and the daemon's
// accounting shows the outcome of each span for the collector.
func TestAgent_UnaffectedByFailingCollector(t *testing.T) {
	const spans = 400
	for name, row := range troubles {
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
			switch has := r.taken(); {
			case flushed+unsent != spans || (unsent > 0) != (row.unsent != ""):
				t.Errorf("flushed are %d, unsent as %q %d", flushed, row.unsent, unsent)
			case flushed > has, row.onRequest == nil && flushed != has:
				// The accounting can report too many rejected points, but never too few.
				t.Errorf("flushed are %d, the collector has %d", flushed, has)
			}
			d.stop()
		})
	}
}

// overloaded rejects the given number of requests for a second each.
func overloaded(requests int) func(http.ResponseWriter) fate {
	return func(w http.ResponseWriter) fate {
		if requests--; requests < 0 {
			return taken
		}
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
		return answered
	}
}

func refusing(w http.ResponseWriter) fate {
	w.WriteHeader(http.StatusBadRequest)
	return answered
}

func leavingOut(w http.ResponseWriter) fate {
	response := pmetricotlp.NewExportResponse()
	response.PartialSuccess().SetRejectedDataPoints(1)
	response.PartialSuccess().SetErrorMessage("one point too many")
	body, err := response.MarshalProto()
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(body) // if the daemon has disconnected, its accounting shows it
	return leavesOut
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
