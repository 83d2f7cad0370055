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
	Stream   http.Handler // serves requests to stream; nil if Classify always returns an exchange or a response
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
		publishers: NewPublishers(config.Admit, config.Publishers(maxBatches), bodies.MaxDedupEntries(config.MaxBodyBytes),
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
		LimitsHeaderLines: true, OnReject: s.logRejected,
	}
	if err := s.listen(); err != nil {
		s.Abandon()
		return nil, err
	}
	return s, nil
}

// listen opens the Unix socket and the TCP listener, if they are configured.
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

// logRejected logs that a connection was rejected because of a connection limit. pid is the ID of the client's
// process, or 0 if it is unknown, as for TCP.
func (s *Server) logRejected(pid int32) {
	process := "unknown over TCP"
	if pid != 0 {
		process = strconv.Itoa(int(pid))
	}
	s.Log.Write(slog.LevelWarn, "connection rejected, because all connections are in use, or half of them by "+
		"its process; find the process with these connections, or raise --"+s.setup.FlagPrefix+"-max-connections",
		"data", s.setup.Data, "connections", s.config.MaxConnections, "process", process)
}

// Abandon closes the listeners of a server that was not started.
func (s *Server) Abandon() { s.listeners.Close() }

// expireEvery is the interval at which unused publishers and buffers are released.
const expireEvery = time.Minute

// Start starts the background tasks of the server, and begins to accept connections. It does not block.
func (s *Server) Start() {
	var featuresChanged <-chan struct{} // nil if the receiver does not depend on the agent's features
	if s.setup.LoadFeatures != nil {
		featuresChanged = s.setup.LoadFeatures()
	}
	s.background.Go(func() { s.maintain(featuresChanged) })
	if s.listeners.HasSocket() {
		s.background.Go(func() { s.listeners.Watch(s.drained, s.config.Log) })
	}
	s.listeners.Serve(s.acceptFrom)
	s.config.Log.Info("receiving "+s.setup.Data, "socket", s.config.Socket.Path, "addr", s.Addr())
}

// acceptFrom serves the connections of a listener until the server stops. It logs an error if the listener fails earlier.
func (s *Server) acceptFrom(listener net.Listener) {
	err := s.http.Serve(listener)
	isExpected := errors.Is(err, http.ErrServerClosed) || s.IsStopping()
	if !isExpected {
		s.config.Log.Error("stopped listening for "+s.setup.Data+"; senders can't connect any more; restart the "+
			"daemon", "error", err)
	}
}

