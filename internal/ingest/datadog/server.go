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
	counting chan *rules.Counter
	// merging holds the one Payload for tracers' statistics. A process sends them every ten seconds, so
	// requests may wait for each other.
	merging    chan *clientstats.Payload
	policy     atomic.Pointer[rules.Policy] // nil: the agent counts
	drops      atomic.Bool                  // unsampled traces are not forwarded
	merges     atomic.Bool                  // the agent accepts statistics
	agentState agentState
	transport  *http.Transport // for streamed requests
	proxy      *httputil.ReverseProxy
}

type counters struct {
	other  atomic.Uint64 // requests without traces or statistics
	failed atomic.Uint64 // requests that the agent did not answer

	unsampledTraces, unsampledSpans, savedBytes atomic.Uint64 // not forwarded
}

// New opens the listeners. Nothing is accepted before Start.
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

// formats are the endpoints for traces, statsPath is the one for statistics.
var formats = map[string]decode.Format{
	"/v0.3/traces": decode.FormatV04, "/v0.4/traces": decode.FormatV04, "/v0.5/traces": decode.FormatV05,
	"/v0.7/traces": decode.FormatV07, "/v1.0/traces": decode.FormatV1,
}

const statsPath = "/v0.6/stats"

// classify returns an exchange for requests to the endpoints above, and leaves all others to serveOther.
func (s *Server) classify(r *receiver.BufferedRequest) (receiver.Exchange, receiver.Response) {
	format, isTraces := formats[r.HTTP.URL.Path]
	switch {
	case isTraces && (r.HTTP.Method == http.MethodPut || r.HTTP.Method == http.MethodPost):
		t := &traceRequest{BufferedRequest: r, server: s, format: format, drops: s.drops.Load()}
		t.result, t.isUncounted = s.isLeftToAgent(format, r.Header())
		return t, nil
	case r.HTTP.URL.Path == statsPath && s.merges.Load():
		return &statsRequest{BufferedRequest: r, server: s}, nil
	}
	return nil, nil
}

// serveOther streams all other requests to the agent.
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

// loadFeatures applies the agent's features.
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
	policy, ok := rules.NewPolicy(f.PeerTags, f.SpanKinds, f.IgnoreResources, labels)
	if !ok {
		s.config.Log.Warn("the agent asks for tags that only it can read; traces are left to it to count")
		policy = nil // the agent counts
	}
	s.policy.Store(policy)
	return changed
}

// noteFailed counts a request that the agent did not answer.
func (s *Server) noteFailed(err error) {
	s.counters.failed.Add(1)
	s.Log.Write(slog.LevelWarn, "the agent did not answer a tracer's request, whose connection is closed",
		"error", err)
}

// translate returns the agent's response unchanged. Without one it closes the tracer's connection, as an
// unreachable agent would: some tracers retry after that, but not after a response, not even a 502.
func (s *Server) translate(r *receiver.BufferedRequest, from *http.Response, err error) receiver.Response {
	if err != nil {
		if !r.IsCanceled() {
			s.noteFailed(err)
		}
		return receiver.CloseConnection
	}
	s.agentState.note(from.Header)
	return receiver.CopyResponse(from)
}

// Drain ends the server, including streamed requests.
func (s *Server) Drain(ctx context.Context) error {
	defer s.transport.CloseIdleConnections()
	return s.Server.Drain(ctx) //nolint:wrapcheck // it says what to do
}
