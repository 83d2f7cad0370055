package receiver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver/bodies"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver/conns"
)

// Setup is the part of a receiver's configuration that is not the operator's.
type Setup struct {
	Flags   string   // prefix of its flags: apm
	Brings  string   // name of the received data for errors and the log: traces
	Ended   string   // log message when listening ends unexpectedly
	Results []string // names of the results of requests
	IsLast  bool     // no agent counts what is not counted here
	// Classify looks at the method, path and header of a request. It returns the exchange of a request
	// whose body is to be buffered, or the response to one that is refused, or neither: then Stream serves
	// the request.
	Classify func(*BufferedRequest) (Exchange, Response)
	Stream   http.Handler // nil if Classify never leaves it a request
	// Learn takes over what the agent wants. It is called before the first request and each time the
	// returned channel is closed. Nil: there is nothing to learn.
	Learn    func() (changed <-chan struct{})
	Upstream Upstream          // that requests are forwarded to; zero: none
	HTTP2    *http.HTTP2Config // nil: HTTP/1.1 only
	// How long a sender may take to send a header, and a body, to read a piece of a response, and to send
	// its next request.
	Header, Read, Write, Between time.Duration
}

// Server serves the requests of one receiver.
type Server struct {
	Log      *RequestLog
	Bodies   bodies.Pool
	Walked   atomic.Uint64 // bytes that were parsed for counting
	config   Config
	setup    Setup
	results  []atomic.Uint64 // requests by result
	limiter  *conns.Limiter
	dialing  DialRetrier
	stopping chan struct{} // closed when Drain begins
	serving  atomic.Int64  // requests

	publishers *Publishers
	transport  *http.Transport // nil if there is no upstream
	http       *http.Server
	listeners  conns.Listeners
	loops      sync.WaitGroup
	ended      chan struct{} // closed when the loops must end
}

// New opens the listeners. Nothing is accepted before Start. One body may need so many publishers.
func New(config *Config, setup Setup, batches int) (*Server, error) {
	s := &Server{
		config: *config, setup: setup, Log: NewRequestLog(config.Log),
		results:    make([]atomic.Uint64, len(setup.Results)),
		limiter:    conns.NewLimiter(config.MaxConnections),
		Bodies:     bodies.NewPool(config.MaxBody, config.MaxBodyBytes),
		publishers: NewPublishers(config.Admit, config.Publishers(batches)),
		stopping:   make(chan struct{}),
		ended:      make(chan struct{}),
	}
	if setup.IsLast {
		s.publishers = NewLastPublishers(config.Admit, config.Publishers(batches))
	}
	s.dialing.MaxWait, s.dialing.Stopping = config.Buffer, s.stopping
	if s.setup.Upstream.Address != "" {
		s.transport = s.setup.Upstream.NewTransport(&s.dialing)
	}
	speaks := &http.Protocols{}
	speaks.SetHTTP1(true)
	speaks.SetUnencryptedHTTP2(setup.HTTP2 != nil)
	s.http = &http.Server{
		Handler: http.HandlerFunc(s.serve), Protocols: speaks, HTTP2: setup.HTTP2,
		ReadHeaderTimeout: setup.Header, IdleTimeout: setup.Between, MaxHeaderBytes: conns.MaxHeaderBytes,
		ConnContext: conns.ConnContext, ConnState: conns.ConnState, ErrorLog: log.New(io.Discard, "", 0),
	}
	s.listeners = conns.Listeners{
		Limiter: s.limiter, AllowUIDs: config.AllowUIDs, WriteTimeout: setup.Write, LimitsLines: true,
		Rejected: s.rejected,
	}
	if err := s.listen(); err != nil {
		s.Abandon()
		return nil, err
	}
	return s, nil
}

func (s *Server) listen() error {
	if s.config.Socket.Path != "" {
		if err := s.listeners.OpenSocket(s.config.Socket); err != nil {
			return fmt.Errorf("listen for %s: %w", s.setup.Brings, err)
		}
	}
	if s.config.Addr != "" {
		if err := s.listeners.OpenTCP(s.config.Addr, s.config.Given); err != nil {
			return fmt.Errorf("open %s: %w; choose another --%s-addr", s.setup.Brings, err, s.setup.Flags)
		}
	}
	return nil
}

