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
	workers  chan *worker // that are free
	forwards receiver.ForwardStats
}

// worker holds the memory for counting one body.
type worker struct {
	decoder      zipkin.Decoder
	counter      *otel.Counter
	decompressor bodies.Decompressor
}

// How long a sender may take to send a header, a body, and another request, and to read a response; and the
// upstream to answer.
const (
	headerTimeout   = 5 * time.Second
	readTimeout     = 10 * time.Second
	betweenRequests = 2 * time.Minute
	writeTimeout    = 30 * time.Second
	patience        = 30 * time.Second
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
		Flags: "zipkin", Brings: "Zipkin", Results: resultNames, IsLast: true,
		Ended:    "listening for Zipkin ended; its senders can't reach this daemon any more",
		Classify: s.classify, Upstream: config.Forward.Upstream(patience),
		Header: headerTimeout, Read: readTimeout, Write: writeTimeout, Between: betweenRequests,
	}, rules.MaxBatches)
	return s, err //nolint:wrapcheck // it says what to do
}

// Shown returns the status. A nil server is off.
func (s *Server) Shown() receiver.Shown {
	if s == nil {
		s = &Server{}
	}
	return s.Server.Shown(resultNames, &s.forwards)
}
