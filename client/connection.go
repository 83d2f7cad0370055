package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"reflect"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/ingest/socketpath"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// handshakeTimeout is the maximum time from connecting to the daemon's welcome.
const handshakeTimeout = 5 * time.Second

// byeTimeout is how long the client waits for the daemon's bye after a write has failed. A daemon that has
// not closed the connection by then has not crashed.
const byeTimeout = 5 * time.Second

// longAgo is a deadline that ends all current reads or writes immediately.
var longAgo = time.Unix(1, 0)

// connection is a connection to a daemon. The sender writes to it, and a reader goroutine reads from it.
type connection struct {
	socket  *net.UnixConn
	in      *bufio.Reader
	welcome wire.Welcome
	since   time.Time

	stopAbort func() bool // stops the watch of Client.aborted, which ends reads and writes

	gone   chan struct{} // closed by the reader when the connection has ended
	ending error         // reason; set before gone is closed

	sent    atomic.Uint64 // number of spans that were sent; written by the sender
	settled atomic.Uint64 // number of these spans that the daemon has reported as settled

	mu      sync.Mutex
	flushes map[uint64]*flush // requests without a response, by ID
	lastID  uint64
}

// connect connects to the configured path, or to the first default path at which a daemon listens. If it fails, it
// returns the error for the first path.
func connect(c *Client) (net.Conn, error) {
	paths := []string{c.config.Socket}
	if c.config.Socket == "" {
		paths = socketpath.ForClients()
	}
	var firstErr error
	dialer := net.Dialer{Timeout: handshakeTimeout}
	for _, path := range paths {
		conn, err := dialer.DialContext(c.aborted, "unix", path)
		if err == nil {
			return conn, nil
		}
		if firstErr == nil {
			firstErr = err
		}
	}
	return nil, firstErr
}

// dial connects and exchanges hello and welcome. earlier is a connection to a previous daemon whose unsettled spans the
// hello asks about, or nil. When dial returns, the features of the welcome apply.
func dial(c *Client, earlier *connection) (*connection, error) {
	netConn, err := connect(c)
	if err != nil {
		return nil, err
	}
	socket := netConn.(*net.UnixConn)
	_ = socket.SetWriteBuffer(wire.SendBuffer) // the kernel applies its own maximum
	conn := &connection{
		socket:  socket,
		in:      bufio.NewReader(socket),
		since:   time.Now(),
		gone:    make(chan struct{}),
		flushes: map[uint64]*flush{},
	}
	socket.SetDeadline(conn.since.Add(handshakeTimeout))
	conn.stopAbort = context.AfterFunc(c.aborted, func() { socket.SetDeadline(longAgo) })
	hello := wire.Hello{Version: wire.Version, Client: c.config.Name, Origin: c.config.Origin, Settled: true}
	if earlier != nil {
		hello.Earlier = earlier.welcome.Token
	}
	err = conn.greet(&hello)
	socket.SetDeadline(time.Time{})
	// The line above may have overwritten the deadline of the abort.
	if err = errors.Join(err, c.aborted.Err()); err != nil {
		conn.stopAbort()
		socket.Close()
		return nil, fmt.Errorf("greet daemon: %w", err)
	}
	c.features.set(conn.welcome.Features, &c.gate)
	return conn, nil
}

// greet sends hello and reads the daemon's welcome.
func (conn *connection) greet(hello *wire.Hello) error {
	if _, err := conn.socket.Write(wire.AppendHello(nil, hello)); err != nil {
		return fmt.Errorf("write hello: %w", err)
	}
	t, body, err := conn.next()
	switch {
	case err != nil:
		return fmt.Errorf("read welcome: %w", err)
	case t == wire.TypeBye:
		return decodeBye(body)
	case t != wire.TypeWelcome:
		return fmt.Errorf("read welcome: the daemon sent %s instead", t)
	}
	welcome, err := wire.DecodeWelcome(body)
	switch {
	case err != nil:
		return err
	case welcome.Version != wire.Version:
		return fmt.Errorf("the daemon supports version %d of the protocol, this client version %d; upgrade the "+
			"older one", welcome.Version, wire.Version)
	case welcome.MaxKeys < maxKeys:
		return fmt.Errorf("the daemon accepts %d keys per connection, this client defines up to %d; upgrade the "+
			"daemon", welcome.MaxKeys, maxKeys)
	case welcome.MaxKeyBytes != 0 && welcome.MaxKeyBytes < maxKeyCost:
		return fmt.Errorf("the daemon accepts %d bytes of keys per connection, this client needs up to %d; "+
			"raise --max-key-bytes of the daemon", welcome.MaxKeyBytes,
			maxKeyCost)
	}
	conn.welcome = welcome
	return nil
}

