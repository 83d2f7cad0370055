package zipkin

import (
	"net/http"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/decode/zipkin"
	"github.com/spanstatsd/spanstatsd/internal/door"
	"github.com/spanstatsd/spanstatsd/internal/door/bodies"
	"github.com/spanstatsd/spanstatsd/internal/rules"
	"github.com/spanstatsd/spanstatsd/internal/rules/otel"
)

// Server is a Zipkin towards who reports spans.
type Server struct {
	*door.Server
	config  Config
	policy  *otel.Policy
	workers chan *worker // that count nothing just now
	onward  door.Onward
}

// worker is what the counting of one body needs.
type worker struct {
	decoder  zipkin.Decoder
	counter  *otel.Counter
	inflater bodies.Inflater
}

// How long a sender may take to send a header, a body, and another request, and to read its answer; and
// a destination to answer.
const (
	headerTimeout   = 5 * time.Second
	readTimeout     = 10 * time.Second
	betweenRequests = 2 * time.Minute
	writeTimeout    = 30 * time.Second
	patience        = 30 * time.Second
)

// The results of requests as far as counting goes.
const (
	resultCounted       = iota
	resultCountedBefore // its sender has no answer to it yet, and sends it again
	resultUnread        // it can't be read
	resultNoRoom        // a ring or an interval has no room, or the daemon stops
	resultTooMany       // it has more spans than the rings can ever hold
	resultTooLarge      // over --zipkin-max-body, as it comes or uncompressed
	resultBusy          // no buffer is free
	resultNotWanted     // no destination takes statistics
	resultIncomplete    // its sender did not send all of it
	resultRefused       // nothing that is taken here, by its path, method or header
	resultBug           // a defect of ours, contained
)

var resultNames = []string{
	"counted", "counted_before", "unread", "no_room", "too_many", "too_large", "busy", "not_wanted",
	"incomplete", "refused", "bug",
}

// New opens what senders connect to. Nothing is accepted before Start.
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
	s.Server, err = door.New(s, &config.Config, door.Setup{
		Flags: "zipkin", Brings: "Zipkin", Results: resultNames, IsLast: true,
		Ended:  "listening for Zipkin ended; its senders can't reach this daemon any more",
		Behind: config.Forward.Behind(patience),
		Header: headerTimeout, Read: readTimeout, Write: writeTimeout, Between: betweenRequests,
	}, rules.MaxBatches)
	return s, err //nolint:wrapcheck // it says what to do
}

// Serve is asked nothing: every request is opened or refused.
func (*Server) Serve(http.ResponseWriter, *http.Request) {}

// Learn has nothing to learn: OpenTelemetry's conventions ask nobody.
func (*Server) Learn() (changed <-chan struct{}) { return nil }

// Shown is what the outside sees. A nil server is that of a door that is off.
func (s *Server) Shown() door.Shown {
	if s == nil {
		s = &Server{}
	}
	return s.Server.Shown(resultNames, &s.onward)
}
