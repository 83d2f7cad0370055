package traces

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/DataDog/sketches-go/ddsketch/pb/sketchpb"
	"github.com/spanstatsd/spanstatsd/internal/daemon"
	datadog "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	"github.com/spanstatsd/spanstatsd/internal/export/agent"
	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/test/agent/realagent"
	"google.golang.org/protobuf/proto"
)

// startAgent runs the unmodified agent on a socket, with its output captured.
func startAgent(t *testing.T) *realagent.Agent {
	t.Helper()
	return realagent.Start(t, filepath.Join(t.TempDir(), "agent.sock"), nil)
}

// binned returns a number that differs for sketches with different counts or bins.
func binned(t testing.TB, encoded []byte) (sum float64) {
	var sketch sketchpb.DDSketch
	if err := proto.Unmarshal(encoded, &sketch); err != nil {
		t.Fatal(err)
	}
	bin := func(index int32, count float64) { sum += count * float64(1+int64(index)*int64(index)) }
	sum = sketch.ZeroCount
	for i, count := range sketch.PositiveValues.GetContiguousBinCounts() {
		bin(sketch.PositiveValues.ContiguousBinIndexOffset+int32(i), count)
	}
	for index, count := range sketch.PositiveValues.GetBinCounts() {
		bin(index, count)
	}
	return sum
}

// groups returns all groups of statistics over all buckets: their identity and their counts.
func groups(t *testing.T, of *realagent.Statistics) map[string]total {
	totals := map[string]total{}
	for _, p := range of.Payloads() {
		for _, bucket := range p.Stats {
			for _, g := range bucket.Stats {
				key := fmt.Sprintf("%q", []any{
					p.Env, p.Version, p.Lang, p.Service, p.ContainerID, p.GitCommitSha, p.ProcessTags,
					g.Service, g.Name, g.Resource, g.Type, g.SpanKind, fmt.Sprint(g.HTTPStatusCode),
					fmt.Sprint(g.Synthetics), fmt.Sprint(int(g.IsTraceRoot)), g.GRPCStatusCode,
					g.ServiceSource, g.PeerTags,
				})
				totals[key] = totals[key].plus(total{
					float64(g.Hits), float64(g.Errors),
					float64(g.TopLevelHits), float64(g.Duration), binned(t, g.OkSummary),
					binned(t, g.ErrorSummary),
				})
			}
		}
	}
	return totals
}

func startDaemon(t *testing.T, a *realagent.Agent, change ...func(*daemon.Config)) (d *daemon.Daemon,
	socket string,
) {
	config := daemon.DefaultConfig()
	for _, change := range change {
		change(&config)
	}
	config.Aggregate.Masking = registry.MaskNever
	dir := t.TempDir()
	socket = filepath.Join(dir, "apm.sock")
	config.Ingest.Socket.Path, config.APM.Socket.Path = filepath.Join(dir, "spans.sock"), socket
	config.HTTPAddr, config.Log = "127.0.0.1:0", slog.New(slog.DiscardHandler)
	config.Agent.URL = agent.URL{Network: "unix", Address: a.Socket}
	config.Aggregate.MaxAggregates, config.Aggregate.MaxOrigins = 1<<16, 4096
	for field := range config.Aggregate.Budgets {
		config.Aggregate.Budgets[field] = 1 << 16
	}
	d, err := daemon.New(config)
	if err != nil {
		t.Fatal(err)
	}
	d.Start()
	return d, socket
}

func clientOf(t *testing.T, socket string) *http.Client {
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

var paths = map[datadog.Format]string{
	datadog.FormatV04: "/v0.4/traces", datadog.FormatV05: "/v0.5/traces", datadog.FormatV07: "/v0.7/traces",
	datadog.FormatV1: "/v1.0/traces",
}

// sent is one request of a tracer.
type sent struct {
	path   string
	body   []byte
	header map[string]string
}

func (s *sent) to(t *testing.T, client *http.Client) (response string) {
	req, err := http.NewRequest(http.MethodPut, "http://localhost"+s.path, bytes.NewReader(s.body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range s.header {
		req.Header.Set(name, value)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d %s", resp.StatusCode, text)
}

// TestAgent_SameOutputForTraces sends the same requests to one agent through the daemon and to another one
// directly. Their output must be equal for each group, whether the daemon counted a request or left it
// to the agent.
func TestAgent_SameOutputForTraces(t *testing.T) {
	through, direct := startAgent(t), startAgent(t)
	d, socket := startDaemon(t, through)
	clients := [2]*http.Client{clientOf(t, socket), clientOf(t, direct.Socket)}
	rnd := rand.New(rand.NewPCG(10, 99))
	for i := range 400 {
		format := datadog.Format(i % 4)
		s := sent{
			path: paths[format], body: formats[format](randomPayload(rnd, time.Now()), rnd),
			header: map[string]string{
				"Content-Type": "application/msgpack", "Datadog-Meta-Lang": pick(rnd, "go", "python"),
				"Datadog-Container-ID": pick(rnd, "", "container-1", "container-2"),
			},
		}
		if format == datadog.FormatV07 {
			// For this format, the agent reads the container from the body alone.
			delete(s.header, "Datadog-Container-ID")
		}
		if rnd.IntN(2) == 0 {
			s.header["Datadog-Client-Computed-Top-Level"] = "yes"
		}
		if rnd.IntN(4) == 0 {
			s.header["X-Datadog-Process-Tags"] = "entrypoint.name:shop"
		}
		if rnd.IntN(20) == 0 {
			s.body = s.body[:len(s.body)/2]
		}
		if a, b := s.to(t, clients[0]), s.to(t, clients[1]); a != b && len(a) > 3 && a[:3] != b[:3] {
			t.Errorf("%s: response %q through the daemon, %q directly", s.path, a, b)
		}
	}
	accounting := d.Stop()
	if !accounting.Balanced || accounting.Flushed == 0 {
		t.Errorf("accounting: %+v", accounting)
	}
	through.Stop()
	direct.Stop()
	ours, uncounted, expected := groups(t, &through.Received), groups(t, &through.Computed),
		groups(t, &direct.Computed)
	if len(ours) < 500 {
		t.Errorf("only %d groups were counted here", len(ours))
	}
	t.Logf("%d groups counted here, %d left to the agent, %d spans", len(ours), len(uncounted), accounting.Flushed)
	for key, counts := range uncounted {
		ours[key] = ours[key].plus(counts)
	}
	if !maps.Equal(ours, expected) {
		shown := 0
		for key := range expected {
			if ours[key] != expected[key] && shown < 5 {
				shown++
				t.Errorf("%s\nthrough %v\n direct %v", key, ours[key], expected[key])
			}
		}
		for key := range ours {
			if _, ok := expected[key]; !ok && shown < 10 {
				shown++
				t.Errorf("only through the daemon: %s %v", key, ours[key])
			}
		}
	}
}
