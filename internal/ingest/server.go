// Package ingest implements the server of the native protocol: it accepts clients on a Unix socket, reads
// their messages, and passes batches of spans to package admit. It owns connections and their buffers.
//
// # Connections
//
// Each connection has a goroutine that reads frames into one buffer, and handles each frame in place
// before it reads the next one. Flush replies, changed features and numbers of settled spans are written
// by other goroutines, under a lock. A client that does not read is disconnected. A client that has sent
// a bye or has shut down writing still receives the replies to its flushes, unless the daemon shuts down.
//
// # Errors
//
// An invalid message, or a panic, ends only its own connection. The client gets the reason in a bye; a
// counter and a rate-limited log line record it. Frames before the invalid one are counted, and the spans
// in later frames are counted as dropped.
//
// Whenever a connection ends, the daemon closes its read side first. It then reads all data that the
// client has successfully written, and later writes of the client fail. Drain does this for all
// connections after it has accepted all clients in the accept queue, so a client always knows which spans
// the daemon has received.
//
// # Limits
//
// Config limits connections, bytes per frame, bytes per second, the total size of large buffers, and the
// time to complete a hello or a frame. A connection has a publisher and a buffer of 64 KiB; a larger frame
// needs a buffer from a shared pool, and waits until one is available. Config.Memory returns the sum.
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

// Server accepts and serves clients on a Unix socket.
type Server struct {
	shared
	listener *socket.Listener
	refused  frameReader // reader of the connection that refuse handles; used by the accept loop only

	mu        sync.Mutex
	conns     map[*conn]struct{}
	ofProcess map[int32]int // number of connections by process ID, which is 0 if the kernel does not report it
	stopping  bool

	accepting sync.WaitGroup  // accept loop
	serving   sync.WaitGroup  // connections
	loops     sync.WaitGroup  // announceLoop and the watcher of the socket
	closing   context.Context // done after Close
	close     context.CancelFunc
	stopped   chan struct{} // closed when Drain no longer waits for anything
}

// New creates a Server and opens its socket. Clients are accepted after Start.
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
	s.buffers = newLargeBuffers(int64(config.MaxBufferBytes), s.stopped)
	s.closing, s.close = context.WithCancel(context.Background())
	return s, nil
}

// Abandon closes the socket of a Server that has not been started.
func (s *Server) Abandon() {
	s.close()
	s.listener.Close()
}

// Start starts to accept clients. It starts three goroutines, and one for each connection.
func (s *Server) Start() {
	features, changed := s.config.Features()
	s.features.Store(&features)
	s.accepting.Go(s.acceptLoop)
	s.loops.Go(func() { s.announceLoop(changed) })
	s.loops.Go(func() { s.listener.Watch(s.draining, s.config.Log) })
}

