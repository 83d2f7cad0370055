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
	"github.com/DataDog/sketches-go/ddsketch/pb/sketchpb"
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

// realAgent is the agent as it is, on a socket, with its outputs captured.
type realAgent struct {
	socket   string
	traces   traces
	computed statistics // by its own concentrator
	received statistics // from clients
	stop     func()
}

func startAgent(t *testing.T) *realAgent {
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
	for range 1000 {
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

func (c *statistics) groups(t *testing.T) (groups map[string]group, spans float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	groups = map[string]group{}
	for _, p := range c.payloads {
		for _, bucket := range p.Stats {
			for _, g := range bucket.Stats {
				key := fmt.Sprintf("%q", []any{
					p.Env, p.Version, p.Lang, p.Service, p.ContainerID, p.GitCommitSha, p.ProcessTags,
					g.Service, g.Name, g.Resource, g.Type, g.SpanKind, fmt.Sprint(g.HTTPStatusCode), fmt.Sprint(g.Synthetics),
					fmt.Sprint(int(g.IsTraceRoot)), g.GRPCStatusCode, g.ServiceSource, g.PeerTags, g.HTTPMethod, g.HTTPEndpoint,
				})
				groups[key] = groups[key].plus(group{
					float64(g.Hits), float64(g.Errors), float64(g.TopLevelHits), float64(g.Duration), binned(t, g.OkSummary), binned(t, g.ErrorSummary),
				})
				spans += float64(g.Hits)
			}
		}
	}
	return groups, spans
}

// binned tells sketches apart that do not have the same counts in the same bins.
func binned(t *testing.T, encoded []byte) float64 {
	var sketch sketchpb.DDSketch
	if err := proto.Unmarshal(encoded, &sketch); err != nil {
		t.Fatal(err)
	}
	sum := sketch.ZeroCount
	bin := func(index int32, count float64) { sum += count * float64(1+int64(index)*int64(index)) }
	for i, count := range sketch.PositiveValues.GetContiguousBinCounts() {
		bin(sketch.PositiveValues.ContiguousBinIndexOffset+int32(i), count)
	}
	for index, count := range sketch.PositiveValues.GetBinCounts() {
		bin(index, count)
	}
	return sum
}
