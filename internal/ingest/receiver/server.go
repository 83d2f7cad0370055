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

// Setup is the part of a receiver's configuration that its package sets, not the operator.
type Setup struct {
	FlagPrefix string   // first word of its flags: apm
	Data       string   // name of the received data for errors and the log: traces
	Results    []string // names of the results of requests
	// Classify looks at the method, path and header of a request. If the body is to be buffered, it returns
	// an exchange; if the request is refused, a response; otherwise neither.
	Classify func(*BufferedRequest) (Exchange, Response)
	Stream   http.Handler // serves the requests for which Classify returns neither; nil: there are none
	// LoadFeatures applies the agent's current features. It is called before the first request and each
	// time the returned channel is closed. Nil if the receiver does not depend on them.
	LoadFeatures func() (changed <-chan struct{})
	Upstream     Upstream // zero if requests are not forwarded
	// UpstreamCounts reports whether the upstream counts the spans of requests that are forwarded without
	// the mark, as the Datadog agent does. Otherwise spans that can't be counted here are dropped.
	UpstreamCounts bool
	HTTP2          *http.HTTP2Config // nil: HTTP/1.1 only

	ReadHeaderTimeout time.Duration
	BodyTimeout       time.Duration // for reading a buffered body
	WriteTimeout      time.Duration // for a piece of a response, since responses may stream
	IdleTimeout       time.Duration // between two requests
}

// Server is the HTTP server of one receiver.
type Server struct {
	Log         *RequestLog
	Bodies      bodies.Pool
	ParsedBytes atomic.Uint64 // of bodies that were counted

	config     Config
	setup      Setup
	publishers *Publishers
	transport  *http.Transport // nil if there is no upstream
	dialing    DialRetrier
	http       *http.Server
	limiter    *conns.Limiter
	listeners  conns.Listeners
	results    []atomic.Uint64 // requests by result
	inFlight   atomic.Int64    // requests
	stopping   chan struct{}   // closed when Drain begins
	background sync.WaitGroup
	drained    chan struct{} // closed to end the goroutines in background
}

// New opens the listeners. Nothing is accepted before Start. maxBatches is the maximum number of batches, and
// thus of publishers, of one body.
func New(config *Config, setup Setup, maxBatches int) (*Server, error) {
	s := &Server{
		config: *config, setup: setup, Log: NewRequestLog(config.Log),
		results:    make([]atomic.Uint64, len(setup.Results)),
		limiter:    conns.NewLimiter(config.MaxConnections),
		Bodies:     bodies.NewPool(config.MaxBody, config.MaxBodyBytes),
		publishers: NewPublishers(config.Admit, config.Publishers(maxBatches), setup.UpstreamCounts),
		stopping:   make(chan struct{}),
		drained:    make(chan struct{}),
	}
	s.dialing.MaxWait, s.dialing.Stopping = config.Buffer, s.stopping
	if s.setup.Upstream.Address != "" {
		s.transport = s.setup.Upstream.NewTransport(&s.dialing)
	}
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(setup.HTTP2 != nil)
	s.http = &http.Server{
		Handler: http.HandlerFunc(s.serve), Protocols: protocols, HTTP2: setup.HTTP2,
		ReadHeaderTimeout: setup.ReadHeaderTimeout, IdleTimeout: setup.IdleTimeout,
		MaxHeaderBytes: conns.MaxHeaderBytes, ConnContext: conns.ConnContext, ConnState: conns.ConnState,
		ErrorLog: log.New(io.Discard, "", 0),
	}
	s.listeners = conns.Listeners{
		Limiter: s.limiter, AllowUIDs: config.AllowUIDs, WriteTimeout: setup.WriteTimeout,
		LimitsLines: true, Rejected: s.logRejected,
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
			return fmt.Errorf("listen for %s: %w", s.setup.Data, err)
		}
	}
	if s.config.Addr != "" {
		if err := s.listeners.OpenTCP(s.config.Addr, s.config.Given); err != nil {
			return fmt.Errorf("open %s: %w; choose another --%s-addr", s.setup.Data, err, s.setup.FlagPrefix)
		}
	}
	return nil
}