// acceptLoop accepts clients until the listener is closed. If accepting fails, it retries after a pause.
func (s *Server) acceptLoop() {
	for {
		conn, err := s.listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// Most likely, the process is out of file descriptors, which other connections may free.
			s.config.Log.Warn("can't accept a connection; raise the limit of open files if this persists",
				"error", err)
			pause := time.Second
			if s.isDraining() {
				pause = 10 * time.Millisecond // all connections are about to end
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

// add starts to serve a new connection, or refuses it.
func (s *Server) add(socket *net.UnixConn) {
	c := &conn{shared: &s.shared, socket: socket, since: time.Now()}
	s.counters.accepted.Add(1)
	err := c.authenticate()
	if err == nil {
		err = s.register(c)
	}
	if err != nil {
		s.refuse(c, err)
		return
	}
	rate := newThrottle(s.config.MaxByteRate, s.draining, &s.counters.throttled)
	c.flushContext, c.cancelFlushes = context.WithCancel(s.closing)
	c.frames = newFrameReader(socket, s.config.MaxFrame, s.config.ReadTimeout, rate, s.buffers)
	go func() {
		defer s.remove(c)
		c.serve()
	}()
}

// register adds a connection, unless the limit of all connections, or of one process, is reached. A
// process can have half of all connections. Unlike package conns, register does not evict an idle
// connection for a new one: an evicted client would lose the keys that it has defined, and the new
// client gets an error that names the flag. During a shutdown, register closes the read side, as Drain
// has done for earlier connections.
func (s *Server) register(c *conn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	most, process := s.config.MaxConnections, c.peer.PID
	switch {
	case len(s.conns) >= most:
		return faultf(FaultTooManyConnections, "accept connection: the maximum of %d connections is reached; "+
			"raise --max-connections", most)
	case process != 0 && s.ofProcess[process] >= max(1, most/2):
		return faultf(FaultTooManyConnections, "accept connection: process %d has %d connections, half of the "+
			"maximum; raise --max-connections", process, s.ofProcess[process])
	}
	s.conns[c] = struct{}{}
	s.ofProcess[process]++
	s.serving.Add(1)
	if s.stopping {
		_ = c.socket.CloseRead() // fails only if the client has closed the connection
	}
	return nil
}

// refuse ends a connection that can't be served: it sends a bye, and counts spans that the client has
// already written as dropped. It runs in the accept loop, so one buffer suffices for all refused
// connections.
func (s *Server) refuse(c *conn, err error) {
	defer c.socket.Close()
	c.frames = &s.refused
	*c.frames = frameReader{conn: c.socket, base: s.refused.base, buf: s.refused.base}
	c.fail(err)
	c.dropRemaining()
}

// remove removes a connection that has ended. After the last one, it frees the spare buffers.
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

// announceLoop sends changed features to all clients, and numbers of settled spans to those that have
// requested them, until Close.
func (s *Server) announceLoop(featuresChanged <-chan struct{}) {
	_, settledChanged := s.config.Settled()
	for {
		select {
		case <-featuresChanged:
			featuresChanged = s.announceFeatures()
		case <-settledChanged:
			settledChanged = s.announceSettled()
		case <-s.closing.Done():
			return
		}
	}
}

// announceFeatures sends the current features to all clients, concurrently, so that a client that does
// not read does not delay others. It returns a channel that is closed at the next change.
func (s *Server) announceFeatures() (changed <-chan struct{}) {
	features, changed := s.config.Features()
	s.features.Store(&features)
	var writes sync.WaitGroup
	for _, c := range s.connections() {
		writes.Go(func() { c.sendFeatures(&features) })
	}
	writes.Wait()
	return changed
}

// announceSettled sends the numbers of settled spans to clients. It writes to one client after the other,
// because a write takes microseconds and a client that does not read is disconnected. It returns a
// channel that is closed at the next change.
func (s *Server) announceSettled() (changed <-chan struct{}) {
	firstUnsettled, changed := s.config.Settled()
	for _, c := range s.connections() {
		c.sendSettled(firstUnsettled, s.features.Load())
	}
	return changed
}

func (s *Server) connections() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.conns))
}

var byeShutdown = wire.Bye{Reason: "shutdown", Detail: "the daemon stops; what it took is counted"}

// Drain stops the server after it has read all data that clients have written so far. It accepts clients
// in the accept queue and refuses later ones. It closes the read side of each Unix socket: data that a client has written
// before can still be read, and later writes fail, so the client knows that the daemon has not received them.
//
// When ctx is done, Drain counts the spans that are still unread as dropped. It still reads them, but
// does not wait for anything else, and returns an error.
func (s *Server) Drain(ctx context.Context) error {
	s.mu.Lock()
	s.stopping = true
	s.mu.Unlock()
	close(s.draining)
	s.listener.Shut()
	for _, c := range s.connections() {
		_ = c.socket.CloseRead() // fails only if the client has closed the connection
	}
	done := make(chan struct{})
	go func() {
		s.accepting.Wait()
		s.listener.Close() // also removes the socket file, so that another daemon can start
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

// Stats returns the statistics of connections and frames.
func (s *Server) Stats() Stats {
	stats := s.counters.stats()
	stats.FramesWaited = s.buffers.waits.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	stats.Connections = len(s.conns)
	return stats
}

// Lack returns the reason why clients can't connect to the socket, or nil if they can.
func (s *Server) Unreachable() error { return s.listener.Unreachable() }

// Close stops the remaining goroutines after Drain.
func (s *Server) Close() {
	s.close()
	s.loops.Wait()
}

// shared is the state of a Server that its connections use.
type shared struct {
	config   Config
	log      faultLog
	counters counters
	buffers  *largeBuffers
	features atomic.Pointer[wire.Features]
	draining chan struct{} // closed when a shutdown begins

	credentials func(*net.UnixConn) (socket.Peer, error)
}

// isDraining reports whether a shutdown has begun.
func (s *shared) isDraining() bool {
	select {
	case <-s.draining:
		return true
	default:
		return false
	}
}

// Tracer describes a connected client on the status page.
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
	Dropped   uint64    `json:"dropped"` // part of Received
	Lost      uint64    `json:"lost"`    // not received, according to the client
}

// Tracers returns the connected clients that have sent a hello, oldest connection first.
func (s *Server) Tracers() []Tracer {
	tracers := []Tracer{}
	for _, c := range s.connections() {
		if t := c.tracer.Load(); t != nil {
			tracer := *t
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
