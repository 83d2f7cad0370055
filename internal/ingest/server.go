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
	listener     *socket.Listener
	refuseBuffer []byte // read buffer of refuse; used by the accept loop only

	mu             sync.Mutex
	conns          map[*conn]struct{}
	connsOfProcess map[int32]int // number of connections by process ID, which is 0 if the kernel does not report it
	isStopping     bool

	accepting sync.WaitGroup  // accept loop
	serving   sync.WaitGroup  // connections
	loops     sync.WaitGroup  // announceLoop and the watcher of the socket
	closing   context.Context // done after Close
	close     context.CancelFunc
	stopped   chan struct{} // closed by Drain when no reader may wait for memory any more
}

// New creates a Server and opens its socket. Clients are accepted after Start.
func New(config Config) (*Server, error) {
	if err := config.Check(); err != nil {
		return nil, err
	}
	listener, err := socket.Listen(config.Socket)
	if err != nil {
		return nil, err
	}
	s := &Server{
		shared: shared{
			config:          config,
			log:             newFaultLog(config.Log),
			draining:        make(chan struct{}),
			readCredentials: socket.ReadCredentials,
		},
		listener:       listener,
		conns:          map[*conn]struct{}{},
		connsOfProcess: map[int32]int{},
		stopped:        make(chan struct{}),
	}
	s.refuseBuffer = make([]byte, baseBuffer)
	s.buffers = newLargeBuffers(int64(config.MaxBufferBytes), s.stopped)
	s.closing, s.close = context.WithCancel(context.Background())
	return s, nil
}

// Abandon closes the socket of a Server that has not been started.
func (s *Server) Abandon() {
	s.close()
	s.listener.Close()
}

// Start starts to accept clients. It starts three goroutines of the Server, and later one per connection.
func (s *Server) Start() {
	features, featuresChanged := s.config.Features()
	s.features.Store(&features)
	s.accepting.Go(s.acceptLoop)
	s.loops.Go(func() { s.announceLoop(featuresChanged) })
	s.loops.Go(func() { s.listener.Watch(s.draining, s.config.Log) })
}

// acceptLoop accepts clients until the listener is closed. If accepting fails, it retries after a pause.
func (s *Server) acceptLoop() {
	for {
		socket, err := s.listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			s.add(socket)
			continue
		}
		s.config.Log.Warn("can't accept a connection; raise the limit of open files if this persists",
			"error", err)
		if isStopped := s.pauseAccepting(); isStopped {
			return
		}
	}
}

// pauseAccepting waits before the next attempt to accept a connection, because the process may have no free file
// descriptor until another connection ends. It returns true if s.stopped is closed while it waits.
func (s *Server) pauseAccepting() (isStopped bool) {
	pause := time.Second
	if s.isDraining() {
		pause = 10 * time.Millisecond // all connections are about to end
	}
	select {
	case <-time.After(pause):
		return false
	case <-s.stopped:
		return true
	}
}

// add starts a goroutine that serves a new connection. If the user of the client is not allowed, or if there are
// too many connections, it sends an error to the client and closes the connection instead.
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
	c.flushContext, c.cancelFlushes = context.WithCancel(s.closing)
	c.frames = s.newFrameReader(socket)
	go func() {
		defer s.remove(c)
		c.serve()
	}()
}

// newFrameReader returns a reader for the messages of a client. It limits the number of bytes per second until
// s.draining is closed.
func (s *Server) newFrameReader(socket *net.UnixConn) *frameReader {
	rate := newThrottle(s.config.MaxByteRate, s.draining, &s.counters.throttled)
	return newFrameReader(socket, s.config.MaxFrame, s.config.ReadTimeout, rate, s.buffers)
}

// register adds c to the open connections of the server. It returns an error if the maximum number of connections
// is reached, or if the client's process already has half of that number. While the server stops, it also closes
// the read side of c, so that the client can't write any more.
func (s *Server) register(c *conn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.checkLimits(c.peer.PID); err != nil {
		return err
	}
	s.conns[c] = struct{}{}
	s.connsOfProcess[c.peer.PID]++
	s.serving.Add(1)
	if s.isStopping {
		_ = c.socket.CloseRead() // fails only if the client has closed the connection
	}
	return nil
}

// checkLimits returns an error if there are too many connections to accept another one from the process pid. pid is
// 0 if it is unknown; then only the total is limited. The caller must hold s.mu.
func (s *Server) checkLimits(pid int32) error {
	maxConnections := s.config.MaxConnections
	if len(s.conns) >= maxConnections {
		return faultf(FaultTooManyConnections, "accept connection: the maximum of %d connections is reached; "+
			"raise --max-connections", maxConnections)
	}
	maxPerProcess := max(1, maxConnections/2)
	if pid != 0 && s.connsOfProcess[pid] >= maxPerProcess {
		return faultf(FaultTooManyConnections, "accept connection: process %d has %d connections, half of the "+
			"maximum; raise --max-connections", pid, s.connsOfProcess[pid])
	}
	return nil
}

