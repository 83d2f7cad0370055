package otlp

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/door"
	"github.com/spanstatsd/spanstatsd/internal/door/destination"
	"github.com/spanstatsd/spanstatsd/internal/rules"
	agent "github.com/spanstatsd/spanstatsd/internal/rules/datadog"
	"github.com/spanstatsd/spanstatsd/internal/rules/otel"
	"github.com/spanstatsd/spanstatsd/internal/rules/translate"
	"github.com/spanstatsd/spanstatsd/internal/sdkmetrics"
)

// Server is a collector towards SDKs.
type Server struct {
	*door.Server
	config Config
	turns  turns
	policy *otel.Policy // of ReadingOTel
	onward door.Onward
	kept   keeping
	said   *sdkmetrics.Listener
	// agentPolicy is of ReadingDatadog; nil while it is left to the agent.
	agentPolicy atomic.Pointer[agent.Policy]
}

// keeping counts what went on and what did not.
type keeping struct {
	keptTraces, keptSpans, goneTraces, goneSpans, savedBytes atomic.Uint64
}

const (
	// betweenRequests is how long an SDK may take to send another request: most export every
	// five seconds, metrics every minute.
	betweenRequests = 2 * time.Minute
	// frameBytes is the longest piece that net/http takes: the least there is, and all that
	// gRPC for Go sends.
	frameBytes = 16 << 10
)

// New opens what SDKs connect to. Nothing is accepted before Start.
func New(config Config) (*Server, error) {
	if err := config.Check(); err != nil {
		return nil, err
	}
	s := &Server{
		config: config, policy: otel.NewPolicy(config.Labels), said: sdkmetrics.NewListener(),
	}
	for range config.Counters {
		s.turns.give(&worker{reader: s.newReader()})
	}
	var err error
	s.Server, err = door.New(s, &config.Config, door.Setup{
		Flags: "otlp", Brings: "OTLP", Results: resultNames[:], IsLast: true,
		Behind: config.Forward.Behind(config.forwardTimeout),
		Ended:  "listening for OTLP ended; SDKs can't reach this daemon any more",
		Header: config.headerTimeout, Read: config.readTimeout, Write: destination.WriteTimeout,
		Between: betweenRequests,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: config.MaxStreams, MaxReadFrameSize: frameBytes,
			MaxReceiveBufferPerConnection: config.windowBytes(),
			MaxReceiveBufferPerStream:     config.windowBytes(), SendPingTimeout: destination.Silence,
			WriteByteTimeout: destination.WriteTimeout,
		},
	}, rules.MaxBatches)
	return s, err
}

// newReader makes one of the reading that is asked for.
func (s *Server) newReader() reader {
	if s.config.Reading == ReadingDatadog {
		return newIngest(&s.agentPolicy)
	}
	return newConventions(s.policy)
}

// Serve is asked nothing: every request is opened or refused.
func (*Server) Serve(http.ResponseWriter, *http.Request) {}

// Learn takes over what the agent wants, in the reading that asks it.
func (s *Server) Learn() (changed <-chan struct{}) {
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

// Stats is what the outside sees.
type Stats struct {
	door.Shown
	// What --otlp-keep had go on and what not, and the bytes that it saved.
	KeptTraces, KeptSpans, GoneTraces, GoneSpans, SavedBytes uint64
}

// Stats reads the counters without disturbing those who write them. A nil server, of a
// daemon that does not listen for OTLP, has counted nothing.
func (s *Server) Stats() (stats Stats) {
	if s == nil {
		s = &Server{}
	}
	stats.Shown = s.Server.Shown(resultNames[:], &s.onward)
	k := &s.kept
	stats.KeptTraces, stats.KeptSpans = k.keptTraces.Load(), k.keptSpans.Load()
	stats.GoneTraces, stats.GoneSpans, stats.SavedBytes = k.goneTraces.Load(), k.goneSpans.Load(),
		k.savedBytes.Load()
	return stats
}

// Said is what SDKs say of their own spans, and whether any does.
func (s *Server) Said() (sums sdkmetrics.Sums, heard bool) {
	if s == nil {
		return sums, false
	}
	return s.said.Sums()
}

// Shown is what it has in common with other doors.
func (s *Server) Shown() door.Shown { return s.Stats().Shown }
