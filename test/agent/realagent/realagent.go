// Package realagent runs the unmodified Datadog trace agent within a test, on a Unix socket, and
// captures its output to the backend.
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

// BucketWidth is the bucket width of the agent and of the daemon.
const BucketWidth = 10 * time.Second

// Agent is a running agent.
type Agent struct {
	Socket   string
	Computed Statistics   // statistics from its concentrator, counted from traces
	Received Statistics   // statistics from its aggregator, received from clients
	Spans    atomic.Int64 // spans of the traces that it would send
	Sent     SpanIDs      // IDs of these spans
	Stop     func()       // sends the remaining data first; can be called several times
}

// Config returns a configuration of an agent that opens no port.
func Config() *config.AgentConfig {
	conf := config.New()
	conf.Hostname, conf.DefaultEnv, conf.AgentVersion = "agent-host", "none", "7.85.1"
	conf.Endpoints = []*config.Endpoint{{Host: "http://127.0.0.1:1", APIKey: "k"}}
	conf.ReceiverEnabled, conf.ReceiverPort = false, 0
	conf.TelemetryConfig.Enabled, conf.StatsdEnabled = false, false
	return conf
}

// Served returns a configuration of an agent that listens on a socket.
func Served(socket string) *config.AgentConfig {
	conf := Config()
	conf.ReceiverEnabled, conf.ReceiverSocket = true, socket
	// With the values of config.New, the agent serves one connection at a time and silently drops half
	// of the traces.
	conf.MaxConnections, conf.DecoderTimeout, conf.Decoders = 1000, 10_000, 2
	return conf
}

// New creates an agent that does not run and discards its traces.
func New(conf *config.AgentConfig) *agent.Agent {
	return newAgent(context.Background(), conf, &Agent{})
}

func newAgent(ctx context.Context, conf *config.AgentConfig, captured *Agent) *agent.Agent {
	made := agent.NewAgent(ctx, conf, telemetry.NewNoopCollector(), &statsd.NoOpClient{}, gzip.NewComponent())
	traces := &countedTraces{captured}
	made.TraceWriter, made.TraceWriterV1 = traces, traces
	return made
}

// Start runs an agent on a socket until the test ends. If edit is not nil, it can change the
// configuration.
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
	// One bucket back, like the daemon's window.
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

// TakeIn waits until the agent has processed all statistics it has received. It would drop the
// remaining ones on exit.
func TakeIn(running *agent.Agent) {
	waiting := running.ClientStatsAggregator.In
	waiting <- &pb.ClientStatsPayload{} // after the payload in processing
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

// Statistics are the statistics that an agent would send to the backend.
type Statistics struct {
	mu       sync.Mutex
	payloads []*pb.ClientStatsPayload
}

// Write records a payload that the agent would send.
func (s *Statistics) Write(p *pb.StatsPayload) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.payloads = append(s.payloads, p.Stats...)
}

// Payloads returns all payloads so far.
func (s *Statistics) Payloads() []*pb.ClientStatsPayload {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.payloads
}

// SpanID identifies a span by its ID and its trace ID.
type SpanID struct{ TraceHigh, TraceLow, Span uint64 }

// SpanIDs are the IDs of the spans that an agent would send to the backend.
type SpanIDs struct {
	mu  sync.Mutex
	all map[SpanID]bool
}

// Has reports whether the span is in the set.
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

// countedTraces counts the spans of the agent's traces and keeps their IDs. It is used as a pointer,
// because the agent checks whether its writers are nil.
type countedTraces struct{ of *Agent }

func (*countedTraces) Stop()                    {}
func (*countedTraces) FlushSync() error         { return nil }
func (*countedTraces) UpdateAPIKey(_, _ string) {}

// WriteChunks receives traces in the agent's old format, to which the agent converts none of the traces
// it receives.
func (w *countedTraces) WriteChunks(c *writer.SampledChunks) { w.of.Spans.Add(c.SpanCount) }

// WriteChunksV1 receives all other traces.
func (w *countedTraces) WriteChunksV1(c *writer.SampledChunksV1) {
	w.of.Spans.Add(c.SpanCount)
	for _, chunk := range c.TracerPayload.Chunks {
		for _, s := range chunk.Spans {
			w.of.Sent.add(SpanID{chunk.TraceIDHigh(), chunk.LegacyTraceID(), s.SpanID()})
		}
	}
}
