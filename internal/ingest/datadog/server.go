package datadog

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"slices"
	"sync/atomic"

	"github.com/spanstatsd/spanstatsd/internal/decode/clientstats"
	decode "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver"
	rules "github.com/spanstatsd/spanstatsd/internal/rules/datadog"
)

// Server is the receiver of the agent's trace API.
type Server struct {
	*receiver.Server
	config   Config
	counters counters

	idleCounters chan *rules.Counter
	// idlePayload has the only Payload for tracers' statistics while no request uses it. One is enough, since a process
	// sends statistics only every ten seconds.
	idlePayload chan *clientstats.Payload

	policy         atomic.Pointer[rules.Policy] // nil while the traces are left to the agent to count
	dropsUnsampled atomic.Bool                  // whether unsampled traces are not forwarded
	mergesStats    atomic.Bool                  // whether the agent accepts statistics
	agentState     agentState
	transport      *http.Transport // transport for streamed requests
	proxy          *httputil.ReverseProxy
}

type counters struct {
	other  atomic.Uint64 // requests without traces or statistics
	failed atomic.Uint64 // requests without a response of the agent

	unsampledTraces atomic.Uint64 // unsampled traces that were not forwarded
	unsampledSpans  atomic.Uint64 // spans of unsampled traces that were not forwarded
	savedBytes      atomic.Uint64 // bytes of unsampled traces that were not forwarded
}

// New returns a receiver with open listeners. Start starts accepting connections.
func New(config Config) (*Server, error) {
	if err := config.Check(); err != nil {
		return nil, err
	}
	s := &Server{
		config:       config,
		idleCounters: make(chan *rules.Counter, config.Counters),
		idlePayload:  make(chan *clientstats.Payload, 1),
	}
	s.idlePayload <- &clientstats.Payload{}
	for range config.Counters {
		s.idleCounters <- rules.NewCounter()
	}
	s.transport = s.config.Agent.NewTransport(nil)
	s.proxy = s.newProxy()
	var err error
	s.Server, err = receiver.New(&config.Config, s.setup(), rules.MaxBaseServices)
	return s, err //nolint:wrapcheck // it says what to do
}

// setup returns the handlers and the limits of the receiver for receiver.New.
func (s *Server) setup() receiver.Setup {
	upstream := s.config.Agent
	upstream.ResponseTimeout = forwardTimeout
	return receiver.Setup{
		FlagPrefix: flagPrefix, Data: receivedData, Results: slices.Concat(resultNames[:], statsResultNames[:]),
		Classify: s.classify, Stream: http.HandlerFunc(s.serveOther), LoadFeatures: s.loadFeatures,
		Upstream: upstream, UpstreamCounts: true,
		ReadHeaderTimeout: readTimeout, BodyTimeout: readTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout,
	}
}

// formats maps the path of each trace endpoint to the format of its bodies.
var formats = map[string]decode.Format{
	"/v0.3/traces": decode.FormatV04, "/v0.4/traces": decode.FormatV04, "/v0.5/traces": decode.FormatV05,
	"/v0.7/traces": decode.FormatV07, "/v1.0/traces": decode.FormatV1,
}

// statsPath is the endpoint for statistics that tracers have computed.
const statsPath = "/v0.6/stats"

// classify returns a traceRequest for a request with traces, and a statsRequest for one with statistics that the
// daemon merges. It returns nil for all other requests, which the caller streams to the agent. refusal is always
// nil, because the agent responds to invalid requests.
func (s *Server) classify(r *receiver.BufferedRequest) (exchange receiver.Exchange, refusal receiver.Response) {
	path, method := r.HTTP.URL.Path, r.HTTP.Method
	format, isTracePath := formats[path]
	isTraces := isTracePath && (method == http.MethodPut || method == http.MethodPost)
	if isTraces {
		return s.newTraceRequest(r, format), nil
	}
	isStats := path == statsPath && s.mergesStats.Load()
	if isStats {
		return &statsRequest{BufferedRequest: r, server: s}, nil
	}
	return nil, nil
}

// serveOther streams a request to the agent, without counting its spans or statistics. In the counters of requests,
// the result is ResultUnread for the paths of traces, and StatsNotWanted for the path of statistics. For all other
// paths, serveOther increments s.counters.other.
func (s *Server) serveOther(w http.ResponseWriter, r *http.Request) {
	_, isTracePath := formats[r.URL.Path]
	isStatsPath := r.URL.Path == statsPath
	switch {
	case isTracePath:
		s.CountResult(ResultUnread.resultIndex())
	case isStatsPath:
		s.CountResult(StatsNotWanted.resultIndex())
	default:
		s.counters.other.Add(1)
	}
	s.stream(w, r)
}

// loadFeatures applies the agent's current features, and returns a channel that is closed when they change.
func (s *Server) loadFeatures() <-chan struct{} {
	features, changed := s.config.Features()
	s.dropsUnsampled.Store(s.config.DropUnsampled.drops(features.AllowsDropUnsampled))
	s.mergesStats.Store(features.Stats)
	s.policy.Store(s.newPolicy(&features))
	return changed
}

// newPolicy returns rules for counting the spans of traces like an agent with the given features. It returns nil if
// the agent accepts no statistics, or has rules that only the agent can apply.
func (s *Server) newPolicy(features *receiver.Features) *rules.Policy {
	canCount := features.Stats && !features.FiltersByTags
	if !canCount {
		return nil
	}
	labels := s.config.Labels
	// An exemplar must be a sampled trace. An agent that does not allow dropping unsampled traces can still sample them.
	isSamplingFinal := features.AllowsDropUnsampled
	labels.TraceIDs = s.config.Exemplars != nil && isSamplingFinal
	policy, isValid := rules.NewPolicy(features.PeerTags, features.SpanKinds, features.IgnoreResources, labels)
	if !isValid {
		s.config.Log.Warn("the agent is configured with tags that only it can evaluate; it counts traces itself")
		return nil
	}
	return policy
}

// recordFailure counts and logs a request to which the agent has not responded.
func (s *Server) recordFailure(err error) {
	s.counters.failed.Add(1)
	s.Log.Write(slog.LevelWarn, "the agent did not respond to a tracer's request, so the tracer's connection is "+
		"closed",
		"error", err)
}

// respondLikeAgent returns a response that copies the agent's response unchanged. If err is not nil, it returns a
// response that closes the connection instead, because some tracers retry after a closed connection but not after
// status 502.
func (s *Server) respondLikeAgent(r *receiver.BufferedRequest, response *http.Response, err error) receiver.Response {
	if err != nil {
		if !r.IsCanceled() {
			s.recordFailure(err)
		}
		return receiver.CloseConnection
	}
	s.agentState.update(response.Header)
	return receiver.CopyResponse(response)
}

// Drain ends the server, including streamed requests.
func (s *Server) Drain(ctx context.Context) error {
	defer s.transport.CloseIdleConnections()
	return s.Server.Drain(ctx) //nolint:wrapcheck // it says what to do
}
