package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/ingest/socket"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// Server owns the socket and its connections.
type Server struct {
	shared
	listener *socket.Listener
	refused  frames // of the connection that is refused, the accepting goroutine's own

	mu        sync.Mutex
	conns     map[*conn]struct{}
	ofProcess map[int32]int // connections, by process id; 0 where the kernel does not tell
	stopping  bool

	accepting sync.WaitGroup  // until nobody waits in the socket any more
	serving   sync.WaitGroup  // connections
	loops     sync.WaitGroup  // announcing, and watching the socket
	closing   context.Context // ends with Close, when no connection is left
	close     context.CancelFunc
	stopped   chan struct{} // closed when none may wait for anything any more
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
		shared: shared{
			config: config, log: newFaultLog(config.Log), draining: make(chan struct{}),
			credentials: socket.Credentials,
		},
		listener: listener, conns: map[*conn]struct{}{}, ofProcess: map[int32]int{},
		stopped: make(chan struct{}),
	}
	s.refused.base = make([]byte, baseBuffer)
	s.buffers = newBuffers(int64(config.MaxBufferBytes), s.stopped)
	s.closing, s.close = context.WithCancel(context.Background())
	return s, nil
}

// Abandon gives the socket back where nothing was started.
func (s *Server) Abandon() {
	s.close()
	s.listener.Close()
}

// Start accepts tracers: three goroutines, and one for each connection.
func (s *Server) Start() {
	features, changed := s.config.Features()
	s.features.Store(&features)
	s.accepting.Go(s.accept)
	s.loops.Go(func() { s.announce(changed) })
	s.loops.Go(func() { s.listener.Watch(s.draining, s.config.Log) })
}

