package zipkin

import (
	"time"

	"github.com/spanstatsd/spanstatsd/internal/decode/zipkin"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver/bodies"
	"github.com/spanstatsd/spanstatsd/internal/rules"
	"github.com/spanstatsd/spanstatsd/internal/rules/otel"
)

// Server is the receiver of Zipkin's API.
type Server struct {
	*receiver.Server
	config   Config
	policy   *otel.Policy
	workers  chan *worker // free ones
	forwards receiver.ForwardStats
}

// worker holds the memory for counting one body.
type worker struct {
	decoder      zipkin.Decoder
	counter      *otel.Counter
	decompressor bodies.Decompressor
}

// The timeouts of receiver.Setup, and the one for the upstream's response.
const (
	headerTimeout   = 5 * time.Second
	bodyTimeout     = 10 * time.Second
	writeTimeout    = 30 * time.Second
	idleTimeout     = 2 * time.Minute
	responseTimeout = 30 * time.Second
)

// The results of counting a request.
const (
	resultCounted       = iota
	resultCountedBefore // a retry
	resultUnread        // it can't be parsed
	resultNoRoom        // a ring or an interval has no room, or the daemon stops
	resultTooMany       // it has more spans than the rings can ever hold
	resultTooLarge      // over --zipkin-max-body, as it comes or decompressed
	resultBusy          // no memory is free
	resultNotWanted     // no destination takes statistics
	resultIncomplete    // its sender did not send all of it
	resultRefused       // by its path, method or header
	resultBug           // an internal error, contained
)

var resultNames = []string{
	"counted", "counted_before", "unread", "no_room", "too_many", "too_large", "busy", "not_wanted",
	"incomplete", "refused", "bug",
}

// New opens the listeners. Nothing is accepted before Start.
func New(config Config) (*Server, error) {
	if err := config.Check(); err != nil {
		return nil, err
	}
	s := &Server{
		config: config, policy: otel.NewPolicy(config.Labels),
		workers: make(chan *worker, config.Counters),
	}
	for range config.Counters {
		s.workers <- &worker{counter: otel.NewCounter()}
	}
	var err error
	s.Server, err = receiver.New(&config.Config, receiver.Setup{
		FlagPrefix: "zipkin", Data: "Zipkin", Results: resultNames,
		Classify: s.classify, Upstream: config.Forward.Upstream(responseTimeout),
		ReadHeaderTimeout: headerTimeout, BodyTimeout: bodyTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout,
	}, rules.MaxBatches)
	return s, err //nolint:wrapcheck // it says what to do
}

// Status returns the status. A nil server is off.
func (s *Server) Status() receiver.Status {
	if s == nil {
		s = &Server{}
	}
	return s.Server.Status(resultNames, &s.forwards)
}
