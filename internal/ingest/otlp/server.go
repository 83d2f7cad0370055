package otlp

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/ingest/otlp/sdkmetrics"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver"
	"github.com/spanstatsd/spanstatsd/internal/rules"
	agent "github.com/spanstatsd/spanstatsd/internal/rules/datadog"
	"github.com/spanstatsd/spanstatsd/internal/rules/otel"
	"github.com/spanstatsd/spanstatsd/internal/rules/translate"
	"github.com/spanstatsd/spanstatsd/internal/sampling"
)

// Server is the OTLP receiver.
type Server struct {
	*receiver.Server
	config        Config
	workspaces    chan *workspace // idle workspaces
	policy        *otel.Policy    // rules of SemanticsOTel
	forwards      receiver.ForwardStats
	sampling      samplingStats
	sdkSums       *sdkmetrics.Accumulator // span counts that SDKs report in their metrics
	refusedValues refusedValues
	// discarded has the number of discarded requests per signal, for metrics and logs without an upstream.
	discarded [len(signals)]atomic.Uint64
	// agentPolicy has the rules of SemanticsDatadog. It is nil while the spans are left to the agent to count.
	agentPolicy atomic.Pointer[agent.Policy]
}

// samplingStats counts the traces and spans that --otlp-keep has sampled and sampled out, and the bytes that need not
// be forwarded.
type samplingStats struct {
	sampledTraces, sampledSpans, sampledOutTraces, sampledOutSpans, savedBytes atomic.Uint64
}

// add adds the result of sampling one request: the traces and spans that are forwarded, those that are not, and the
// number of bytes that need not be sent. savedBytes is negative, and counts as 0, if the sampled message is longer
// than the received one.
func (stats *samplingStats) add(sampled, sampledOut sampling.Tally, savedBytes int) {
	stats.sampledTraces.Add(uint64(sampled.Traces))
	stats.sampledSpans.Add(uint64(sampled.Spans))
	stats.sampledOutTraces.Add(uint64(sampledOut.Traces))
	stats.sampledOutSpans.Add(uint64(sampledOut.Spans))
	stats.savedBytes.Add(uint64(max(0, savedBytes)))
}

const (
	// betweenRequests is the maximum time between two requests of a connection. Most SDKs export traces every five
	// seconds, and metrics every minute.
	betweenRequests = 2 * time.Minute
	// frameBytes is the maximum length of an HTTP/2 frame: the smallest maximum that the protocol allows. grpc-go
	// sends no longer frames.
	frameBytes = 16 << 10
)

// New creates a Server and opens its listeners. Connections are accepted after Start.
func New(config Config) (*Server, error) {
	if err := config.Check(); err != nil {
		return nil, err
	}
	s := &Server{
		config:     config,
		policy:     otel.NewPolicy(config.Labels),
		sdkSums:    sdkmetrics.NewAccumulator(),
		workspaces: make(chan *workspace, config.Counters),
	}
	for range config.Counters {
		s.workspaces <- &workspace{reader: s.newReader()}
	}
	var err error
	s.Server, err = receiver.New(&config.Config, s.setup(), rules.MaxBatches)
	return s, err
}

// setup returns the settings of the embedded receiver.Server: its callbacks, timeouts and HTTP/2 limits.
func (s *Server) setup() receiver.Setup {
	config := &s.config
	return receiver.Setup{
		FlagPrefix:   "otlp",
		Data:         "OTLP",
		Results:      resultNames[:],
		Classify:     s.classify,
		LoadFeatures: s.loadFeatures,
		Upstream:     config.Forward.Upstream(config.forwardTimeout),

		ReadHeaderTimeout: config.headerTimeout,
		BodyTimeout:       config.readTimeout,
		WriteTimeout:      receiver.WriteTimeout,
		IdleTimeout:       betweenRequests,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams:          config.MaxStreams,
			MaxReadFrameSize:              frameBytes,
			MaxReceiveBufferPerConnection: config.windowBytes(),
			MaxReceiveBufferPerStream:     config.windowBytes(),
			SendPingTimeout:               receiver.PingAfter,
			WriteByteTimeout:              receiver.WriteTimeout,
		},
	}
}

// newReader returns a reader that counts spans by the configured rules.
func (s *Server) newReader() reader {
	if s.config.Semantics == SemanticsDatadog {
		return newAgentReader(&s.agentPolicy)
	}
	return newOTelReader(s.policy)
}