// maintain calls LoadFeatures each time the agent's features have changed, and regularly frees publishers and
// buffers that are not in use. It returns when s.drained is closed.
func (s *Server) maintain(featuresChanged <-chan struct{}) {
	expireTicker := time.NewTicker(expireEvery)
	defer expireTicker.Stop()
	for {
		select {
		case <-featuresChanged:
			featuresChanged = s.setup.LoadFeatures() // a new channel, for the next change
		case now := <-expireTicker.C:
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

// serve handles all requests of the server. It passes a request whose body should be read into memory to
// serveBuffered, and streams other requests to the upstream. It rejects unsupported HTTP versions and requests that
// Classify refuses.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.inFlight.Add(1)
	defer s.inFlight.Add(-1)
	conn := conns.FromContext(r.Context())
	isClosed := conn != nil && conn.IsClosed()
	if isClosed {
		panic(http.ErrAbortHandler) // net/http then sends no response, so the sender sends the request again
	}
	if conn != nil && r.ProtoMajor == 2 {
		conn.SetHTTP2()
	}
	isHTTP2Enabled := s.setup.HTTP2 != nil
	isSupported := r.ProtoMajor == 1 || isHTTP2Enabled
	if !isSupported {
		w.Header().Set("Connection", "close")
		http.Error(w, "unsupported protocol version", http.StatusHTTPVersionNotSupported)
		return
	}
	req := s.NewRequest(r)
	defer req.Release()
	exchange, refusal := s.setup.Classify(req)
	switch {
	case refusal != nil:
		s.serveRefusal(w, req, refusal)
	case exchange != nil:
		s.serveBuffered(w, req, exchange)
	default:
		s.setup.Stream.ServeHTTP(w, r)
	}
}

// serveRefusal writes the response to a refused request, and discards its body.
func (s *Server) serveRefusal(w http.ResponseWriter, req *BufferedRequest, refusal Response) {
	control := s.limitReadTime(w)
	s.respond(w, req, refusal)
	discardBody(control, req.HTTP)
}

// limitReadTime sets the deadline for reading the body of a request.
func (s *Server) limitReadTime(w http.ResponseWriter) *http.ResponseController {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(s.setup.BodyTimeout)) // tests have connections without deadlines
	return control
}

// serveBuffered reads the body of a request into memory and calls exchange.Handle. If that returns a response,
// serveBuffered writes it. Otherwise, it forwards the request to the upstream.
func (s *Server) serveBuffered(w http.ResponseWriter, req *BufferedRequest, exchange Exchange) {
	control := s.limitReadTime(w)
	readErr := req.readBody(control)
	response := exchange.Handle(readErr)
	if response == nil {
		s.forward(w, req, exchange)
		return
	}
	s.respond(w, req, response)
	isOverLimit := errors.Is(readErr, bodies.ErrNoRoom)
	isRestHandled := s.setup.Stream != nil // response has streamed the rest of the body, or closed the connection
	if isOverLimit && !isRestHandled {
		discardBody(control, req.HTTP)
	}
}

// forward sends the request exchange.Outbound to the upstream. It then responds to the sender: exchange.Translate
// turns the response of the upstream, or the error, into this response.
func (s *Server) forward(w http.ResponseWriter, req *BufferedRequest, exchange Exchange) {
	ctx := req.HTTP.Context()
	timeout := s.setup.Upstream.ResponseTimeout
	if timeout > 0 {
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

// readBody reads the body of the request into r.Body, and then clears the read deadline. After an error, r.Body
// contains the part that was read, and the deadline stays, so that net/http does not wait for the rest forever.
func (r *BufferedRequest) readBody(control *http.ResponseController) error {
	var senderBytes *atomic.Int64 // memory for bodies of the sender; nil disables the limit per sender
	if r.Conn != nil {
		senderBytes = r.Conn.BodyBytes
	}
	body, err := r.server.Bodies.Read(r.HTTP.Body, r.HTTP.ContentLength, senderBytes)
	r.Body = body // after an error, the part that was read
	if err != nil {
		return err //nolint:wrapcheck // Exchange.Handle checks its type
	}
	_ = control.SetReadDeadline(time.Time{})
	return nil
}

// respond counts the result of a request, acknowledges its spans, and writes the response. If writing fails, it
// panics with http.ErrAbortHandler, which makes net/http close the connection or the HTTP/2 stream.
func (s *Server) respond(w http.ResponseWriter, r *BufferedRequest, response Response) {
	s.CountResult(r.Result)
	r.acknowledge()
	if s.IsStopping() && r.HTTP.ProtoMajor == 1 {
		w.Header().Set("Connection", "close")
	}
	// The deadline is needed for HTTP/2, whose streams share a connection. For HTTP/1, Conn.Write sets a deadline.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.setup.WriteTimeout))
	if err := response(w); err != nil {
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

// CatchPanic calls count, and reports whether count panicked. It logs the panic. The server continues, so a bug in
// counting affects only one request.
func (s *Server) CatchPanic(count func()) (hasPanicked bool) {
	defer func() {
		recovered := recover()
		if recovered != nil {
			s.Log.logPanic(recovered)
			hasPanicked = true
		}
	}()
	count()
	return false
}

const (
	// goAwayGrace is the time in which HTTP/2 clients can read the GOAWAY frame before idle connections are closed.
	goAwayGrace = 250 * time.Millisecond
	// closeIdleInterval is the interval at which a stopping server then closes idle connections. net/http alone would wait for
	// the clients to close them.
	closeIdleInterval = 10 * time.Millisecond
)

// Drain stops accepting connections, and waits until no request is in flight. When ctx is done before that, it
// closes all connections, so that the senders retry, and returns an error. After Drain returns, no spans are
// published.
func (s *Server) Drain(ctx context.Context) error {
	close(s.stopping)
	s.listeners.Stop(ctx)
	err := s.shutdownHTTP(ctx)
	if err != nil {
		err = fmt.Errorf("drain %s: %w; raise --shutdown-grace", s.setup.Data, err)
		s.http.Close()
		s.limiter.CloseAll()
	}
	hasNoRequests := func() bool { return s.inFlight.Load() == 0 }
	waitUntil(ctx, hasNoRequests) // net/http does not wait for HTTP/2 handlers whose connection is closed
	s.closeResources()            // requests that are still in flight can't publish any more
	return err
}

// closeResources stops the background goroutines, and closes everything that the requests have used.
func (s *Server) closeResources() {
	s.publishers.Close()
	close(s.drained)
	s.listeners.Wait()
	s.background.Wait()
	if s.transport != nil {
		s.transport.CloseIdleConnections()
	}
	s.listeners.Close()
}

// shutdownHTTP closes the connections as they become idle. It returns when all are closed, or ctx is done. It first
// waits until each new connection has sent a request, because http.Server.Shutdown drops requests that it has not
// read.
func (s *Server) shutdownHTTP(ctx context.Context) error {
	haveAllSentRequests := func() bool { return !s.limiter.AwaitsFirstRequest() }
	waitUntil(ctx, haveAllSentRequests)
	s.limiter.Drain() // otherwise Shutdown could close a connection on which a request has just arrived
	shutdownDone := make(chan error, 1)
	go func() { shutdownDone <- s.http.Shutdown(ctx) }()
	closeIdleTimer := time.NewTimer(goAwayGrace) // Shutdown first asks HTTP/2 clients to close the connections
	defer closeIdleTimer.Stop()
	for {
		select {
		case err := <-shutdownDone:
			return err //nolint:wrapcheck // Drain does
		case <-closeIdleTimer.C:
			s.limiter.CloseIdle()
			closeIdleTimer.Reset(closeIdleInterval)
		}
	}
}

// waitUntil polls a condition every millisecond. It returns when the condition is true, or ctx is done.
func waitUntil(ctx context.Context, condition func() bool) {
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for !condition() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}
