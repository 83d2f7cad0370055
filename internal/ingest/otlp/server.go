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

// Server is the receiver of OTLP.
type Server struct {
	*receiver.Server
	config   Config
	workers  chan *worker // that are free
	policy   *otel.Policy // of ReadingOTel
	forwards receiver.ForwardStats
	sampling samplingStats
	said     *sdkmetrics.Listener // reports of SDKs about their spans
	// unforwarded counts refused requests with metrics and logs, by signal.
	unforwarded [len(signals)]atomic.Uint64
	// agentPolicy is that of ReadingDatadog; nil while the agent counts.
	agentPolicy atomic.Pointer[agent.Policy]
}

// samplingStats count what --otlp-keep forwards.
type samplingStats struct {
	keptTraces, keptSpans, goneTraces, goneSpans, savedBytes atomic.Uint64
}

// note counts a call that was not counted before.
func (k *samplingStats) note(kept, gone sampling.Tally, saved int) {
	k.keptTraces.Add(uint64(kept.Traces))
	k.keptSpans.Add(uint64(kept.Spans))
	k.goneTraces.Add(uint64(gone.Traces))
	k.goneSpans.Add(uint64(gone.Spans))
	k.savedBytes.Add(uint64(max(0, saved)))
}

const (
	// betweenRequests is the maximum time between two requests: most SDKs export every five seconds, metrics
	// every minute.
	betweenRequests = 2 * time.Minute
	// frameBytes is the maximum length of an HTTP/2 frame: the minimum of the protocol, and all that gRPC for
	// Go sends.
	frameBytes = 16 << 10
)

// New opens the listeners. Nothing is accepted before Start.
func New(config Config) (*Server, error) {
	if err := config.Check(); err != nil {
		return nil, err
	}
	s := &Server{
		config: config, policy: otel.NewPolicy(config.Labels), said: sdkmetrics.NewListener(),
		workers: make(chan *worker, config.Counters),
	}
	for range config.Counters {
		s.workers <- &worker{reader: s.newReader()}
	}
	var err error
	s.Server, err = receiver.New(&config.Config, receiver.Setup{
		FlagPrefix: "otlp", Data: "OTLP", Results: resultNames[:],
		Classify: s.classify, LoadFeatures: s.loadFeatures,
		Upstream:          config.Forward.Upstream(config.forwardTimeout),
		ReadHeaderTimeout: config.headerTimeout, BodyTimeout: config.readTimeout,
		WriteTimeout: receiver.WriteTimeout, IdleTimeout: betweenRequests,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: config.MaxStreams, MaxReadFrameSize: frameBytes,
			MaxReceiveBufferPerConnection: config.windowBytes(),
			MaxReceiveBufferPerStream:     config.windowBytes(), SendPingTimeout: receiver.PingAfter,
			WriteByteTimeout: receiver.WriteTimeout,
		},
	}, rules.MaxBatches)
	return s, err //nolint:wrapcheck // it says what to do
}

// newReader returns a reader of the configured reading.
func (s *Server) newReader() reader {
	if s.config.Reading == ReadingDatadog {
		return newAgentReader(&s.agentPolicy)
	}
	return newOTelReader(s.policy)
}

// loadFeatures applies the agent's features if its rules are followed.
func (s *Server) loadFeatures() (changed <-chan struct{}) {
	if s.config.Reading != ReadingDatadog {
		return nil
	}
	f, changed := s.config.Features()
	more := agent.Labels{Ignore: s.config.Labels.Ignore}
	policy, ok := agent.NewPolicy(f.PeerTags, f.SpanKinds, f.IgnoreResources, more)
	if ok && f.Stats && !f.FiltersTags {
		if _, err := translate.New(policy.Names()); err == nil {
			s.agentPolicy.Store(policy)
			return changed
		}
	}
	if f.Stats {
		s.config.Log.Warn("the agent asks for tags that only it can read, or leaves out traces by their " +
			"tags; OTLP is left to it to count")
	}
	s.agentPolicy.Store(nil)
	return changed
}

// Stats are the counters of the receiver.
type Stats struct {
	receiver.Status
	// Forwarded and dropped by --otlp-keep, and the bytes that it saved.
	KeptTraces, KeptSpans, GoneTraces, GoneSpans, SavedBytes uint64
}

// Stats reads the counters. A nil server is off.
func (s *Server) Stats() (stats Stats) {
	if s == nil {
		s = &Server{}
	}
	stats.Status = s.Server.Status(resultNames[:], &s.forwards)
	stats.RefusedSignals = map[string]uint64{}
	for _, of := range []signal{signalMetrics, signalLogs} {
		stats.RefusedSignals[signals[of].name] = s.unforwarded[of].Load()
	}
	k := &s.sampling
	stats.KeptTraces, stats.KeptSpans = k.keptTraces.Load(), k.keptSpans.Load()
	stats.GoneTraces, stats.GoneSpans, stats.SavedBytes = k.goneTraces.Load(), k.goneSpans.Load(),
		k.savedBytes.Load()
	return stats
}

// Said returns the reports of SDKs about their own spans, and whether there are any.
func (s *Server) Said() (sums sdkmetrics.Sums, heard bool) {
	if s == nil {
		return sums, false
	}
	return s.said.Sums()
}

// Shown returns the status that all receivers have.
func (s *Server) Status() receiver.Status { return s.Stats().Status }

// Result is the result of counting a request.
type Result uint8

const (
	ResultCounted       Result = iota
	ResultCountedBefore        // a retry
	ResultByTracer             // its sender computes its statistics
	ResultUnread               // it can't be parsed
	ResultNoRoom               // a ring or an interval has no room, or the daemon stops
	ResultTooMany              // it has more spans than the rings can ever hold
	ResultTooLarge             // over --otlp-max-body, as it comes or decompressed
	ResultBusy                 // no memory is free
	ResultNotWanted            // no destination takes statistics
	ResultIncomplete           // its SDK did not send all of it
	ResultRefused              // by its path, method or header
	ResultOther                // metrics, logs, a health check or a browser's preflight request
	ResultBug                  // an internal error, contained

	results = int(ResultBug) + 1
)

// resultNames are the names in metrics.
var resultNames = [results]string{
	"counted", "counted_before", "by_tracer", "unread", "no_room", "too_many", "too_large", "busy",
	"not_wanted", "incomplete", "refused", "other", "bug",
}
