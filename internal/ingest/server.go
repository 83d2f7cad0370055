package ingest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/socket"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// Server owns the socket and its connections.
type Server struct {
	config   Config
	log      faultLog
	counters counters
	buffers  *buffers
	features atomic.Pointer[wire.Features]
	listener *socket.Listener

	mu       sync.Mutex
	conns    map[*conn]struct{}
	stopping bool

	serving  sync.WaitGroup  // connections
	loops    sync.WaitGroup  // accepting and announcing
	closing  context.Context // ends with Close, when no connection is left
	close    context.CancelFunc
	draining chan struct{} // closed when the daemon begins to stop
	stopped  chan struct{} // closed when none may wait for anything any more
}

// New opens the socket. Nothing is accepted before Start.
func New(config Config) (*Server, error) {
	if err := config.Check(); err != nil {
		return nil, err
	}
	listener, err := socket.Listen(config.Socket)
	if err != nil {
		return nil, err //nolint:wrapcheck // it says what to do
	}
	s := &Server{
		config: config, listener: listener, conns: map[*conn]struct{}{},
		log: faultLog{logger: config.Log}, draining: make(chan struct{}), stopped: make(chan struct{}),
	}
	s.buffers = newBuffers(int64(config.MaxBufferBytes), s.stopped)
	s.closing, s.close = context.WithCancel(context.Background())
	return s, nil
}

// Abandon gives the socket back where nothing was started.
func (s *Server) Abandon() {
	s.close()
	s.listener.Close()
}

// Start accepts tracers: two goroutines, and one for each connection.
func (s *Server) Start() {
	features, changed := s.config.Features()
	s.features.Store(&features)
	s.loops.Go(s.accept)
	s.loops.Go(func() { s.announce(changed) })
}

func (s *Server) accept() {
	for {
		conn, err := s.listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// Out of file descriptors, most likely: others may leave soon.
			s.config.Log.Warn("accept connection failed; raise the limit of open files if this lasts", "error", err)
			select {
			case <-time.After(time.Second):
				continue
			case <-s.stopped:
				return
			}
		}
		s.add(conn)
	}
}

// add serves a new connection, or tells it that there is no room.
func (s *Server) add(socket *net.UnixConn) {
	c := &conn{server: s, socket: socket, since: time.Now()}
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
	case full:
		c.refuse(faultf(FaultTooManyConnections, "accept connection: there are %d already; raise --max-connections", s.config.MaxConnections))
	default:
		rate := newThrottle(s.config.MaxByteRate, s.draining, &s.counters.throttled)
		c.ended, c.end = context.WithCancel(s.closing)
		c.frames = newFrames(socket, s.config.MaxFrame, s.config.ReadTimeout, rate, s.buffers)
		go c.serve()
		return
	}
	socket.Close()
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
		case <-s.closing.Done():
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
	return slices.Collect(maps.Keys(s.conns))
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
	s.config.Admit.Stop()
	<-done
	return err
}

// Close ends what is left after Drain: accepting, and announcing.
func (s *Server) Close() {
	s.close()
	s.loops.Wait()
}
