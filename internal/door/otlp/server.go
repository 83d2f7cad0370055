package otlp

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/door"
	"github.com/spanstatsd/spanstatsd/internal/door/bodies"
	agent "github.com/spanstatsd/spanstatsd/internal/rules/datadog"
	"github.com/spanstatsd/spanstatsd/internal/sampling"
)

// Server is a collector towards SDKs.
type Server struct {
	*door.Server
	config   Config
	counting chan *worker
	outcomes [outcomes]atomic.Uint64
	kept     keeping
	// agentPolicy is of ReadingDatadog; nil while it is left to the agent.
	agentPolicy atomic.Pointer[agent.Policy]
}

// worker is what the counting of one body needs.
type worker struct {
	reader   reader
	sample   sampling.Sample
	inflater bodies.Inflater
	packer   packer
}

// release lets go of the last body.
func (w *worker) release() {
	w.reader.release()
	w.sample.Release()
}

const (
	// betweenRequests is how long an SDK may take to send another request: most export every
	// five seconds, metrics every minute.
	betweenRequests = 2 * time.Minute
	// silence is after which an SDK that speaks HTTP/2 is asked whether it is there, and
	// writeTimeout how long it may take to read a piece of an answer.
	silence      = 30 * time.Second
	writeTimeout = 30 * time.Second
	// frameBytes is the longest piece that net/http takes: the least there is, and all that
	// gRPC for Go sends.
	frameBytes = 16 << 10
)

// New opens what SDKs connect to. Nothing is accepted before Start.
func New(config Config) (*Server, error) {
	if err := config.Check(); err != nil {
		return nil, err
	}
	s := &Server{config: config, counting: make(chan *worker, config.Counters)}
	for range cap(s.counting) {
		s.counting <- &worker{reader: s.newReader()}
	}
	var err error
	s.Server, err = door.New(s, &config.Config, door.Setup{
		Flags: flags, Brings: brings, Results: resultNames[:], IsLast: true, Behind: config.behind(),
		Ended:  "listening for OTLP ended; SDKs can't reach this daemon any more",
		Header: config.headerTimeout, Read: config.readTimeout, Write: writeTimeout, Between: betweenRequests,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: config.MaxStreams, MaxReadFrameSize: frameBytes,
			MaxReceiveBufferPerConnection: config.windowBytes(),
			MaxReceiveBufferPerStream:     config.windowBytes(), SendPingTimeout: silence,
			WriteByteTimeout: writeTimeout,
		},
	}, maxBatches)
	return s, err
}

// Open makes a call of a request, or refuses it.
func (s *Server) Open(h *door.Held) (door.Request, *door.Reply) {
	c, no := open(head{
		method: h.Method, path: h.Path, contentType: h.Fields.Get("Content-Type"),
		contentEncoding: h.Fields.Get("Content-Encoding"), grpcEncoding: h.Fields.Get(headerGRPCEncoding),
		isHTTP2: h.IsHTTP2(),
	})
	c.Held, c.server = h, s
	if no == nil && c.signal != signalTraces && !s.config.Forward.IsSet() {
		no = notServed(c.signal)
	}
	if no != nil {
		h.Result = int(no.result)
		return nil, c.say(no.reply)
	}
	return c, nil
}

// Serve is asked nothing: every request is opened or refused.
func (*Server) Serve(http.ResponseWriter, *http.Request) {}