// logRejected logs a connection over the limit.
func (s *Server) logRejected(process int32) {
	from := "unknown over TCP"
	if process != 0 {
		from = strconv.Itoa(int(process))
	}
	s.Log.Write(slog.LevelWarn, "a connection is refused, because all connections are in use, or half of them by "+
		"its process; find the process that holds them, or raise --"+s.setup.FlagPrefix+"-max-connections",
		"brings", s.setup.Data, "connections", s.config.MaxConnections, "process", from)
}

// Abandon closes the listeners of a server that was not started.
func (s *Server) Abandon() { s.listeners.Close() }

// expireEvery is how often unused publishers and buffers are released.
const expireEvery = time.Minute

// Start accepts connections.
func (s *Server) Start() {
	var featuresChanged <-chan struct{} // nil: they never change
	if s.setup.LoadFeatures != nil {
		featuresChanged = s.setup.LoadFeatures()
	}
	s.background.Go(func() { s.maintain(featuresChanged) })
	if s.listeners.HasSocket() {
		s.background.Go(func() { s.listeners.Watch(s.drained, s.config.Log) })
	}
	s.listeners.Serve(func(on net.Listener) {
		if err := s.http.Serve(on); !errors.Is(err, http.ErrServerClosed) && !s.IsStopping() {
			s.config.Log.Error("listening for "+s.setup.Data+" ended; its senders can't reach this daemon any "+
				"more", "error", err)
		}
	})
	s.config.Log.Info("taking "+s.setup.Data, "socket", s.config.Socket.Path, "addr", s.Addr())
}

// maintain follows the agent's features, and releases unused publishers and buffers, until the server has
// drained.
func (s *Server) maintain(featuresChanged <-chan struct{}) {
	expiring := time.NewTicker(expireEvery)
	defer expiring.Stop()
	for {
		select {
		case <-featuresChanged:
			featuresChanged = s.setup.LoadFeatures()
		case now := <-expiring.C:
			s.publishers.Expire(now)
			s.Bodies.DropSpares()
		case <-s.drained:
			return
		}
	}
}

// ServeOn accepts connections of another listener, until it ends.
func (s *Server) ServeOn(from net.Listener) error {
	return s.http.Serve(s.listeners.Limit(from)) //nolint:wrapcheck // net/http's own
}

// Unreachable returns why clients can't find the socket, nil if they can or there is none.
func (s *Server) Unreachable() error { return s.listeners.SocketErr() }

// Addr returns the TCP address, "" without one.
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

// serve serves one request: it reads the body, counts it, forwards it, and responds.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.inFlight.Add(1)
	defer s.inFlight.Add(-1)
	if c := conns.FromContext(r.Context()); c != nil && c.IsClosed() {
		panic(http.ErrAbortHandler)
	}
	isHTTP2Preface := r.ProtoMajor != 1 && s.setup.HTTP2 == nil
	if isHTTP2Preface {
		w.Header().Set("Connection", "close")
		http.Error(w, "unsupported protocol version", http.StatusHTTPVersionNotSupported)
		return
	}
	req := s.NewRequest(r)
	defer req.Release()
	exchange, refusal := s.setup.Classify(req)
	if exchange == nil && refusal == nil {
		s.setup.Stream.ServeHTTP(w, r)
		return
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(s.setup.BodyTimeout)) // tests have connections without deadlines
	if refusal != nil {
		s.respond(w, req, refusal)
		discardBody(control, r)
		return
	}
	readErr := req.readBody(control)
	if response := exchange.Count(readErr); response != nil {
		s.respond(w, req, response)
		isUnread := errors.Is(readErr, bodies.ErrNoRoom) && s.setup.Stream == nil // otherwise it was streamed
		if isUnread {
			discardBody(control, r)
		}
		return
	}
	s.forward(w, req, exchange)
}

// forward forwards a request, and responds as the exchange translates the upstream's response, which may be
// streamed.
func (s *Server) forward(w http.ResponseWriter, req *BufferedRequest, exchange Exchange) {
	ctx := req.HTTP.Context()
	if timeout := s.setup.Upstream.ResponseTimeout; timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	out := exchange.Outbound()
	body := &outboundBody{prefix: out.Prefix, message: out.Message}
	defer body.Close()
	fromUpstream, err := s.roundTrip(ctx, &out, body)
	if err == nil {
		defer fromUpstream.Body.Close()
	}
	s.respond(w, req, exchange.Translate(fromUpstream, err))
}

