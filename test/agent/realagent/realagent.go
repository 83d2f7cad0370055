// Package realagent runs the Datadog trace agent within a test: as it is, on a Unix
// socket, with what it would send to the backend captured instead.
package realagent

import (
	"context"
	"net"
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
)

// BucketWidth is the agent's and the daemon's.
const BucketWidth = 10 * time.Second

// Agent is a running agent.
type Agent struct {
	Socket   string
	Computed Statistics   // what its concentrator made of traces
	Received Statistics   // what its aggregator made of clients' statistics
	Spans    atomic.Int64 // spans of the traces that it would send on
	Sent     SpanIDs      // of those
	Stop     func()       // sends all that it holds first; may be called again
}

// Config is how an agent is configured that opens no port.
func Config() *config.AgentConfig {
	conf := config.New()
	conf.Hostname, conf.DefaultEnv, conf.AgentVersion = "agent-host", "none", "7.85.1"
	conf.Endpoints = []*config.Endpoint{{Host: "http://127.0.0.1:1", APIKey: "k"}}
	conf.ReceiverEnabled, conf.ReceiverPort = false, 0
	conf.TelemetryConfig.Enabled, conf.StatsdEnabled = false, false
	return conf
}

// Served is how one is configured that answers on a socket.
func Served(socket string) *config.AgentConfig {
	conf := Config()
	conf.ReceiverEnabled, conf.ReceiverSocket = true, socket
	// With the values of config.New it serves one connection at a time, and drops
	// half of the traces without a word.
	conf.MaxConnections, conf.DecoderTimeout, conf.Decoders = 1000, 10_000, 2
	return conf
}

// New makes an agent that does not run, and discards its traces.
func New(conf *config.AgentConfig) *agent.Agent {
	return newAgent(context.Background(), conf, &Agent{})
}

func newAgent(ctx context.Context, conf *config.AgentConfig, captured *Agent) *agent.Agent {
	made := agent.NewAgent(ctx, conf, telemetry.NewNoopCollector(), &statsd.NoOpClient{}, gzip.NewComponent())
	traces := &countedTraces{captured}
	made.TraceWriter, made.TraceWriterV1 = traces, traces
	return made
}

// Start runs an agent on a socket until the test ends. edit, if there is one, changes
// how it is configured.
func Start(t testing.TB, socket string, edit func(*config.AgentConfig)) *Agent {
	t.Helper()
	conf := Served(socket)
	if edit != nil {
		edit(conf)
	}
	a := &Agent{Socket: socket}
	ctx, cancel := context.WithCancel(context.Background())
	running := newAgent(ctx, conf, a)
	running.ClientStatsAggregator = stats.NewClientStatsAggregator(conf, &a.Received, &statsd.NoOpClient{})
	// One bucket back, as far as the daemon's window reaches.
	running.Concentrator = stats.NewConcentrator(conf, &a.Computed, time.Now().Add(-BucketWidth),
		&statsd.NoOpClient{})
	go running.Run()
	a.Stop = sync.OnceFunc(func() {
		TakeIn(running)
		cancel()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := running.WaitForStopped(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(a.Stop)
	awaitSocket(t, socket)
	return a
}

// TakeIn waits until the agent has taken in every statistic that it was sent. It
// drops those that still wait when it ends.
func TakeIn(running *agent.Agent) {
	waiting := running.ClientStatsAggregator.In
	waiting <- &pb.ClientStatsPayload{} // behind what is being taken in
	for len(waiting) > 0 {
		time.Sleep(time.Millisecond)
	}
}

func awaitSocket(t testing.TB, socket string) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			_ = conn.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the agent does not listen: %v", err)
		}
	}
}

// Statistics are those that an agent would send to the backend.
type Statistics struct {
	mu       sync.Mutex
	payloads []*pb.ClientStatsPayload
}

// Write takes what the agent would send.
func (s *Statistics) Write(p *pb.StatsPayload) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.payloads = append(s.payloads, p.Stats...)
}

// Payloads are all that were sent so far.
func (s *Statistics) Payloads() []*pb.ClientStatsPayload {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.payloads
}

// SpanID is a span of a trace, by the halves of that one's id.
type SpanID struct{ TraceHigh, TraceLow, Span uint64 }

// SpanIDs are those of the spans that an agent would send to the backend.
type SpanIDs struct {
	mu  sync.Mutex
	all map[SpanID]bool
}

// Has says whether a span is among them.
func (s *SpanIDs) Has(id SpanID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[id]
}

func (s *SpanIDs) add(id SpanID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[SpanID]bool{}
	}
	s.all[id] = true
}

// countedTraces takes the traces, counts their spans and keeps their ids. It is used as a
// pointer, because the agent looks whether its writers are nil.
type countedTraces struct{ of *Agent }

func (*countedTraces) Stop()                    {}
func (*countedTraces) FlushSync() error         { return nil }
func (*countedTraces) UpdateAPIKey(_, _ string) {}

// WriteChunks takes traces in the agent's old form, which it makes of none that it receives.
func (w *countedTraces) WriteChunks(c *writer.SampledChunks) { w.of.Spans.Add(c.SpanCount) }

// WriteChunksV1 takes all others.
func (w *countedTraces) WriteChunksV1(c *writer.SampledChunksV1) {
	w.of.Spans.Add(c.SpanCount)
	for _, chunk := range c.TracerPayload.Chunks {
		for _, s := range chunk.Spans {
			w.of.Sent.add(SpanID{chunk.TraceIDHigh(), chunk.LegacyTraceID(), s.SpanID()})
		}
	}
}
