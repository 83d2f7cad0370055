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
	workers  chan *worker // idle workers
	forwards receiver.ForwardStats
}

// worker is the memory for counting one report. A report has exclusive use of its worker.
type worker struct {
	decoder      zipkin.Decoder
	counter      *otel.Counter
	decompressor bodies.Decompressor
}

// The timeouts of receiver.Setup. responseTimeout is the one for the upstream's response.
const (
	headerTimeout   = 5 * time.Second
	bodyTimeout     = 10 * time.Second
	writeTimeout    = 30 * time.Second
	idleTimeout     = 2 * time.Minute
	responseTimeout = 30 * time.Second
)

// The results of counting a report.
const (
	resultCounted       = iota
	resultCountedBefore // a retry
	resultUnread        // unparsable
	resultNoRoom        // a ring or an interval is full, or the daemon shuts down
	resultTooMany       // more spans than fit into empty rings
	resultTooLarge      // received or decompressed body exceeds --zipkin-max-body
	resultBusy          // bodies in memory have reached --zipkin-max-body-bytes
	resultNotWanted     // no destination accepts statistics
	resultIncomplete    // the sender sent only a part of the body
	resultRefused       // invalid path, method or header
	resultBug           // recovered panic
)

// resultNames are the values of the metric label "result", indexed by the results above.
var resultNames = []string{
	"counted", "duplicate", "unparsable", "no_room", "too_many", "too_large", "busy", "not_wanted",
	"incomplete", "refused", "bug",
}

// New returns a receiver with open listeners. Start starts accepting connections.
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
	setup := receiver.Setup{
		FlagPrefix: "zipkin", Data: "Zipkin", Results: resultNames,
		Classify: s.classify, Upstream: config.Forward.Upstream(responseTimeout),
		ReadHeaderTimeout: headerTimeout, BodyTimeout: bodyTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout,
	}
	var err error
	s.Server, err = receiver.New(&config.Config, setup, rules.MaxBatches)
	return s, err //nolint:wrapcheck // it says what to do
}

// Status returns the current status. A nil Server is a disabled receiver.
func (s *Server) Status() receiver.Status {
	if s == nil {
		s = &Server{}
	}
	return s.Server.Status(resultNames, &s.forwards)
}
