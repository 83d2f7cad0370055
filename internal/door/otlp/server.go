package otlp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/door"
	"github.com/spanstatsd/spanstatsd/internal/door/bodies"
	"github.com/spanstatsd/spanstatsd/internal/door/conns"
	"github.com/spanstatsd/spanstatsd/internal/door/http1"
	"github.com/spanstatsd/spanstatsd/internal/traces"
)

// Server is a collector towards SDKs.
type Server struct {
	config     Config
	log        *door.RequestLog
	counters   counters
	limiter    *conns.Limiter
	bodies     bodies.Pool
	publishers *door.Publishers
	counted    *bodies.Counted
	counting   chan *worker
	forward    *forwarder // nil where traces end here
	kept       keeping
	plain      *http1.Server
	http       *http.Server
	serving    atomic.Int64 // requests
	listeners  conns.Listeners
	watching   context.Context
	unwatch    context.CancelFunc
	stopping   chan struct{} // the daemon has begun to stop
	loops      sync.WaitGroup

	agentPolicy atomic.Pointer[traces.Policy] // of ReadingDatadog; nil while it is left to the agent
}

// worker is what the counting of one body needs.
type worker struct {
	reader   reader
	inflater inflater
	packer   packer
}

// New opens what SDKs connect to. Nothing is accepted before Start.
func New(config Config) (*Server, error) {
	if err := config.Check(); err != nil {
		return nil, err
	}
	s := &Server{
		config: config, log: door.NewRequestLog(config.Log),
		limiter:    conns.NewLimiter(config.MaxConnections),
		bodies:     bodies.NewPool(config.MaxBody, config.MaxBodyBytes),
		publishers: door.NewLastPublishers(config.Admit, config.publishers()),
		counted:    bodies.NewCounted(),
		counting:   make(chan *worker, config.Counters),
		stopping:   make(chan struct{}),
	}
	for range cap(s.counting) {
		s.counting <- &worker{reader: s.newReader()}
	}
	if config.Forward.IsSet() {
		s.forward = newForwarder(&s.config, s.log, s.stopping)
	}
	s.plain = &http1.Server{
		Handler: s, Limiter: s.limiter, Bodies: &s.bodies, Counted: s.counted, HTTP2: true,
		Read: config.readTimeout, Write: writeTimeout, Between: betweenRequests,
	}
	s.http = s.newHTTP()
	s.watching, s.unwatch = context.WithCancel(context.Background())
	s.listeners.Of = conns.Listener{Limiter: s.limiter, AllowUIDs: s.config.AllowUIDs, Wrap: s.plain.Wrap}
	if err := s.listen(); err != nil {
		s.Abandon()
		return nil, err
	}
	return s, nil
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

// newHTTP serves both versions without TLS.
func (s *Server) newHTTP() *http.Server {
	speaks := &http.Protocols{}
	speaks.SetHTTP1(true)
	speaks.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler: http.HandlerFunc(s.serve), Protocols: speaks,
		ReadHeaderTimeout: s.config.headerTimeout, IdleTimeout: betweenRequests, MaxHeaderBytes: http1.MaxHeaderBytes,
		ConnContext: http1.ConnContext, ConnState: s.plain.Follow, ErrorLog: log.New(io.Discard, "", 0),
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: s.config.MaxStreams, MaxReadFrameSize: frameBytes,
			MaxReceiveBufferPerConnection: s.config.windowBytes(), MaxReceiveBufferPerStream: s.config.windowBytes(),
			SendPingTimeout: silence, WriteByteTimeout: writeTimeout,
		},
	}
}

func (s *Server) listen() error {
	if s.config.Socket.Path != "" {
		if err := s.listeners.OpenSocket(s.config.Socket); err != nil {
			return fmt.Errorf("listen for OTLP: %w", err)
		}
	}
	if s.config.Addr != "" {
		if err := s.listeners.OpenTCP(s.config.Addr, s.config.Given); err != nil {
			return fmt.Errorf("open OTLP: %w; choose another --otlp-addr", err)
		}
	}
	return nil
}

// Abandon gives the sockets back where nothing was started.
func (s *Server) Abandon() {
	s.unwatch()
	s.listeners.Release()
}

// expireEvery is how often publishers are looked through for those that nobody uses, and
// buffers that nobody uses are let go of.
const expireEvery = time.Minute

// Start accepts SDKs.
func (s *Server) Start() {
	changed := s.updatePolicy()
	s.loops.Go(func() {
		expiring := time.NewTicker(expireEvery)
		defer expiring.Stop()
		for {
			select {
			case <-changed:
				changed = s.updatePolicy()
			case now := <-expiring.C:
				s.publishers.Expire(now)
				s.bodies.DropSpares()
				if s.forward != nil && s.forward.upstreams != nil {
					s.forward.upstreams.Expire(now)
				}
			case <-s.watching.Done():
				return
			}
		}
	})
	if s.listeners.HasSocket() {
		s.loops.Go(func() { s.listeners.Watch(s.watching.Done(), s.config.Log) })
	}
	s.listeners.Serve(func(on net.Listener) {
		if err := s.http.Serve(on); !errors.Is(err, http.ErrServerClosed) && !s.IsStopping() {
			s.config.Log.Error("listening for OTLP ended; SDKs can't reach this daemon any more", "error", err)
		}
	})
}

// Lack is why SDKs can't find the socket, nil where they can or there is none.
func (s *Server) Lack() error { return s.listeners.Lack() }

// Addr is where OTLP is taken over TCP, "" where it is not.
func (s *Server) Addr() string { return s.listeners.Addr() }

// IsStopping says whether the daemon has begun to stop.
func (s *Server) IsStopping() bool {
	select {
	case <-s.stopping:
		return true
	default:
		return false
	}
}