// readBody reads the body into memory. If that fails, the deadline stays: net/http must not wait for the
// rest for longer.
func (r *BufferedRequest) readBody(control *http.ResponseController) (err error) {
	var senderBytes *atomic.Int64
	if r.Conn != nil {
		senderBytes = r.Conn.BodyBytes
	}
	r.Body, err = r.server.Bodies.Read(r.HTTP.Body, r.HTTP.ContentLength, senderBytes)
	if err == nil {
		_ = control.SetReadDeadline(time.Time{})
	}
	return err //nolint:wrapcheck // the receiver looks at it
}

// respond counts the result of a request and writes the response.
func (s *Server) respond(w http.ResponseWriter, r *BufferedRequest, response Response) {
	s.CountResult(r.Result)
	r.ack()
	if s.IsStopping() && r.HTTP.ProtoMajor == 1 {
		w.Header().Set("Connection", "close")
	}
	// Conn.Write sets the deadline of a connection; this is the one of an HTTP/2 stream.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.setup.WriteTimeout))
	if response(w) != nil {
		panic(http.ErrAbortHandler) // a part of the response may be written
	}
}

// maxDiscard bounds the part of an unread body that is discarded.
const maxDiscard = 64 << 20

// discardBody reads the rest of a body after its response, for as long as a body may take. Many senders read
// the response only when they have written the whole body, and would find their connection closed.
func discardBody(control *http.ResponseController, r *http.Request) {
	if r.ProtoMajor == 1 && r.Header.Get("Expect") == "" && control.Flush() == nil {
		_, _ = io.CopyN(io.Discard, r.Body, maxDiscard)
	}
}

// Contain runs a function that counts a body, recovers its panic, and reports whether there was one.
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

// goAwayGrace is the time for HTTP/2 clients to read that their connection accepts no more requests.
// drainPoll is how often a stopping server closes idle connections afterwards: net/http alone would wait
// for the clients to close them.
const (
	goAwayGrace = 250 * time.Millisecond
	drainPoll   = 10 * time.Millisecond
)

// Drain stops accepting connections, and serves the requests that are in flight until the context ends. Then
// it closes their connections, and their senders retry. Nothing is published after it returns.
func (s *Server) Drain(ctx context.Context) error {
	close(s.stopping)
	s.listeners.Stop(ctx)
	err := s.shutdown(ctx)
	if err != nil {
		err = fmt.Errorf("drain %s: %w; raise --shutdown-grace", s.setup.Data, err)
		s.http.Close()
		s.limiter.CloseAll()
	}
	// net/http does not wait for HTTP/2 handlers whose connection is closed.
	waitUntil(ctx, func() bool { return s.inFlight.Load() == 0 })
	s.publishers.Close()
	close(s.drained)
	s.listeners.Wait()
	s.background.Wait()
	if s.transport != nil {
		s.transport.CloseIdleConnections()
	}
	s.listeners.Close()
	return err
}

// shutdown returns when all connections are closed. It waits until new connections have sent their first
// request, for a second at most, because net/http drops requests that it has not read.
func (s *Server) shutdown(ctx context.Context) error {
	waitUntil(ctx, func() bool { return !s.limiter.AwaitsFirst() })
	s.limiter.Drain()
	done := make(chan error, 1)
	go func() { done <- s.http.Shutdown(ctx) }()
	closeIdle := time.NewTimer(goAwayGrace)
	defer closeIdle.Stop()
	for {
		select {
		case err := <-done:
			return err //nolint:wrapcheck // Drain does
		case <-closeIdle.C:
			s.limiter.CloseIdle()
			closeIdle.Reset(drainPoll)
		}
	}
}

// waitUntil polls a condition until it holds or the context ends.
func waitUntil(ctx context.Context, condition func() bool) {
	polling := time.NewTicker(time.Millisecond)
	defer polling.Stop()
	for !condition() {
		select {
		case <-polling.C:
		case <-ctx.Done():
			return
		}
	}
}
