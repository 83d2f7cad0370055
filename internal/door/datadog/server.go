package datadog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/decode/clientstats"
	"github.com/spanstatsd/spanstatsd/internal/door"
	"github.com/spanstatsd/spanstatsd/internal/door/bodies"
	"github.com/spanstatsd/spanstatsd/internal/door/conns"
	"github.com/spanstatsd/spanstatsd/internal/door/http1"
	"github.com/spanstatsd/spanstatsd/internal/traces"
)

// Server is the agent's API towards tracers.
type Server struct {
	config     Config
	log        *door.RequestLog
	counters   counters
	limiter    *conns.Limiter
	bodies     bodies.Pool
	publishers *door.Publishers
	counted    *bodies.Counted
	counting   chan *traces.Counter
	policy     atomic.Pointer[traces.Policy]
	drops      atomic.Bool // traces that sampling threw away, once they are counted
	merges     atomic.Bool // the agent takes statistics
	merging    merging
	agentState atomic.Pointer[agentState]
	agents     http1.Upstreams // for requests that are held
	transport  *http.Transport // for those that stream
	proxy      *httputil.ReverseProxy
	plain      *http1.Server
	http       *http.Server
	listeners  conns.Listeners
	watching   context.Context
	unwatch    context.CancelFunc
	stopping   chan struct{} // nobody waits for the agent any more
	loops      sync.WaitGroup
}

// New opens what tracers connect to. Nothing is accepted before Start.
func New(config Config) (*Server, error) {
	if err := config.Check(); err != nil {
		return nil, err
	}
	s := &Server{
		config: config, log: door.NewRequestLog(config.Log), transport: newTransport(config.Agent.dial),
		limiter:    conns.NewLimiter(config.MaxConnections),
		bodies:     bodies.NewPool(config.MaxBody, config.MaxBodyBytes),
		publishers: door.NewPublishers(config.Admit, config.publishers()),
		merging:    merging{payload: &clientstats.Payload{}},
		stopping:   make(chan struct{}),
		counted:    bodies.NewCounted(),
		counting:   make(chan *traces.Counter, config.Counters),
	}
	for range cap(s.counting) {
		s.counting <- traces.NewCounter()
	}
	s.agents = http1.Upstreams{Dial: config.Agent.dial, Waits: http1.Waiting{MaxWait: config.Buffer, Stopping: s.stopping}}
	s.proxy = s.newProxy()
	s.plain = &http1.Server{
		Handler: s, Limiter: s.limiter, Bodies: &s.bodies, Counted: s.counted,
		Read: readTimeout, Write: writeTimeout, Between: betweenRequests,
	}
	s.http = &http.Server{
		Handler: http.HandlerFunc(s.serve), ReadHeaderTimeout: readTimeout, IdleTimeout: betweenRequests,
		MaxHeaderBytes: http1.MaxHeaderBytes, ConnContext: http1.ConnContext, ConnState: s.plain.Follow,
		ErrorLog: log.New(io.Discard, "", 0),
	}
	s.watching, s.unwatch = context.WithCancel(context.Background())
	s.listeners.Of = s.admitting()
	if err := s.listen(); err != nil {
		s.Abandon()
		return nil, err
	}
	return s, nil
}

func (s *Server) listen() error {
	if s.config.Socket.Path != "" {
		if err := s.listeners.OpenSocket(s.config.Socket); err != nil {
			return fmt.Errorf("listen for traces: %w", err)
		}
	}
	if s.config.Addr != "" {
		if err := s.listeners.OpenTCP(s.config.Addr, s.config.Given); err != nil {
			return fmt.Errorf("open traces: %w; choose another --apm-addr", err)
		}
	}
	return nil
}

// admitting says how connections are admitted.
func (s *Server) admitting() conns.Listener {
	return conns.Listener{Limiter: s.limiter, AllowUIDs: s.config.AllowUIDs, Wrap: s.plain.Wrap}
}

// Abandon gives the sockets back where nothing was started.
func (s *Server) Abandon() {
	s.unwatch()
	s.listeners.Release()
}

// betweenRequests is how long a tracer may take to send another request.
const betweenRequests = time.Minute

// formats are the endpoints that take traces.
var formats = map[string]traces.Format{
	"/v0.3/traces": traces.FormatV04, "/v0.4/traces": traces.FormatV04, "/v0.5/traces": traces.FormatV05,
	"/v0.7/traces": traces.FormatV07, "/v1.0/traces": traces.FormatV1,
}

// serve tells requests whose bodies are counted from everything else. Only a path that
// is an endpoint's to the letter is one: what becomes of others is the agent's to say.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	to := newResponseWriter(w)
	defer to.extendDeadline() // for the end of the answer, which net/http writes
	if c := http1.ConnOf(r.Context()); c != nil {
		if c.IsOver() {
			panic(http.ErrAbortHandler)
		}
		c.Begins()
		if j, ok := c.TakeBegun().(*job); ok {
			s.resume(j, to, r)
			return
		}
	}
	if r.ProtoMajor != 1 { // the beginning of another protocol, which the agent speaks neither
		w.Header().Set("Connection", "close")
		http.Error(w, "unsupported protocol version", http.StatusHTTPVersionNotSupported)
		return
	}
	keepNamedFields(r.Header)
	if format, ok := formats[r.URL.Path]; ok {
		s.serveTraces(format, to, r)
		return
	}
	if r.URL.Path == "/v0.6/stats" {
		s.serveStats(to, r)
		return
	}
	s.counters.other.Add(1)
	s.stream(to, r)
}

// expireEvery is how often publishers are looked through for those that nobody uses, and
// buffers that nobody uses are let go of.
const expireEvery = time.Minute

// Start accepts tracers.
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
				s.agents.Expire(now)
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
			s.config.Log.Error("listening for traces ended; tracers can't reach the agent through this daemon any more", "error", err)
		}
	})
}

// updatePolicy takes over what the agent wants.
func (s *Server) updatePolicy() <-chan struct{} {
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
	policy, ok := traces.NewPolicy(f.PeerTags, f.SpanKinds, f.IgnoreResources, labels)
	if !ok {
		s.config.Log.Warn("the agent asks for tags that only it can read; traces are left to it to count")
		policy = nil
	}
	s.policy.Store(policy)
	return changed
}

// Lack is why tracers can't find the socket, nil where they can or there is none.
func (s *Server) Lack() error { return s.listeners.Lack() }

// Addr is where traces are taken over TCP, "" where they are not.
func (s *Server) Addr() string { return s.listeners.Addr() }
