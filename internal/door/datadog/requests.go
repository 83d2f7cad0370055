package datadog

import (
	"context"
	"net/http"

	"github.com/spanstatsd/spanstatsd/internal/decode/clientstats"
	decode "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	"github.com/spanstatsd/spanstatsd/internal/door"
	rules "github.com/spanstatsd/spanstatsd/internal/rules/datadog"
)

// New opens what tracers connect to. Nothing is accepted before Start.
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
	s.transport = newTransport(&s.config.Agent)
	s.proxy = s.newProxy(config.Agent.Host())
	var err error
	s.Server, err = door.New(s, &config.Config, door.Setup{
		Flags: flags, Brings: brings, Results: append(resultNames[:], statsResultNames[:]...),
		Behind: config.Agent,
		Ended:  "listening for traces ended; tracers can't reach the agent through this daemon any more",
		Header: readTimeout, Read: readTimeout, Write: writeTimeout, Between: betweenRequests,
	}, rules.MaxBaseServices)
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
		j.result, j.isDecided = s.leaves(format, h.Fields)
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

// Drain is the door's, and ends what streams.
func (s *Server) Drain(ctx context.Context) error {
	defer s.transport.CloseIdleConnections()
	return s.Server.Drain(ctx) //nolint:wrapcheck // it says what to do
}
