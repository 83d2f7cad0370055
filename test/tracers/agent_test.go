package tracers

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	gzip "github.com/DataDog/datadog-agent/comp/trace/compression/impl-gzip"
	pb "github.com/DataDog/datadog-agent/pkg/proto/pbgo/trace"
	"github.com/DataDog/datadog-agent/pkg/trace/agent"
	"github.com/DataDog/datadog-agent/pkg/trace/config"
	"github.com/DataDog/datadog-agent/pkg/trace/stats"
	"github.com/DataDog/datadog-agent/pkg/trace/telemetry"
	"github.com/DataDog/datadog-agent/pkg/trace/writer"
	"github.com/DataDog/datadog-go/v5/statsd"
	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/DataDog/sketches-go/ddsketch/mapping"
	"github.com/DataDog/sketches-go/ddsketch/pb/sketchpb"
	"github.com/DataDog/sketches-go/ddsketch/store"
	"google.golang.org/protobuf/proto"
)

// traces counts the spans that an agent would send on.
type traces struct{ spans atomic.Int64 }

func (*traces) Stop()                                     {}
func (*traces) FlushSync() error                          { return nil }
func (*traces) UpdateAPIKey(_, _ string)                  {}
func (w *traces) WriteChunks(c *writer.SampledChunks)     { w.spans.Add(c.SpanCount) }
func (w *traces) WriteChunksV1(c *writer.SampledChunksV1) { w.spans.Add(c.SpanCount) }

// statistics are those that an agent would send on.
type statistics struct {
	mu       sync.Mutex
	payloads []*pb.ClientStatsPayload
}

func (c *statistics) Write(p *pb.StatsPayload) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.payloads = append(c.payloads, p.Stats...)
}

func (c *statistics) sent() []*pb.ClientStatsPayload {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.payloads
}

// realAgent is the agent as it is, on a socket, with its outputs captured.
type realAgent struct {
	socket   string
	traces   traces
	computed statistics // by its own concentrator
	received statistics // from clients
	stop     func()
}

func startAgent(t testing.TB) *realAgent {
	t.Helper()
	a := &realAgent{socket: filepath.Join(t.TempDir(), "agent.sock")}
	conf := config.New()
	conf.Hostname, conf.DefaultEnv, conf.AgentVersion = "agent-host", "none", "7.85.1"
	conf.Endpoints = []*config.Endpoint{{Host: "http://127.0.0.1:1", APIKey: "k"}}
	conf.ReceiverPort, conf.ReceiverSocket = 0, a.socket
	conf.MaxConnections, conf.DecoderTimeout, conf.Decoders = 1000, 10_000, 2
	conf.TelemetryConfig.Enabled, conf.StatsdEnabled = false, false
	ctx, cancel := context.WithCancel(context.Background())
	real := agent.NewAgent(ctx, conf, telemetry.NewNoopCollector(), &statsd.NoOpClient{}, gzip.NewComponent())
	real.ClientStatsAggregator = stats.NewClientStatsAggregator(conf, &a.received, &statsd.NoOpClient{})
	real.Concentrator = stats.NewConcentrator(conf, &a.computed, time.Now(), &statsd.NoOpClient{})
	real.TraceWriter, real.TraceWriterV1 = &a.traces, &a.traces
	go real.Run()
	a.stop = sync.OnceFunc(func() {
		settle(real)
		cancel()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := real.WaitForStopped(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(a.stop)
	for range 6_000 {
		if conn, err := net.Dial("unix", a.socket); err == nil {
			conn.Close()
			return a
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("the agent does not listen")
	return nil
}

// settle waits until the agent has taken in every statistic that it was sent. It
// drops those that still wait when it ends.
func settle(real *agent.Agent) {
	waiting := real.ClientStatsAggregator.In
	waiting <- &pb.ClientStatsPayload{} // behind what is being taken in
	for len(waiting) > 0 {
		time.Sleep(time.Millisecond)
	}
}

// group is what a group counts: the sketches as a sum that tells bins apart.
type group struct{ hits, errors, topLevel, duration, fine, failed float64 }

func (a group) plus(b group) group {
	return group{a.hits + b.hits, a.errors + b.errors, a.topLevel + b.topLevel, a.duration + b.duration, a.fine + b.fine, a.failed + b.failed}
}

// groupsOf are the groups of statistics, added up, and how many spans they count.
func groupsOf(t *testing.T, all ...*statistics) (groups map[string]group, spans float64) {
	t.Helper()
	groups = map[string]group{}
	for _, c := range all {
		for _, p := range c.sent() {
			for _, bucket := range p.Stats {
				for _, g := range bucket.Stats {
					key := keyOf(p, g)
					groups[key] = groups[key].plus(group{
						float64(g.Hits), float64(g.Errors), float64(g.TopLevelHits), float64(g.Duration), binned(t, g.OkSummary), binned(t, g.ErrorSummary),
					})
					spans += float64(g.Hits)
				}
			}
		}
	}
	return groups, spans
}

// keyOf is everything that tells a group from others.
func keyOf(p *pb.ClientStatsPayload, g *pb.ClientGroupedStats) string {
	return fmt.Sprintf("%q", []any{
		p.Env, p.Version, p.Lang, p.Service, p.ContainerID, p.GitCommitSha, p.ProcessTags,
		g.Service, g.Name, g.Resource, g.Type, g.SpanKind, fmt.Sprint(g.HTTPStatusCode), fmt.Sprint(g.Synthetics),
		fmt.Sprint(int(g.IsTraceRoot)), g.GRPCStatusCode, g.ServiceSource, g.PeerTags, g.HTTPMethod, g.HTTPEndpoint,
	})
}

// canonical is the mapping that the agent converts sketches of others to, where it has
// two to merge.
var canonical, _ = mapping.NewLogarithmicMapping(0.01)

// binned tells sketches apart that do not have the same counts in the same bins, of the
// mapping that the agent would have them in.
func binned(t *testing.T, encoded []byte) (sum float64) {
	t.Helper()
	if len(encoded) == 0 {
		return 0
	}
	var message sketchpb.DDSketch
	if err := proto.Unmarshal(encoded, &message); err != nil {
		t.Fatal(err)
	}
	sketch, err := ddsketch.FromProto(&message)
	if err != nil {
		t.Fatal(err)
	}
	if !sketch.IndexMapping.Equals(canonical) {
		sketch = sketch.ChangeMapping(canonical, store.NewCollapsingLowestDenseStore(2048), store.NewCollapsingLowestDenseStore(2048), 1)
	}
	sketch.GetPositiveValueStore().ForEach(func(index int, count float64) bool {
		sum += count * float64(1+index*index)
		return false
	})
	return sum + sketch.GetZeroCount()
}