// next reads the next message.
func (conn *connection) next() (wire.Type, []byte, error) {
	var header [wire.HeaderLen]byte
	if _, err := io.ReadFull(conn.in, header[:]); err != nil {
		return 0, nil, err
	}
	length := wire.FrameLength(header[:])
	if length > wire.DefaultMaxFrame {
		return 0, nil, fmt.Errorf("the daemon sent a message of %d bytes; the maximum is %d", length,
			wire.DefaultMaxFrame)
	}
	message := make([]byte, length)
	if _, err := io.ReadFull(conn.in, message); err != nil {
		return 0, nil, err
	}
	return wire.Split(message)
}

// requestFlush sends a flush request. The reader passes the response to f.
func (conn *connection) requestFlush(f *flush) error {
	conn.mu.Lock()
	conn.lastID++
	id := conn.lastID
	for id, asked := range conn.flushes {
		if asked.ctx.Err() != nil {
			delete(conn.flushes, id) // its caller no longer waits
		}
	}
	conn.flushes[id] = f
	conn.mu.Unlock()
	if _, err := conn.socket.Write(wire.AppendFlush(nil, &wire.Flush{ID: id})); err != nil {
		// The daemon has not received the request, so f can be sent on the next connection.
		conn.mu.Lock()
		delete(conn.flushes, id)
		conn.mu.Unlock()
		return fmt.Errorf("write flush: %w", err)
	}
	return nil
}

// close closes the connection and waits for its reader. It fails all flushes without a response.
func (conn *connection) close() {
	conn.stopAbort()
	conn.socket.Close()
	<-conn.gone
	for _, f := range conn.flushes {
		f.fail(errDisconnected)
	}
}

const (
	minBackoff   = 50 * time.Millisecond
	maxDoublings = 32 // more than any pause needs, and within the range of time.Duration
)

// backoff computes the pauses between attempts to connect. A pause is a random part of a limit that doubles after each
// failure, so that the tracers of a pod do not all reconnect at the same time.
type backoff struct {
	max      time.Duration
	failures int
}

// next returns the pause after another failure.
func (b *backoff) next() time.Duration {
	limit := b.limit()
	b.failures++
	return rand.N(limit) + 1
}

func (b *backoff) limit() time.Duration {
	return min(minBackoff<<min(b.failures, maxDoublings), b.max)
}

// reset resets the limit if the last connection lasted longer than the maximum pause. A connection that the
// daemon closes immediately counts as a failure.
func (b *backoff) reset(lasted time.Duration) {
	if lasted > b.max {
		b.failures = 0
	}
}

// read handles the daemon's messages until the connection ends, and then ends the current write. The write returns how
// many bytes the socket has accepted, so the client knows which spans were sent.
func (conn *connection) read(c *Client) {
	defer close(conn.gone)
	for conn.ending == nil {
		t, body, err := conn.next()
		if err == nil {
			err = conn.handle(c, t, body)
		}
		conn.ending = err
	}
	conn.socket.SetWriteDeadline(longAgo)
}

// handle handles one message of the daemon. An error ends the connection.
func (conn *connection) handle(c *Client, t wire.Type, body []byte) error {
	switch t {
	case wire.TypeFeatures:
		announcement, err := wire.DecodeFeatures(body)
		if err != nil {
			return err
		}
		conn.settle(announcement.Settled)
		c.features.set(announcement.Features, &c.gate)
		return nil
	case wire.TypeFlush:
		response, err := wire.DecodeFlush(body)
		if err != nil {
			return err
		}
		conn.handleFlush(response)
		return nil
	case wire.TypeBye:
		return decodeBye(body)
	}
	return fmt.Errorf("the daemon sent an unexpected %s", t)
}

