package apm

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/clientstats"
	"github.com/spanstatsd/spanstatsd/internal/socket"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/traces"
)

// Agent is where the real agent listens, in the form that a dialler takes.
type Agent struct{ Network, Address string }

// Features is what the agent wants counted.
type Features struct {
	Stats           bool
	PeerTags        []string
	SpanKinds       []string
	IgnoreResources []string
	FiltersTags     bool // it leaves out traces by their roots' tags
	DropsP0s        bool // it needs no traces that sampling threw away
}

// Config is what this room may use.
type Config struct {
	Socket    socket.Config // an empty path: none
	Addr      string        // empty: none
	AllowUIDs []uint32
	// MaxConnections is how many tracers may be connected at a time.
	MaxConnections int
	MaxBody        int // bytes of a body that is counted
	MaxBodyBytes   int // of all bodies at a time
	MaxOrigins     int // that an interval has room for, and that are remembered
	Counters       int // bodies counted at a time
	// DropUnsampled keeps traces that sampling threw away from the agent, once they
	// are counted.
	DropUnsampled bool
	// Buffer is how long a request with traces waits for an agent that is away.
	Buffer time.Duration
	Agent  Agent
	Admit  *admit.Publishers
	// Features returns what the agent wants and a channel that is closed when
	// that changes.
	Features func() (Features, <-chan struct{})
	Log      *slog.Logger
}

// DefaultConfig is the defaults of the command line: off. The agent itself takes
// bodies of 25 MiB.
func DefaultConfig() Config {
	return Config{
		MaxConnections: 512, MaxBody: 25 << 20, MaxBodyBytes: 64 << 20,
		MaxOrigins: maxPublishers, Counters: min(maxCounters, runtime.GOMAXPROCS(0)),
	}
}

// maxCounters is more than a program is fed with that counts millions of spans a second
// with each.
const maxCounters = 8

// maxBuffer is far beyond what any tracer waits for an answer.
const maxBuffer = time.Minute

// Enabled says whether there is anything to listen on.
func (c *Config) Enabled() bool { return c.Socket.Path != "" || c.Addr != "" }

// Check says what is unusable.
func (c *Config) Check() error {
	switch {
	case c.MaxConnections < 1 || c.MaxConnections > 1<<20:
		return fmt.Errorf("check apm-max-connections: %d is not between 1 and %d", c.MaxConnections, 1<<20)
	case c.Counters < 1 || c.Counters > 1<<10:
		return fmt.Errorf("check apm-counters: %d is not between 1 and %d", c.Counters, 1<<10)
	case c.MaxBody < firstBuffer || c.MaxBody > 1<<30:
		return fmt.Errorf("check apm-max-body: %d is not between %d and %d", c.MaxBody, firstBuffer, 1<<30)
	case c.MaxBodyBytes < c.MaxBody:
		return fmt.Errorf("check apm-max-body-bytes: %d is less than the %d of one body", c.MaxBodyBytes, c.MaxBody)
	case c.Buffer < 0 || c.Buffer > maxBuffer:
		return fmt.Errorf("check apm-buffer: %s is not between 0 and %s", c.Buffer, maxBuffer)
	case c.Agent.Network == "unix" && c.Agent.Address == c.Socket.Path:
		return fmt.Errorf("check apm-socket: %s is the agent's own socket; choose another one", c.Socket.Path)
	}
	return nil
}

// Server is the agent's API towards tracers.
type Server struct {
	config     Config
	log        *requestLog
	counters   counters
	crowd      crowd
	bodies     bodies
	publishers publishers
	refusals   refusals
	counting   chan *traces.Counter
	policy     atomic.Pointer[traces.Policy]
	dropsP0s   atomic.Bool
	merges     atomic.Bool // the agent takes statistics
	merging    merging
	said       atomic.Pointer[agentSaid]
	transport  *http.Transport
	patience   *patience
	proxy      *httputil.ReverseProxy
	http       *http.Server
	listeners  []net.Listener
	release    []func() error
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
		config: config, log: newRequestLog(config.Log), transport: newTransport(config.Agent),
		crowd:      crowd{most: config.MaxConnections, allow: config.AllowUIDs, inside: map[*guest]struct{}{}},
		bodies:     bodies{most: int64(config.MaxBody), room: int64(config.MaxBodyBytes)},
		publishers: publishers{admit: config.Admit, most: config.publishers(), known: map[span.Origin]*publisher{}},
		merging:    merging{payload: &clientstats.Payload{}},
		stopping:   make(chan struct{}),
		refusals:   refusals{seed: maphash.MakeSeed()},
		counting:   make(chan *traces.Counter, config.Counters),
	}
	for range cap(s.counting) {
		s.counting <- traces.NewCounter()
	}
	s.patience = &patience{transport: s.transport, most: config.Buffer, stopping: s.stopping}
	s.proxy = s.newProxy()
	s.http = &http.Server{
		Handler: http.HandlerFunc(s.serve), ReadHeaderTimeout: readTimeout, IdleTimeout: time.Minute,
		MaxHeaderBytes: maxHeaderBytes, ConnContext: connContext, ConnState: s.crowd.changed,
		ErrorLog: log.New(nowhere{}, "", 0),
	}
	s.watching, s.unwatch = context.WithCancel(context.Background())
	if err := s.listen(); err != nil {
		s.Abandon()
		return nil, err
	}
	return s, nil
}