// rejected logs a connection over the limit.
func (s *Server) rejected(process int32) {
	by := "nobody knows which, over TCP"
	if process != 0 {
		by = strconv.Itoa(int(process))
	}
	s.Log.Write(slog.LevelWarn, "a connection is refused, since there are as many as there may be, or "+
		"half of them are its process's; look who holds so many, or raise --"+
		s.setup.Flags+"-max-connections",
		"brings", s.setup.Brings, "connections", s.config.MaxConnections, "process", by)
}

// Abandon closes the listeners of a server that was not started.
func (s *Server) Abandon() { s.listeners.Close() }

// expireEvery is how often unused publishers and buffers are released.
const expireEvery = time.Minute

// Start accepts connections.
func (s *Server) Start() {
	learn := s.setup.Learn
	if learn == nil {
		learn = func() <-chan struct{} { return nil }
	}
	changed := learn()
	s.loops.Go(func() {
		expiring := time.NewTicker(expireEvery)
		defer expiring.Stop()
		for {
			select {
			case <-changed:
				changed = learn()
			case now := <-expiring.C:
				s.publishers.Expire(now)
				s.Bodies.DropSpares()
			case <-s.ended:
				return
			}
		}
	})
	if s.listeners.HasSocket() {
		s.loops.Go(func() { s.listeners.Watch(s.ended, s.config.Log) })
	}
	s.listeners.Serve(func(on net.Listener) {
		if err := s.http.Serve(on); !errors.Is(err, http.ErrServerClosed) && !s.IsStopping() {
			s.config.Log.Error(s.setup.Ended, "error", err)
		}
	})
	s.config.Log.Info("taking "+s.setup.Brings, "socket", s.config.Socket.Path, "addr", s.Addr())
}

// ServeOn accepts connections of another listener, until it ends.
func (s *Server) ServeOn(from net.Listener) error {
	return s.http.Serve(s.listeners.Limit(from)) //nolint:wrapcheck // net/http's own
}

// Lack returns why clients can't find the socket, nil if they can or there is none.
func (s *Server) Lack() error { return s.listeners.SocketErr() }

// Addr returns the TCP address, "" if there is none.
func (s *Server) Addr() string { return s.listeners.Addr() }

// IsStopping reports whether Drain has begun.
func (s *Server) IsStopping() bool {
	select {
	case <-s.stopping:
		return true
	default:
		return false
	}
}

// serve serves one request: it reads the body, has it counted, forwards it, and responds.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.serving.Add(1)
	defer s.serving.Add(-1)
	if c := conns.Of(r.Context()); c != nil && c.IsClosed() {
		panic(http.ErrAbortHandler)
	}
	if r.ProtoMajor != 1 && s.setup.HTTP2 == nil { // the preface of HTTP/2
		w.Header().Set("Connection", "close")
		http.Error(w, "unsupported protocol version", http.StatusHTTPVersionNotSupported)
		return
	}
	req := s.Buffered(r)
	defer req.Release()
	exchange, response := s.setup.Classify(req)
	if exchange == nil && response == nil {
		s.setup.Stream.ServeHTTP(w, r)
		return
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(s.setup.Read)) // tests have connections without deadlines
	if exchange == nil {
		s.respond(w, req, response)
		discardRest(control, r)
		return
	}
	err := req.read(control)
	if response = exchange.Count(err); response != nil {
		s.respond(w, req, response)
		if errors.Is(err, bodies.ErrNoRoom) && s.setup.Stream == nil { // otherwise it was streamed
			discardRest(control, r)
		}
		return
	}
	ctx := r.Context()
	if s.setup.Upstream.Patience > 0 {
		within, cancel := context.WithTimeout(ctx, s.setup.Upstream.Patience)
		defer cancel()
		ctx = within
	}
	out := exchange.Outbound()
	body := &outboundBody{prefix: out.Prefix, message: out.Message}
	defer body.Close()
	answer, err := s.forward(ctx, &out, body)
	if err == nil {
		defer answer.Body.Close()
	}
	s.respond(w, req, exchange.Translate(answer, err))
}

