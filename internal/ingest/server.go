package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// Config is what ingest may use. Every field must be set.
type Config struct {
	Socket         Socket
	AllowUIDs      []uint32 // who may connect; none: whoever may open the socket
	MaxConnections int
	MaxFrame       int
	MaxBatch       int
	MaxKeys        int // numbers a connection may define, and keys it may use without
	MaxKeyBytes    int // of the raw keys that a connection has remembered
	MaxResource    int // bytes of a resource that are kept, the agent's number at most
	// MaxKeyBytesInAll is the same over all connections.
	MaxKeyBytesInAll int
	MaxBufferBytes   int           // of the buffers over 64 KiB, for large frames and busy connections, of all together
	MaxByteRate      int           // bytes a second a connection; 0: any
	ReadTimeout      time.Duration // for a frame once begun
	Block            bool          // wait for room instead of dropping
	Leeway           time.Duration // without Block: how long that is waited for before batches are dropped, see leeway
	DefaultHost      string        // of a tracer that does not say
	DefaultEnv       string        // of a tracer that does not say
	Version          string        // of the daemon, for the welcome
	Aggregator       *aggregate.Aggregator
	// Features returns what the agent wants and a channel that is closed when
	// that changes.
	Features func() (wire.Features, <-chan struct{})
	Log      *slog.Logger
}

// DefaultConfig is the defaults of the command line.
func DefaultConfig() Config {
	return Config{
		Socket: Socket{Path: "/var/run/spanstatsd/spans.sock", Mode: 0o660}, MaxConnections: 1024,
		MaxFrame: wire.DefaultMaxFrame, MaxBatch: 1024, MaxKeys: 8192, MaxKeyBytes: 8 << 20, MaxKeyBytesInAll: 32 << 20,
		MaxBufferBytes: 16 << 20,
		MaxResource:    span.MaxResource,
		ReadTimeout:    30 * time.Second,
		Leeway:         20 * time.Millisecond,
	}
}

// largestBatch is what tracers are told: such a batch fits a ring even where each snapshot
// takes all the slots that one can. (Rings of fewer slots than that for each of the least
// that every daemon takes are for tests.)
func (c *Config) largestBatch() int {
	return max(wire.MinMaxBatch, min(c.MaxBatch, (c.Aggregator.RingSlots()-aggregate.EndSlots)/aggregate.MostSlots))
}

// minKeyBytes has room for a few of the longest keys.
const minKeyBytes = 64 << 10

// Check says what is unusable.
func (c *Config) Check() error {
	switch {
	case c.MaxConnections < 1 || c.MaxConnections > 1<<16:
		return fmt.Errorf("check max-connections: %d is not between 1 and %d", c.MaxConnections, 1<<16)
	case c.MaxFrame < wire.MinMaxFrame || c.MaxFrame > 1<<30:
		return fmt.Errorf("check max-frame: %d is not between %d and %d bytes", c.MaxFrame, wire.MinMaxFrame, 1<<30)
	case c.MaxBatch < wire.MinMaxBatch || c.MaxBatch > 1<<20:
		return fmt.Errorf("check max-batch: %d is not between %d and %d", c.MaxBatch, wire.MinMaxBatch, 1<<20)
	case c.MaxKeys < wire.MinMaxKeys || c.MaxKeys > 1<<20:
		return fmt.Errorf("check max-keys: %d is not between %d and %d", c.MaxKeys, wire.MinMaxKeys, 1<<20)
	case c.MaxKeyBytes < minKeyBytes:
		return fmt.Errorf("check max-key-bytes: %d is not at least %d", c.MaxKeyBytes, minKeyBytes)
	case c.MaxKeyBytesInAll < c.MaxKeyBytes:
		return fmt.Errorf("check max-key-bytes-in-all: %d is less than the %d of one connection", c.MaxKeyBytesInAll, c.MaxKeyBytes)
	case c.MaxResource < span.MaxLabel || c.MaxResource > span.MaxResource:
		return fmt.Errorf("check max-resource-bytes: %d is not between %d and the agent's %d", c.MaxResource, span.MaxLabel, span.MaxResource)
	case c.MaxBufferBytes < c.MaxFrame+wire.HeaderLen:
		return fmt.Errorf("check max-buffer-bytes: %d does not hold one frame of --max-frame, %d", c.MaxBufferBytes, c.MaxFrame+wire.HeaderLen)
	case c.MaxByteRate < 0:
		return fmt.Errorf("check max-byte-rate: %d is negative; 0 stands for any rate", c.MaxByteRate)
	case c.ReadTimeout <= 0:
		return fmt.Errorf("check read-timeout: %s is not positive", c.ReadTimeout)
	}
	return nil
}

// Server owns the socket and its connections.
type Server struct {
	config    Config
	log       faultLog
	counters  counters
	space     *space
	keyMemory keyMemory
	inside    atomic.Int64 // publishers: connections, and what admits for others
	features  atomic.Pointer[wire.Features]
	listener  *listener

	mu       sync.Mutex
	conns    map[*conn]struct{}
	stopping bool

	serving   sync.WaitGroup  // connections
	loops     sync.WaitGroup  // accepting and announcing
	answering sync.WaitGroup  // answers to flushes
	reports   context.Context // ends when answers are not worth waiting for any more
	endReport context.CancelFunc
	draining  chan struct{} // closed when no connection is held to a rate any more
	stopped   chan struct{} // closed when none may wait for anything any more
}