// refuse sends err to the client of a new connection and closes the connection. Spans that the client has already
// written are counted as dropped. Only the accept loop may call refuse, because all calls use s.refuseBuffer.
func (s *Server) refuse(c *conn, err error) {
	defer c.socket.Close()
	c.frames = &frameReader{conn: c.socket, base: s.refuseBuffer, buf: s.refuseBuffer}
	c.fail(err)
	c.dropRemaining()
}

// remove removes a connection that has ended. After the last connection, it frees unused large buffers.
func (s *Server) remove(c *conn) {
	s.mu.Lock()
	defer s.serving.Done()
	defer s.mu.Unlock()
	delete(s.conns, c)
	pid := c.peer.PID
	s.connsOfProcess[pid]--
	if s.connsOfProcess[pid] == 0 {
		delete(s.connsOfProcess, pid)
	}
	if len(s.conns) == 0 {
		s.buffers.pool.DropSpares()
	}
}

// announceLoop tells clients when the daemon's features change, and when more of their spans are settled, that is
// delivered or finally dropped. It returns after Close.
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

// announceFeatures sends the current features of the daemon to all clients. It writes to them concurrently, so that
// a client that does not read delays no other. The returned channel is closed when the features change again.
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

// announceSettled tells each client how many of its spans are settled, that is delivered or finally dropped: all spans
// of the export intervals before the first unsettled one. The returned channel is closed when more spans are settled.
// The clients are written to one after the other: a write takes microseconds, and a client that does not read is
// disconnected.
func (s *Server) announceSettled() (changed <-chan struct{}) {
	firstUnsettledInterval, changed := s.config.Settled()
	for _, c := range s.connections() {
		c.sendSettled(firstUnsettledInterval, s.features.Load())
	}
	return changed
}

// connections returns the current connections in any order.
func (s *Server) connections() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.conns))
}

var byeShutdown = wire.Bye{Reason: "shutdown", Detail: "the daemon stops; what it took is counted"}

// Drain stops accepting data, and returns when all data that clients have already written is handled. Later writes
// of clients fail, so they know that the daemon has not received that data. When ctx is done, Drain counts the
// remaining spans as dropped, and returns an error.
func (s *Server) Drain(ctx context.Context) error {
	s.rejectNewData()
	drained := doneAfter(func() {
		s.accepting.Wait()
		s.listener.Close() // also removes the socket file, so that another daemon can start
		s.serving.Wait()
	})
	var err error
	select {
	case <-drained:
	case <-ctx.Done():
		err = fmt.Errorf("drain connections: %w; raise --shutdown-grace", ctx.Err())
	}
	s.endWaits() // after ctx is done, this makes the remaining connections end
	<-drained    // already closed if ctx was not done
	return err
}

// rejectNewData makes new connections, and new writes of connected clients, fail. Pending connections can still be
// accepted, and data that clients have already written can still be read.
func (s *Server) rejectNewData() {
	s.mu.Lock()
	s.isStopping = true // connections that are accepted later can't write either
	s.mu.Unlock()
	close(s.draining)
	s.listener.RejectNew() // rejects new connections
	for _, c := range s.connections() {
		// On a Unix socket, this makes the client's next write fail, and keeps the data of earlier writes.
		_ = c.socket.CloseRead() // fails only if the client has closed the connection
	}
}

// endWaits ends all waits for memory or for free space in rings. From then on, all spans are read
// and counted as dropped.
func (s *Server) endWaits() {
	close(s.stopped)
	s.config.Admit.Stop()
}

// Stats returns the current statistics of connections and frames.
func (s *Server) Stats() Stats {
	stats := s.counters.stats()
	stats.FramesWaited = s.buffers.waits.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	stats.Connections = len(s.conns)
	return stats
}

// Unreachable returns the reason why clients can't connect to the socket, or nil if they can.
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

	readCredentials func(*net.UnixConn) (socket.Peer, error)
}

// isDraining reports whether the daemon has begun to shut down.
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

// Tracers returns a description of each connected client, ordered by the start of the connection, the oldest first.
// Clients that have not sent their first message are left out.
func (s *Server) Tracers() []Tracer {
	tracers := []Tracer{}
	for _, c := range s.connections() {
		description := c.clientInfo.Load()
		if description == nil {
			continue
		}
		tracer := *description
		tracer.Dropped = c.publisher.Dropped() // before Received, so that it is never larger
		tracer.Received = c.publisher.Received()
		tracer.Lost = c.lost.Load()
		tracers = append(tracers, tracer)
	}
	slices.SortFunc(tracers, func(a, b Tracer) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.PID, b.PID))
	})
	return tracers
}