// read reads the body. If that fails, the deadline stays: net/http waits no longer for the rest.
func (r *BufferedRequest) read(control *http.ResponseController) (err error) {
	var ofSender *atomic.Int64
	if r.Conn != nil {
		ofSender = r.Conn.BodyBytes
	}
	r.Body, err = r.server.Bodies.Read(r.HTTP.Body, r.HTTP.ContentLength, ofSender)
	if err == nil {
		_ = control.SetReadDeadline(time.Time{})
	}
	return err //nolint:wrapcheck // the receiver looks at it
}

// respond ends a request.
func (s *Server) respond(w http.ResponseWriter, r *BufferedRequest, response Response) {
	s.Note(r.Result)
	r.ack()
	if s.IsStopping() && r.HTTP.ProtoMajor == 1 {
		w.Header().Set("Connection", "close")
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.setup.Write)) // of an HTTP/2 stream
	if response(w) != nil {
		panic(http.ErrAbortHandler) // a part of the response may be written
	}
}

// maxDiscard bounds the part of a refused body that is read all the same.
const maxDiscard = 64 << 20

// discardRest reads the rest of a refused body after its response, for as long as a body may take. Many
// senders read the response only when they have written the whole body, and would find their
// connection closed.
func discardRest(control *http.ResponseController, r *http.Request) {
	if r.ProtoMajor == 1 && r.Header.Get("Expect") == "" && control.Flush() == nil {
		_, _ = io.CopyN(io.Discard, r.Body, maxDiscard)
	}
}

// Contain runs a function that counts a body. It reports whether that has panicked; the request is
// answered all the same.
func (s *Server) Contain(count func()) (hasPanicked bool) {
	defer func() {
		if p := recover(); p != nil {
			s.Log.bug(p)
			hasPanicked = true
		}
	}()
	count()
	return false
}

// goAwayGrace is the time in which HTTP/2 clients read that their connection takes no more requests.
// drainPoll is how often a stopping server closes idle connections afterwards; net/http alone would
// wait for the clients to close them.
const (
	goAwayGrace = 250 * time.Millisecond
	drainPoll   = 10 * time.Millisecond
)

// Drain stops accepting and serves the requests that are in flight to their end, until the context
// ends; then it closes their connections, and their senders retry. Nothing is published afterwards.
func (s *Server) Drain(ctx context.Context) error {
	close(s.stopping)
	s.listeners.Stop(ctx)
	err := s.shutdown(ctx)
	if err != nil {
		err = fmt.Errorf("drain %s: %w; raise --shutdown-grace", s.setup.Brings, err)
		s.http.Close()
		s.limiter.CloseAll()
	}
	// net/http does not wait for handlers of HTTP/2 whose connection is gone.
	poll(ctx, func() bool { return s.serving.Load() == 0 })
	s.publishers.Close()
	close(s.ended)
	s.listeners.Wait()
	s.loops.Wait()
	if s.transport != nil {
		s.transport.CloseIdleConnections()
	}
	s.listeners.Close()
	return err
}

// shutdown returns when all connections are closed. It begins when new connections have sent their first
// request, for a moment at most: net/http drops requests that it has not read by then.
func (s *Server) shutdown(ctx context.Context) error {
	poll(ctx, func() bool { return !s.limiter.HasNew() })
	s.limiter.Drain()
	ended := make(chan error, 1)
	go func() { ended <- s.http.Shutdown(ctx) }()
	polling := time.NewTimer(goAwayGrace)
	defer polling.Stop()
	for {
		select {
		case err := <-ended:
			return err //nolint:wrapcheck // Drain does
		case <-polling.C:
			s.limiter.CloseIdle()
			polling.Reset(drainPoll)
		}
	}
}

// poll waits until a condition is true or the context ends.
func poll(ctx context.Context, is func() bool) {
	polling := time.NewTicker(time.Millisecond)
	defer polling.Stop()
	for !is() {
		select {
		case <-polling.C:
		case <-ctx.Done():
			return
		}
	}
}