// New opens the socket. Nothing is accepted before Start.
func New(config Config) (*Server, error) {
	if err := config.Check(); err != nil {
		return nil, err
	}
	listener, err := listen(config.Socket)
	if err != nil {
		return nil, err
	}
	s := &Server{
		config: config, listener: listener, conns: map[*conn]struct{}{},
		keyMemory: newKeyMemory(config.MaxKeyBytesInAll, config.MaxConnections),
		log:       faultLog{logger: config.Log}, draining: make(chan struct{}), stopped: make(chan struct{}),
	}
	s.space = newSpace(config.MaxBufferBytes, config.MaxFrame+wire.HeaderLen, s.stopped)
	s.reports, s.endReport = context.WithCancel(context.Background())
	return s, nil
}

// Abandon gives the socket back where nothing was started.
func (s *Server) Abandon() {
	s.endReport()
	s.listener.Close()
}

// Start accepts tracers: two goroutines, and one for each connection.
func (s *Server) Start() {
	features, changed := s.config.Features()
	s.features.Store(&features)
	s.loops.Go(s.accept)
	s.loops.Go(func() { s.announce(changed) })
}

// wanted says whether the agent takes statistics at all.
func (s *Server) wanted() bool { return s.features.Load().Stats }

func (s *Server) accept() {
	for {
		socket, err := s.listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// Out of file descriptors, most likely: others may leave soon.
			s.config.Log.Warn("accept connection failed; raise the limit of open files if this lasts", "error", err)
			if !s.pause(time.Second) {
				return
			}
			continue
		}
		s.add(socket)
	}
}

// add serves a new connection, or tells it that there is no room.
func (s *Server) add(socket *net.UnixConn) {
	c := &conn{admission: admission{server: s}, socket: newSocket(socket), since: time.Now()}
	s.counters.accepted.Add(1)
	s.mu.Lock()
	stopping, full := s.stopping, len(s.conns) >= s.config.MaxConnections
	if !stopping && !full {
		s.conns[c] = struct{}{}
		s.serving.Add(1)
	}
	s.mu.Unlock()
	switch {
	case stopping:
		c.bye(byeShutdown)
		socket.Close()
		return
	case full:
		err := fmt.Errorf("accept connection: there are %d already; raise --max-connections", s.config.MaxConnections)
		s.counters.faults[FaultTooManyConnections].Add(1)
		s.log.fault(FaultTooManyConnections, err, c)
		c.bye(wire.Bye{Reason: FaultTooManyConnections.String(), Detail: err.Error()})
		socket.Close()
		return
	}
	c.frames = newFrames(c.socket, s.config.MaxFrame, s.config.ReadTimeout, newThrottle(s.config.MaxByteRate, s.draining, &s.counters.throttled), s.space)
	c.enter(true)
	go c.serve()
}

func (s *Server) remove(c *conn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	s.serving.Done()
}

// announce tells every tracer when what the agent wants has changed.
func (s *Server) announce(changed <-chan struct{}) {
	for {
		select {
		case <-changed:
		case <-s.reports.Done():
			return
		}
		var features wire.Features
		features, changed = s.config.Features()
		s.features.Store(&features)
		// Side by side, so that one that does not read delays no other.
		var announcing sync.WaitGroup
		for _, c := range s.connections() {
			announcing.Go(func() { c.announce(&features) })
		}
		announcing.Wait()
	}
}

func (s *Server) connections() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	conns := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		conns = append(conns, c)
	}
	return conns
}

// pause waits, and reports false when the server stops meanwhile.
func (s *Server) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.stopped:
		return false
	}
}

var byeShutdown = wire.Bye{Reason: "shutdown", Detail: "the daemon stops; what it took is counted"}

// Drain stops accepting and reads what tracers have already written, to the
// last byte. Closing the read side of a Unix socket is an exact boundary: a
// write that succeeded before it is still there to be read, and one after it
// fails on the tracer's side, which then knows that it was not handed over.
//
// When the context ends, what is still to be read is read all the same, but only
// counted, as dropped for the shutdown. That is no more than the sockets hold, and
// nothing is waited for any more, so it ends by itself.
func (s *Server) Drain(ctx context.Context) error {
	s.mu.Lock()
	s.stopping = true
	s.mu.Unlock()
	close(s.draining)
	s.listener.Close() // removes the socket's file too
	for _, c := range s.connections() {
		_ = c.socket.CloseRead() // fails only where the tracer has left already
	}
	done := make(chan struct{})
	go func() { s.serving.Wait(); close(done) }()
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		err = fmt.Errorf("drain connections: %w; raise --shutdown-grace", ctx.Err())
	}
	close(s.stopped)
	<-done
	return err
}

// isDraining says whether the daemon has begun to stop.
func (s *Server) isDraining() bool { return isClosed(s.draining) }

// isCut says whether what comes is only to be counted.
func (s *Server) isCut() bool { return isClosed(s.stopped) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Close ends what is left after Drain: the answers that tracers wait for.
func (s *Server) Close() {
	s.endReport()
	s.answering.Wait()
	s.loops.Wait()
}