func (s *Server) listen() error {
	if s.config.Socket.Path != "" {
		listener, err := socket.Listen(s.config.Socket)
		if err != nil {
			return fmt.Errorf("listen for traces: %w", err)
		}
		s.listeners = append(s.listeners, &entrance{listener.UnixListener, &s.crowd})
		s.release = append(s.release, listener.Close)
	}
	if s.config.Addr != "" {
		listener, err := net.Listen("tcp", s.config.Addr)
		if err != nil {
			return fmt.Errorf("listen for traces: %w; choose another --apm-addr", err)
		}
		s.listeners = append(s.listeners, &entrance{listener, &s.crowd})
		s.release = append(s.release, listener.Close)
	}
	return nil
}

// Abandon gives the sockets back where nothing was started.
func (s *Server) Abandon() {
	s.unwatch()
	for _, release := range s.release {
		_ = release() // closed already, or of a process that ends
	}
}

// formats are the endpoints that take traces.
var formats = map[string]traces.Format{
	"/v0.3/traces": traces.FormatV04, "/v0.4/traces": traces.FormatV04, "/v0.5/traces": traces.FormatV05,
	"/v0.7/traces": traces.FormatV07, "/v1.0/traces": traces.FormatV1,
}

// serve tells requests whose bodies are counted from everything else. Only a path that
// is an endpoint's to the letter is one: what becomes of others is the agent's to say.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if g, ok := r.Context().Value(guestKey{}).(*guest); ok {
		g.header.read.Store(true) // also where it came together with the request before
	}
	if r.ProtoMajor != 1 { // the beginning of another protocol, which the agent speaks neither
		w.Header().Set("Connection", "close")
		http.Error(w, "unsupported protocol version", http.StatusHTTPVersionNotSupported)
		return
	}
	keepNamed(r.Header)
	to := newAnswer(w)
	defer to.soon() // for its end, which comes after us
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

// ageEvery is how often origins are looked through for those that nobody uses.
const ageEvery = time.Minute

// Start accepts tracers.
func (s *Server) Start() {
	changed := s.learn()
	s.loops.Go(func() {
		aging := time.NewTicker(ageEvery)
		defer aging.Stop()
		for {
			select {
			case <-changed:
				changed = s.learn()
			case now := <-aging.C:
				s.publishers.age(now)
			case <-s.watching.Done():
				return
			}
		}
	})
	for _, listener := range s.listeners {
		s.loops.Go(func() {
			if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
				s.config.Log.Error("listening for traces ended; tracers can't reach the agent through this daemon any more", "error", err)
			}
		})
	}
}

// learn takes over what the agent wants.
func (s *Server) learn() <-chan struct{} {
	f, changed := s.config.Features()
	s.dropsP0s.Store(f.DropsP0s)
	s.merges.Store(f.Stats)
	if !f.Stats || f.FiltersTags {
		s.policy.Store(nil)
		return changed
	}
	policy, ok := traces.NewPolicy(f.PeerTags, f.SpanKinds, f.IgnoreResources)
	if !ok {
		s.config.Log.Warn("the agent asks for tags that only it can read; traces are left to it to count")
		policy = nil
	}
	s.policy.Store(policy)
	return changed
}

// Drain stops accepting and lets the requests that are here come to their end,
// until the context ends; what is left is cut off then, and its tracers try again.
// Nothing is published after it.
func (s *Server) Drain(ctx context.Context) error {
	close(s.stopping)
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = fmt.Errorf("drain traces: %w; raise --shutdown-grace", err)
		s.http.Close()
	}
	s.publishers.close()
	s.unwatch()
	s.loops.Wait()
	s.transport.CloseIdleConnections()
	for _, release := range s.release {
		_ = release() // the listener is closed already; what is left is its lock
	}
	return err
}

// Addr is where traces are taken over TCP, "" where they are not.
func (s *Server) Addr() string {
	if s.config.Addr == "" {
		return ""
	}
	return s.listeners[len(s.listeners)-1].Addr().String()
}

// connContext says whose requests a connection brings.
func connContext(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, guestKey{}, conn)
}