// handleFlush passes the response to the caller of Flush. A successful flush does not settle spans: a destination that is
// scraped has them only after its next scrape.
func (conn *connection) handleFlush(response wire.Flush) {
	conn.mu.Lock()
	f := conn.flushes[response.ID]
	delete(conn.flushes, response.ID)
	conn.mu.Unlock()
	if f == nil {
		return
	}
	f.resolve(response)
}

// endedCleanly reports whether the daemon has closed the connection or said bye, rather than the connection failing.
func (conn *connection) endedCleanly() bool {
	return errors.Is(conn.ending, io.EOF) || conn.saidBye()
}

// saidBye reports whether the daemon has said bye.
func (conn *connection) saidBye() bool {
	var bye *byeError
	return errors.As(conn.ending, &bye)
}

// byeError is a bye message of the daemon, as the reason why the connection has ended.
type byeError wire.Bye

// decodeBye returns a bye message as a byeError, or the error of decoding it.
func decodeBye(body []byte) error {
	bye, err := wire.DecodeBye(body)
	if err != nil {
		return err
	}
	return (*byeError)(&bye)
}

func (e *byeError) Error() string {
	s := "the daemon said bye: " + e.Reason
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	if len(e.Versions) > 0 {
		s += fmt.Sprintf(", it speaks versions %d", e.Versions)
	}
	return s
}

// settle records that the first spans of the connection are settled. spans is their number. A number below
// an earlier one has no effect. The reader calls settle, and after the reader has ended, the sender.
func (conn *connection) settle(spans uint64) {
	conn.settled.Store(max(conn.settled.Load(), spans))
}

// unsettled returns the number of spans that were sent and are not settled. It returns 0 if the daemon does
// not report settled spans.
func (conn *connection) unsettled() uint64 {
	if !conn.welcome.Settled {
		return 0
	}
	settled := conn.settled.Load()
	return max(conn.sent.Load(), settled) - settled
}

// died reports whether the connection has ended without a bye, and was not closed by the client: the daemon
// has crashed.
func (conn *connection) hasCrashed() bool {
	return errors.Is(conn.ending, io.EOF) || errors.Is(conn.ending, io.ErrUnexpectedEOF) ||
		errors.Is(conn.ending, syscall.ECONNRESET)
}

// Features describes which spans the Datadog agent wants counted, and how: whether it wants statistics at
// all, peer tags, span kinds, and ignored resources.
type Features = wire.Features

// features contains the features that the daemon sent last.
type features struct {
	current atomic.Pointer[Features]
	changes chan struct{} // has a buffer for one value
}

// newFeatures returns the features that apply before the daemon has sent any: statistics are wanted.
func newFeatures() *features {
	f := &features{changes: make(chan struct{}, 1)}
	f.current.Store(&Features{Stats: true})
	return f
}

// set sets the features, and closes the gate while no statistics are wanted. It must not be called concurrently.
func (f *features) set(features Features, g *gate) {
	if features.Stats {
		g.set(none)
	} else {
		g.set(notWanted)
	}
	if reflect.DeepEqual(features, *f.current.Load()) {
		return
	}
	f.current.Store(&features)
	select {
	case f.changes <- struct{}{}:
	default:
	}
}

// gate decides whether Publish accepts snapshots. It is closed while the daemon wants no statistics or is unavailable
// for too long, and permanently by Close.
type gate struct{ reason atomic.Uint32 }

// closedReason returns the reason why the gate is closed, or none if it is open.
func (g *gate) closedReason() reason { return reason(g.reason.Load()) }

// set opens the gate if r is none, and otherwise closes it. It does nothing after the gate was closed permanently.
func (g *gate) set(r reason) {
	for old := g.reason.Load(); reason(old) != closed; old = g.reason.Load() {
		if g.reason.CompareAndSwap(old, uint32(r)) {
			return
		}
	}
}
