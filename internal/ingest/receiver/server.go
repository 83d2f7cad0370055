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
	FlagPrefix string   // first word of the receiver's flags, such as apm
	Data       string   // name of the received data in errors and logs, such as traces
	Results    []string // names of the results of requests
	// Classify reads the method, the path and the header of a request. If the body is to be buffered, it returns an
	// exchange; if the request is refused, it returns a response. It returns neither for a request to stream.
	Classify func(*BufferedRequest) (Exchange, Response)
	Stream   http.Handler // serves requests to stream; nil if Classify never returns neither value
	// LoadFeatures applies the agent's current features. It is called before the first request, and each
	// time the returned channel is closed. It is nil if the receiver does not depend on the features.
	LoadFeatures func() (changed <-chan struct{})
	Upstream     Upstream // zero if requests are not forwarded
	// UpstreamCounts reports whether the upstream counts the spans of forwarded requests that are not marked as
	// counted, like the Datadog agent. Otherwise spans that can't be counted by this daemon are dropped.
	UpstreamCounts bool
	HTTP2          *http.HTTP2Config // nil disables HTTP/2

	ReadHeaderTimeout time.Duration
	BodyTimeout       time.Duration // timeout for reading a buffered body
	WriteTimeout      time.Duration // timeout for one write, not for the whole response, since responses can be streamed
	IdleTimeout       time.Duration // maximum time between two requests of a connection
}

// Server is the HTTP server of one receiver.
type Server struct {
	Log         *RequestLog
	Bodies      bodies.Pool
	ParsedBytes atomic.Uint64 // bytes of parsed bodies, decompressed

	config     Config
	setup      Setup
	publishers *Publishers
	transport  *http.Transport // nil if there is no upstream
	dialing    DialRetrier
	http       *http.Server
	limiter    *conns.Limiter
	listeners  conns.Listeners
	results    []atomic.Uint64 // number of requests by result
	inFlight   atomic.Int64    // number of requests in flight
	stopping   chan struct{}   // closed when Drain begins
	background sync.WaitGroup
	drained    chan struct{} // closed to end the goroutines in background
}

