package datadog

import (
	"context"
	"net/http"
	"net/http/httputil"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/decode/clientstats"
	decode "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	"github.com/spanstatsd/spanstatsd/internal/door"
	"github.com/spanstatsd/spanstatsd/internal/door/http1"
	rules "github.com/spanstatsd/spanstatsd/internal/rules/datadog"
)

// Server is the agent's API towards tracers.
type Server struct {
	*door.Server
	config     Config
	counters   counters
	counting   chan *rules.Counter
	policy     atomic.Pointer[rules.Policy]
	drops      atomic.Bool // traces that sampling threw away, once they are counted
	merges     atomic.Bool // the agent takes statistics
	merging    merging
	agentState atomic.Pointer[agentState]
	transport  *http.Transport // for requests that stream
	proxy      *httputil.ReverseProxy
}

const (
	// readTimeout is how long a tracer may take to send a body: the agent's own.
	readTimeout = 5 * time.Second
	// writeTimeout is how long a tracer may take to read a piece of an answer that does not
	// fit into its socket's buffer.
	writeTimeout = 30 * time.Second
	// betweenRequests is how long a tracer may take to send another request.
	betweenRequests = time.Minute
)

// New opens what tracers connect to. Nothing is accepted before Start.
func New(config Config) (*Server, error) {
	if err := config.Check(); err != nil {
		return nil, err
	}
	s := &Server{
		config: config, merging: merging{payload: &clientstats.Payload{}},
		counting: make(chan *rules.Counter, config.Counters),
	}
	for range cap(s.counting) {
		s.counting <- rules.NewCounter()
	}
	to := &config.Agent
	agent := door.Behind{Network: to.Network, Address: to.Address, Host: to.host(), Reach: to.dial}
	s.transport = newTransport(config.Agent.dial)
	s.proxy = s.newProxy(agent.Host)
	var err error
	s.Server, err = door.New(s, &config.Config, door.Setup{
		Flags: flags, Brings: brings, Results: append(resultNames[:], statsResultNames[:]...), Behind: agent,
		Ended:  "listening for traces ended; tracers can't reach the agent through this daemon any more",
		Header: readTimeout, Read: readTimeout, Write: writeTimeout, Between: betweenRequests,
	}, rules.MaxBatches)
	return s, err
}

// formats are the endpoints that take traces, statsPath takes statistics.
var formats = map[string]decode.Format{
	"/v0.3/traces": decode.FormatV04, "/v0.4/traces": decode.FormatV04, "/v0.5/traces": decode.FormatV05,
	"/v0.7/traces": decode.FormatV07, "/v1.0/traces": decode.FormatV1,
}

const statsPath = "/v0.6/stats"

// Open tells requests whose bodies are held from everything else. Only a path that
// is an endpoint's to the letter is one: what becomes of others is the agent's to say.
func (s *Server) Open(h *door.Held) (door.Request, *door.Reply) {
	format, is := formats[h.Path]
	switch {
	case is && (h.Method == http.MethodPut || h.Method == http.MethodPost):
		j := &job{Held: h, server: s, format: format, drops: s.drops.Load()}
		j.result, j.isDecided = s.leaves(format, &h.Fields)
		return j, nil
	case h.Path == statsPath && s.merges.Load():
		return &statistics{job{Held: h, server: s, isDecided: true}}, nil
	}
	return nil, nil
}

// Serve hands on everything else.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request) {
	switch _, is := formats[r.URL.Path]; {
	case is:
		s.Note(int(ResultUnread))
	case r.URL.Path == statsPath:
		s.Note(results + int(StatsNotWanted))
	default:
		s.counters.other.Add(1)
	}
	s.stream(w, r)
}

// Learn takes over what the agent wants.
func (s *Server) Learn() <-chan struct{} {
	f, changed := s.config.Features()
	s.drops.Store(s.config.DropUnsampled.drops(f))
	s.merges.Store(f.Stats)
	if !f.Stats || f.FiltersTags {
		s.policy.Store(nil)
		return changed
	}
	labels := s.config.Labels
	// An agent that chooses traces by a sampler of its own heeds no priority, and says so by that.
	labels.TraceIDs = s.config.Exemplars != nil && f.DropsP0s
	policy, ok := rules.NewPolicy(f.PeerTags, f.SpanKinds, f.IgnoreResources, labels)
	if !ok {
		s.config.Log.Warn("the agent asks for tags that only it can read; traces are left to it to count")
		policy = nil
	}
	s.policy.Store(policy)
	return changed
}

// Drain is the door's, and ends what streams.
func (s *Server) Drain(ctx context.Context) error {
	defer s.transport.CloseIdleConnections()
	return s.Server.Drain(ctx) //nolint:wrapcheck // it says what to do
}

// identifyIn says which container a request came from where its tracer does not:
// behind us the agent can't ask the kernel.
func identifyIn(c *http1.Conn, h header) {
	if c != nil && c.Container != "" && h.Get(headerContainer) == "" && h.Get(headerEntity) == "" {
		h.Set(headerContainer, c.Container)
	}
}