func (s *Server) accept() {
	for {
		conn, err := s.listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// Out of file descriptors, most likely: others may leave soon.
			s.config.Log.Warn("accept connection failed; raise the limit of open files if this lasts",
				"error", err)
			pause := time.Second
			if s.isDraining() {
				pause = 10 * time.Millisecond // they all do
			}
			select {
			case <-time.After(pause):
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
	c := &conn{shared: &s.shared, socket: socket, since: time.Now()}
	s.counters.accepted.Add(1)
	err := c.identify()
	if err == nil {
		err = s.register(c)
	}
	if err != nil {
		s.refuse(c, err)
		return
	}
	rate := newThrottle(s.config.MaxByteRate, s.draining, &s.counters.throttled)
	c.ended, c.end = context.WithCancel(s.closing)
	c.frames = newFrames(socket, s.config.MaxFrame, s.config.ReadTimeout, rate, s.buffers)
	go func() {
		defer s.remove(c)
		c.serve()
	}()
}

// register adds a connection to those that are served, of which a process has half at most. Unlike
// package conns it evicts none for a new one: an idle client would lose the keys that it has defined, and
// the new one is refused with a message that names the flag.
//
// A connection that was made while the daemon stopped is read to its end like all others.
func (s *Server) register(c *conn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	most, process := s.config.MaxConnections, c.peer.PID
	switch {
	case len(s.conns) >= most:
		return faultf(FaultTooManyConnections, "accept connection: there are %d already; raise "+
			"--max-connections", most)
	case process != 0 && s.ofProcess[process] >= max(1, most/2):
		return faultf(FaultTooManyConnections, "accept connection: process %d has %d already, half of "+
			"--max-connections", process, s.ofProcess[process])
	}
	s.conns[c] = struct{}{}
	s.ofProcess[process]++
	s.serving.Add(1)
	if s.stopping {
		_ = c.socket.CloseRead() // fails only where the tracer has left already
	}
	return nil
}

// refuse says bye to a connection that there is no room for. The accepting goroutine, which
// has a buffer for that, counts what the connection has written meanwhile as dropped.
func (s *Server) refuse(c *conn, err error) {
	defer c.socket.Close()
	c.frames = &s.refused
	*c.frames = frames{conn: c.socket, base: s.refused.base, buf: s.refused.base}
	c.fail(err)
	c.countRest()
}

func (s *Server) remove(c *conn) {
	s.mu.Lock()
	delete(s.conns, c)
	if s.ofProcess[c.peer.PID]--; s.ofProcess[c.peer.PID] == 0 {
		delete(s.ofProcess, c.peer.PID)
	}
	if len(s.conns) == 0 {
		s.buffers.pool.DropSpares()
	}
	s.mu.Unlock()
	s.serving.Done()
}

// announce tells every tracer when what the agent wants has changed, and those who want to
// know when more of their spans have had their outcome.
func (s *Server) announce(changed <-chan struct{}) {
	_, settled := s.config.Settled()
	for {
		select {
		case <-changed:
		case <-settled:
			settled = s.settle()
			continue
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

// settle tells the tracers how many of their spans have had their outcome by now, one after
// the other: a write is some microseconds, and who does not read loses its connection. It
// returns what is closed when there are more.
func (s *Server) settle() (more <-chan struct{}) {
	through, more := s.config.Settled()
	for _, c := range s.connections() {
		c.settle(through, s.features.Load())
	}
	return more
}

func (s *Server) connections() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.conns))
}

var byeShutdown = wire.Bye{Reason: "shutdown", Detail: "the daemon stops; what it took is counted"}

// Drain accepts and reads what tracers have already written, to the last byte, and nothing
// after it. Both boundaries are exact: who connected before is accepted, and whoever comes
// later is refused; a write that succeeded before the read side of a Unix socket is closed
// is still there to be read, and one after it fails on the tracer's side, which then knows
// that it was not handed over.
//
// When the context ends, what is still to be read is read all the same, but only counted, as
// dropped for the shutdown. The sockets hold no more than that, and nothing waits any more, so
// reading ends by itself.
func (s *Server) Drain(ctx context.Context) error {
	s.mu.Lock()
	s.stopping = true
	s.mu.Unlock()
	close(s.draining)
	s.listener.Shut()
	for _, c := range s.connections() {
		_ = c.socket.CloseRead() // fails only where the tracer has left already
	}
	done := make(chan struct{})
	go func() {
		s.accepting.Wait()
		s.listener.Close() // removes the socket's file too: another daemon may take over
		s.serving.Wait()
		close(done)
	}()
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

// Stats is what became of connections and frames so far.
func (s *Server) Stats() Stats {
	stats := s.counters.stats()
	stats.FramesWaited = s.buffers.waits.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	stats.Connections = len(s.conns)
	return stats
}

// Lack is why tracers can't find the socket, nil where they can.
func (s *Server) Lack() error { return s.listener.Lack() }

// Close ends what is left after Drain: announcing.
func (s *Server) Close() {
	s.close()
	s.loops.Wait()
}

// shared is what all connections of a server need of it.
type shared struct {
	config   Config
	log      faultLog
	counters counters
	buffers  *buffers
	features atomic.Pointer[wire.Features]
	draining chan struct{} // closed when the daemon begins to stop

	credentials func(*net.UnixConn) (socket.Peer, error)
}

// isDraining says whether the daemon has begun to stop.
func (s *shared) isDraining() bool {
	select {
	case <-s.draining:
		return true
	default:
		return false
	}
}

// Tracer is what status says of one connection that has said hello.
type Tracer struct {
	Client    string    `json:"client"`
	Service   string    `json:"service"`
	Env       string    `json:"env"`
	Lang      string    `json:"lang"`
	Container string    `json:"container"`
	UID       uint32    `json:"uid"`
	PID       int32     `json:"pid"`
	Since     time.Time `json:"since"`
	Received  uint64    `json:"received"`
	Dropped   uint64    `json:"dropped"` // of those received
	Lost      uint64    `json:"lost"`    // that never got here, as it reports
}

// Tracers are those connected now, the longest first.
func (s *Server) Tracers() []Tracer {
	tracers := []Tracer{}
	for _, c := range s.connections() {
		if known := c.tracer.Load(); known != nil {
			tracer := *known
			tracer.Dropped, tracer.Lost = c.publisher.Dropped(), c.lost.Load()
			tracer.Received = c.publisher.Received()
			tracers = append(tracers, tracer)
		}
	}
	slices.SortFunc(tracers, func(a, b Tracer) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.PID, b.PID))
	})
	return tracers
}