// New opens the listeners. Connections are accepted after Start. maxBatches is the maximum number of batches per body;
// the batches of one body need a publisher each.
func New(config *Config, setup Setup, maxBatches int) (*Server, error) {
	s := &Server{
		config: *config, setup: setup, Log: NewRequestLog(config.Log),
		results: make([]atomic.Uint64, len(setup.Results)),
		limiter: conns.NewLimiter(config.MaxConnections),
		Bodies:  bodies.NewPool(config.MaxBody, config.MaxBodyBytes),
		publishers: NewPublishers(config.Admit, config.Publishers(maxBatches), bodies.MaxCounted(config.MaxBodyBytes),
			setup.UpstreamCounts),
		stopping: make(chan struct{}),
		drained:  make(chan struct{}),
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

// listen opens the configured listeners.
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

// logRejected logs a rejected connection over the limit. process is the id of the peer's process, or 0 over TCP.
func (s *Server) logRejected(process int32) {
	from := "unknown over TCP"
	if process != 0 {
		from = strconv.Itoa(int(process))
	}
	s.Log.Write(slog.LevelWarn, "connection rejected, because all connections are in use, or half of them by "+
		"its process; find the process with these connections, or raise --"+s.setup.FlagPrefix+"-max-connections",
		"data", s.setup.Data, "connections", s.config.MaxConnections, "process", from)
}

// Abandon closes the listeners of a server that was not started.
func (s *Server) Abandon() { s.listeners.Close() }

// expireEvery is the interval at which unused publishers and buffers are released.
const expireEvery = time.Minute

// Start starts accepting connections.
func (s *Server) Start() {
	var featuresChanged <-chan struct{} // nil if the receiver does not depend on the agent's features
	if s.setup.LoadFeatures != nil {
		featuresChanged = s.setup.LoadFeatures()
	}
	s.background.Go(func() { s.maintain(featuresChanged) })
	if s.listeners.HasSocket() {
		s.background.Go(func() { s.listeners.Watch(s.drained, s.config.Log) })
	}
	s.listeners.Serve(func(listener net.Listener) {
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) && !s.IsStopping() {
			s.config.Log.Error("stopped listening for "+s.setup.Data+"; senders can't connect any more; restart the "+
				"daemon", "error", err)
		}
	})
	s.config.Log.Info("receiving "+s.setup.Data, "socket", s.config.Socket.Path, "addr", s.Addr())
}

// maintain applies changes of the agent's features, and releases unused publishers and buffers. It returns when the
// server has drained.
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

// ServeOn serves the connections of an additional listener. It returns when the listener is closed.
func (s *Server) ServeOn(listener net.Listener) error {
	return s.http.Serve(s.listeners.Limit(listener)) //nolint:wrapcheck // net/http's own
}

// Unreachable returns an error if the file of the Unix socket is missing, so that clients can't connect.
func (s *Server) Unreachable() error { return s.listeners.SocketErr() }

// Addr returns the TCP listen address, or "" if TCP is disabled.
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

// forward forwards a request, and responds with the exchange's translation of the upstream's response.
func (s *Server) forward(w http.ResponseWriter, req *BufferedRequest, exchange Exchange) {
	ctx := req.HTTP.Context()
	if timeout := s.setup.Upstream.ResponseTimeout; timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	outbound := exchange.Outbound()
	body := &outboundBody{prefix: outbound.Prefix, message: outbound.Message}
	defer body.Close()
	upstreamResponse, err := s.roundTrip(ctx, &outbound, body)
	if err == nil {
		defer upstreamResponse.Body.Close()
	}
	s.respond(w, req, exchange.Translate(upstreamResponse, err))
}

// readBody reads the body into memory, and clears the read deadline. After an error it keeps the deadline, so that
// net/http does not wait for the rest of the body without a limit.
func (r *BufferedRequest) readBody(control *http.ResponseController) (err error) {
	var senderBytes *atomic.Int64
	if r.Conn != nil {
		senderBytes = r.Conn.BodyBytes
	}
	r.Body, err = r.server.Bodies.Read(r.HTTP.Body, r.HTTP.ContentLength, senderBytes)
	if err == nil {
		_ = control.SetReadDeadline(time.Time{})
	}
	return err //nolint:wrapcheck // Exchange.Count checks its type
}

// respond counts the result of a request, acknowledges its spans, and writes the response. It panics with
// http.ErrAbortHandler, which closes the connection, if writing fails.
func (s *Server) respond(w http.ResponseWriter, r *BufferedRequest, response Response) {
	s.CountResult(r.Result)
	r.ack()
	if s.IsStopping() && r.HTTP.ProtoMajor == 1 {
		w.Header().Set("Connection", "close")
	}
	// Conn.Write sets the deadline of a connection; this is the one of an HTTP/2 stream.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.setup.WriteTimeout))
	if response(w) != nil {
		panic(http.ErrAbortHandler) // a part of the response may have been written
	}
}

// maxDiscard is the maximum number of discarded bytes of an unread body.
const maxDiscard = 64 << 20

// discardBody reads the rest of a body after the response was written, until the read deadline. Many senders read the
// response only after they have written the whole body. Without discardBody their connection would be closed first, and
// they would not get the response.
func discardBody(control *http.ResponseController, r *http.Request) {
	if r.ProtoMajor == 1 && r.Header.Get("Expect") == "" && control.Flush() == nil {
		_, _ = io.CopyN(io.Discard, r.Body, maxDiscard)
	}
}

// Contain calls count, which counts a body. It recovers and logs a panic of count, and reports whether there was one.
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

const (
	// goAwayGrace is the time in which HTTP/2 clients can read the GOAWAY frame before idle connections are closed.
	goAwayGrace = 250 * time.Millisecond
	// drainPoll is the interval at which a stopping server then closes idle connections. net/http alone would wait for
	// the clients to close them.
	drainPoll = 10 * time.Millisecond
)

// Drain stops accepting connections, and serves the requests in flight until the context ends. It then closes all
// connections, so that the senders of unfinished requests retry. Nothing is published after Drain has returned.
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

// shutdown shuts the HTTP server down, and returns when all connections are closed. First it waits for the first request
// of each new connection (Limiter.AwaitsFirstRequest), because net/http would drop requests that it has not read.
func (s *Server) shutdown(ctx context.Context) error {
	waitUntil(ctx, func() bool { return !s.limiter.AwaitsFirstRequest() })
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
