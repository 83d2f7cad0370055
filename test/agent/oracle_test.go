package agent

import (
	"context"
	"net"
	"path/filepath"
	"sync"
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
)

// oracle is the real agent.
type oracle struct {
	t        *testing.T
	socket   string
	computed capture // what its concentrator made of traces
	received capture // what its aggregator made of clients' statistics

	agent *agent.Agent
	end   context.CancelFunc
	once  sync.Once
}

// capture stands where the agent would write to the backend.
type capture struct {
	mu       sync.Mutex
	payloads []*pb.ClientStatsPayload
}

func (c *capture) Write(p *pb.StatsPayload) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.payloads = append(c.payloads, p.Stats...)
}

func (c *capture) all() []*pb.ClientStatsPayload {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.payloads
}

// noTraces takes the traces themselves. A pointer, because the agent looks
// whether its writers are nil.
type noTraces struct{}

func (*noTraces) WriteChunks(*writer.SampledChunks)     {}
func (*noTraces) WriteChunksV1(*writer.SampledChunksV1) {}
func (*noTraces) Stop()                                 {}
func (*noTraces) FlushSync() error                      { return nil }
func (*noTraces) UpdateAPIKey(_, _ string)              {}

// startOracle runs the agent on a socket. edit may change how it is configured.
func startOracle(t *testing.T, socket string, edit func(*config.AgentConfig)) *oracle {
	t.Helper()
	conf := config.New()
	conf.Hostname, conf.DefaultEnv, conf.AgentVersion = "agent-host", "none", "7.85.1"
	conf.Endpoints = []*config.Endpoint{{Host: "http://127.0.0.1:1", APIKey: "k"}}
	conf.ReceiverPort, conf.ReceiverSocket = 0, socket
	// With the values of config.New it serves one connection at a time, and drops
	// half of the traces without a word.
	conf.MaxConnections, conf.DecoderTimeout, conf.Decoders = 1000, 10_000, 2
	conf.TelemetryConfig.Enabled, conf.StatsdEnabled = false, false
	if edit != nil {
		edit(conf)
	}
	o := &oracle{t: t, socket: socket}
	ctx, end := context.WithCancel(context.Background())
	o.end = end
	sd := &statsd.NoOpClient{}
	o.agent = agent.NewAgent(ctx, conf, telemetry.NewNoopCollector(), sd, gzip.NewComponent())
	o.agent.ClientStatsAggregator = stats.NewClientStatsAggregator(conf, &o.received, sd)
	// One bucket back, as far as the daemon's window reaches.
	o.agent.Concentrator = stats.NewConcentrator(conf, &o.computed, time.Now().Add(-bucketWidth), sd)
	o.agent.TraceWriter, o.agent.TraceWriterV1 = &noTraces{}, &noTraces{}
	go o.agent.Run()
	t.Cleanup(o.stop)
	awaitSocket(t, socket)
	return o
}

// stop ends the agent, which sends all that it holds first.
func (o *oracle) stop() {
	o.once.Do(func() {
		settle(o.agent)
		o.end()
		o.agent.WaitForStopped(context.Background())
	})
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

func awaitSocket(t *testing.T, socket string) {
	t.Helper()
	for tries := 0; ; tries++ {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			_ = conn.Close()
			return
		}
		if tries == 2000 {
			t.Fatalf("nobody listens on %s: %v", filepath.Base(socket), err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
