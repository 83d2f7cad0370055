package datadog

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httputil"
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
	counting chan *rules.Counter // idle counters
	// merging has the only Payload for tracers' statistics while it is idle. One is enough, since a process sends
	// statistics only every ten seconds.
	merging    chan *clientstats.Payload
	policy     atomic.Pointer[rules.Policy] // nil while the traces are left to the agent to count
	drops      atomic.Bool                  // whether unsampled traces are not forwarded
	merges     atomic.Bool                  // whether the agent accepts statistics
	agentState agentState
	transport  *http.Transport // for streamed requests
	proxy      *httputil.ReverseProxy
}

type counters struct {
	other  atomic.Uint64 // requests without traces or statistics
	failed atomic.Uint64 // requests without a response of the agent

	unsampledTraces, unsampledSpans, savedBytes atomic.Uint64 // unsampled traces that were not forwarded
}

// New opens the listeners. Connections are accepted after Start.
func New(config Config) (*Server, error) {
	if err := config.Check(); err != nil {
		return nil, err
	}
	s := &Server{
		config: config, counting: make(chan *rules.Counter, config.Counters),
		merging: make(chan *clientstats.Payload, 1),
	}
	s.merging <- &clientstats.Payload{}
	for range cap(s.counting) {
		s.counting <- rules.NewCounter()
	}
	s.transport = s.config.Agent.NewTransport(nil)
	s.proxy = s.newProxy()
	upstream := config.Agent
	upstream.ResponseTimeout = forwardTimeout
	var err error
	s.Server, err = receiver.New(&config.Config, receiver.Setup{
		FlagPrefix: flagPrefix, Data: data, Results: append(resultNames[:], statsResultNames[:]...),
		Classify: s.classify, Stream: http.HandlerFunc(s.serveOther), LoadFeatures: s.loadFeatures,
		Upstream: upstream, UpstreamCounts: true,
		ReadHeaderTimeout: readTimeout, BodyTimeout: readTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout,
	}, rules.MaxBaseServices)
	return s, err //nolint:wrapcheck // it says what to do
}

// formats has the trace endpoints, with the formats of their bodies.
var formats = map[string]decode.Format{
	"/v0.3/traces": decode.FormatV04, "/v0.4/traces": decode.FormatV04, "/v0.5/traces": decode.FormatV05,
	"/v0.7/traces": decode.FormatV07, "/v1.0/traces": decode.FormatV1,
}

// statsPath is the endpoint for statistics that tracers have computed.
const statsPath = "/v0.6/stats"

// classify returns an exchange for requests with traces or statistics, and nil for requests to stream (serveOther).
func (s *Server) classify(r *receiver.BufferedRequest) (receiver.Exchange, receiver.Response) {
	format, isTraces := formats[r.HTTP.URL.Path]
	switch {
	case isTraces && (r.HTTP.Method == http.MethodPut || r.HTTP.Method == http.MethodPost):
		t := &traceRequest{BufferedRequest: r, server: s, format: format, drops: s.drops.Load()}
		t.result, t.isUncounted = s.resultIfUncounted(format, r.Header())
		return t, nil
	case r.HTTP.URL.Path == statsPath && s.merges.Load():
		return &statsRequest{BufferedRequest: r, server: s}, nil
	}
	return nil, nil
}

// serveOther streams a request without an exchange to the agent, and counts its result.
func (s *Server) serveOther(w http.ResponseWriter, r *http.Request) {
	switch _, isTraces := formats[r.URL.Path]; {
	case isTraces:
		s.CountResult(int(ResultUnread))
	case r.URL.Path == statsPath:
		s.CountResult(results + int(StatsNotWanted))
	default:
		s.counters.other.Add(1)
	}
	s.stream(w, r)
}

// loadFeatures applies the agent's current features, and returns a channel that signals a change of them.
func (s *Server) loadFeatures() <-chan struct{} {
	f, changed := s.config.Features()
	s.drops.Store(s.config.DropUnsampled.drops(f.DropsP0s))
	s.merges.Store(f.Stats)
	if !f.Stats || f.FiltersTags {
		s.policy.Store(nil)
		return changed
	}
	labels := s.config.Labels
	// An agent that samples traces itself ignores their priorities, and does not have client_drop_p0s.
	labels.TraceIDs = s.config.Exemplars != nil && f.DropsP0s
	policy, isValid := rules.NewPolicy(f.PeerTags, f.SpanKinds, f.IgnoreResources, labels)
	if !isValid {
		s.config.Log.Warn("the agent is configured with tags that only it can evaluate; it counts traces itself")
		policy = nil
	}
	s.policy.Store(policy)
	return changed
}

// noteFailed counts and logs a request without a response of the agent.
func (s *Server) noteFailed(err error) {
	s.counters.failed.Add(1)
	s.Log.Write(slog.LevelWarn, "the agent did not respond to a tracer's request, so the tracer's connection is "+
		"closed",
		"error", err)
}

// translate returns the agent's response unchanged. Without a response it closes the tracer's connection, like an
// unreachable agent: some tracers retry after a closed connection, but not after a response with a status of 502.
func (s *Server) translate(r *receiver.BufferedRequest, response *http.Response, err error) receiver.Response {
	if err != nil {
		if !r.IsCanceled() {
			s.noteFailed(err)
		}
		return receiver.CloseConnection
	}
	s.agentState.note(response.Header)
	return receiver.CopyResponse(response)
}

// Drain ends the server, including streamed requests.
func (s *Server) Drain(ctx context.Context) error {
	defer s.transport.CloseIdleConnections()
	return s.Server.Drain(ctx) //nolint:wrapcheck // it says what to do
}