// loadFeatures reads the features of the Datadog agent, and sets the rules for counting OTLP spans like the agent. If
// the daemon can't apply the agent's rules, it leaves the counting to the agent. The returned channel is closed when
// the features change. loadFeatures does nothing and returns nil if other rules are configured.
func (s *Server) loadFeatures() (changed <-chan struct{}) {
	if s.config.Semantics != SemanticsDatadog {
		return nil
	}
	features, changed := s.config.Features()
	policy := s.agentPolicyOf(features)
	hasUnsupportedRules := policy == nil && features.Stats // without features.Stats, there is no policy in any case
	if hasUnsupportedRules {
		s.config.Log.Warn("the agent is configured with tags or filters that only it can evaluate; it counts OTLP spans " +
			"itself")
	}
	s.agentPolicy.Store(policy) // nil leaves the counting to the agent
	return changed
}

// agentPolicyOf returns the rules for counting OTLP spans like a Datadog agent with the given features. It returns
// nil if the agent accepts no statistics, or has rules that the daemon can't apply.
func (s *Server) agentPolicyOf(features receiver.Features) *agent.Policy {
	canCount := features.Stats && !features.FiltersByTags
	if !canCount {
		return nil
	}
	ignored := agent.Labels{Ignore: s.config.Labels.Ignore}
	policy, isValid := agent.NewPolicy(features.PeerTags, features.SpanKinds, features.IgnoreResources, ignored)
	if !isValid {
		return nil
	}
	_, err := translate.New(policy.Names())
	canTranslate := err == nil
	if !canTranslate {
		return nil
	}
	return policy
}

// Stats are the counters of the receiver.
type Stats struct {
	receiver.Status
	// Traces and spans that --otlp-keep sampled and sampled out, and bytes that need not be forwarded.
	SampledTraces, SampledSpans, SampledOutTraces, SampledOutSpans, SavedBytes uint64

	RefusedValues map[string]uint64 // values of measured attributes that can't be counted, by reason
}

// Stats returns the current counters. On a nil Server, which is a disabled receiver, all counters are 0.
func (s *Server) Stats() (stats Stats) {
	if s == nil {
		s = &Server{}
	}
	stats.Status = s.Server.Status(resultNames[:], &s.forwards)
	stats.DiscardedSignals = map[string]uint64{}
	for _, discarded := range []signal{signalMetrics, signalLogs} {
		stats.DiscardedSignals[signals[discarded].name] = s.discarded[discarded].Load()
	}
	stats.SampledTraces = s.sampling.sampledTraces.Load()
	stats.SampledSpans = s.sampling.sampledSpans.Load()
	stats.SampledOutTraces = s.sampling.sampledOutTraces.Load()
	stats.SampledOutSpans = s.sampling.sampledOutSpans.Load()
	stats.SavedBytes = s.sampling.savedBytes.Load()
	stats.RefusedValues = s.refusedValues.byReason()
	return stats
}

// SDKSums returns the span counts that SDKs report in their metrics. found is false if no SDK has reported any, or if
// the receiver is disabled, so that s is nil.
func (s *Server) SDKSums() (sums sdkmetrics.Sums, found bool) {
	if s == nil {
		return sdkmetrics.Sums{}, false
	}
	return s.sdkSums.Sums()
}

// Status returns the part of Stats that all receivers have.
func (s *Server) Status() receiver.Status { return s.Stats().Status }

// Result is the result of counting a request.
type Result uint8

const (
	ResultCounted          Result = iota
	ResultDuplicate               // a retry
	ResultComputedByClient        // the sender computes the statistics
	ResultUnparsable              // invalid spans
	ResultNoRoom                  // a ring or an interval is full, or the daemon shuts down
	ResultTooMany                 // more spans than fit into empty rings
	ResultTooLarge                // received or decompressed body exceeds --otlp-max-body
	ResultBusy                    // bodies in memory have reached --otlp-max-body-bytes
	ResultNotWanted               // no destination accepts statistics
	ResultIncomplete              // the SDK sent only a part of the body
	ResultRefused                 // invalid path, method or header
	ResultOther                   // metrics, logs, a health check or a CORS preflight request
	ResultBug                     // recovered panic

	results = int(ResultBug) + 1
)

// resultNames are the values of the metric label "result", indexed by Result.
var resultNames = [results]string{
	"counted", "duplicate", "computed_by_client", "unparsable", "no_room", "too_many", "too_large", "busy",
	"not_wanted", "incomplete", "refused", "other", "bug",
}
