package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
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

// expiredDeadline is a deadline that ends all current reads or writes immediately.
var expiredDeadline = time.Unix(1, 0)

// connection is a connection to a daemon. The sender writes to it, and a reader goroutine reads from it.
type connection struct {
	socket      *net.UnixConn
	in          *bufio.Reader
	welcome     wire.Welcome
	connectedAt time.Time

	stopInterrupt func() bool // after a call, the end of Client.ctx no longer interrupts reads and writes

	ended     chan struct{} // closed when the connection has ended
	endReason error         // why the connection has ended; set before ended is closed

	sent    atomic.Uint64 // number of spans that were sent; written by the sender
	settled atomic.Uint64 // number of these spans that the daemon has reported as settled

	mu      sync.Mutex
	flushes map[uint64]*flush // flush requests without a response, by ID
	lastID  uint64            // ID of the last flush request
}

// dialSocket connects to the configured socket path. If none is configured, it tries the default paths in order and
// uses the first that works. If all paths fail, it returns the error for the first one.
func dialSocket(c *Client) (*net.UnixConn, error) {
	paths := []string{c.config.Socket}
	if c.config.Socket == "" {
		paths = socketpath.ForClients()
	}
	var firstErr error
	dialer := net.Dialer{Timeout: handshakeTimeout}
	for _, path := range paths {
		conn, err := dialer.DialContext(c.ctx, "unix", path)
		if err == nil {
			return conn.(*net.UnixConn), nil
		}
		if firstErr == nil {
			firstErr = err
		}
	}
	return nil, firstErr
}

// dial connects to the daemon and exchanges the first messages, hello and welcome. It applies the features in the
// daemon's welcome, such as whether the daemon wants statistics. If endedConn, an earlier connection, is not nil, the
// hello asks the daemon which spans of that connection were delivered.
func dial(c *Client, endedConn *connection) (*connection, error) {
	socket, err := dialSocket(c)
	if err != nil {
		return nil, err
	}
	conn := newConnection(c.ctx, socket)
	hello := wire.Hello{
		Version: wire.Version,
		Client:  c.config.Name,
		Origin:  c.config.Origin,
		Settled: true, // the daemon shall report how many spans it has delivered or lost
	}
	if endedConn != nil {
		hello.Earlier = endedConn.welcome.Token // identifies the earlier connection
	}
	if err := conn.greet(c.ctx, &hello); err != nil {
		conn.stopInterrupt()
		socket.Close()
		return nil, fmt.Errorf("greet daemon: %w", err)
	}
	c.applyFeatures(conn.welcome.Features)
	return conn, nil
}

// newConnection returns a connection that uses the socket. The connection's reads and writes fail when ctx is done.
// They also fail after handshakeTimeout, unless the caller removes the deadline of the socket.
func newConnection(ctx context.Context, socket *net.UnixConn) *connection {
	_ = socket.SetWriteBuffer(wire.SendBuffer) // the kernel applies its own maximum
	now := time.Now()
	socket.SetDeadline(now.Add(handshakeTimeout))
	interrupt := func() { socket.SetDeadline(expiredDeadline) }
	return &connection{
		socket:        socket,
		in:            bufio.NewReader(socket),
		connectedAt:   now,
		ended:         make(chan struct{}),
		flushes:       map[uint64]*flush{},
		stopInterrupt: context.AfterFunc(ctx, interrupt),
	}
}

// greet performs the handshake, and then removes the deadline of the handshake from the socket. It returns an error if
// the handshake fails or ctx has ended.
func (conn *connection) greet(ctx context.Context, hello *wire.Hello) error {
	err := conn.exchangeHello(hello)
	conn.socket.SetDeadline(time.Time{})
	return errors.Join(err, ctx.Err()) // the line above can remove the deadline that the end of ctx has set
}

// exchangeHello sends a hello, and reads the daemon's welcome into conn.welcome.
func (conn *connection) exchangeHello(hello *wire.Hello) error {
	if _, err := conn.socket.Write(wire.AppendHello(nil, hello)); err != nil {
		return fmt.Errorf("write hello: %w", err)
	}
	kind, body, err := conn.readMessage()
	if err != nil {
		return fmt.Errorf("read welcome: %w", err)
	}
	switch kind {
	case wire.TypeBye:
		return decodeBye(body)
	case wire.TypeWelcome:
		welcome, err := wire.DecodeWelcome(body)
		if err != nil {
			return err
		}
		conn.welcome = welcome
		return checkWelcome(&welcome)
	}
	return fmt.Errorf("read welcome: the daemon sent %s instead", kind)
}

// checkWelcome returns an error if the client cannot work with the daemon's version or limits.
func checkWelcome(welcome *wire.Welcome) error {
	switch {
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
	return nil
}

// readMessage reads the next message of the daemon, and returns its type and body.
func (conn *connection) readMessage() (kind wire.Type, body []byte, err error) {
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

// requestFlush sends a flush request. The goroutine that reads from the connection passes the response to f.
func (conn *connection) requestFlush(f *flush) error {
	id := conn.addFlush(f)
	request := wire.AppendFlush(nil, &wire.Flush{ID: id})
	if _, err := conn.socket.Write(request); err != nil {
		conn.takeFlush(id) // the daemon has not received the request, so f can be sent on the next connection
		return fmt.Errorf("write flush: %w", err)
	}
	return nil
}

// addFlush stores a flush request until the daemon responds, and returns the ID that it assigns to the request. It
// also removes stored requests whose context is done.
func (conn *connection) addFlush(f *flush) (id uint64) {
	conn.mu.Lock()
	defer conn.mu.Unlock()
	maps.DeleteFunc(conn.flushes, func(_ uint64, stored *flush) bool { return stored.ctx.Err() != nil })
	conn.lastID++
	conn.flushes[conn.lastID] = f
	return conn.lastID
}

// takeFlush removes the flush request with this ID and returns it. It returns nil if there is none.
func (conn *connection) takeFlush(id uint64) *flush {
	conn.mu.Lock()
	defer conn.mu.Unlock()
	f := conn.flushes[id]
	delete(conn.flushes, id)
	return f
}

// close closes the connection and waits until the goroutine that reads from it has ended. Calls of Flush that still
// wait for the daemon's response then return an error.
func (conn *connection) close() {
	conn.stopInterrupt()
	conn.socket.Close()
	<-conn.ended
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

// limit returns the maximum length of the next pause.
func (b *backoff) limit() time.Duration {
	doublings := min(b.failures, maxDoublings)
	return min(minBackoff<<doublings, b.max)
}

// reset resets the limit if the last connection lasted longer than the maximum pause. A shorter connection counts as a
// failed attempt, so that a daemon that closes each connection is not called in a tight loop.
func (b *backoff) reset(lasted time.Duration) {
	if lasted > b.max {
		b.failures = 0
	}
}

// read handles the daemon's messages until the connection ends. It runs in a goroutine of its own.
func (conn *connection) read(c *Client) {
	defer close(conn.ended)
	for conn.endReason == nil {
		kind, body, err := conn.readMessage()
		if err == nil {
			err = conn.handle(c, kind, body)
		}
		conn.endReason = err
	}
	// Interrupt a write in progress, so that the sender gets the number of bytes that were sent.
	conn.socket.SetWriteDeadline(expiredDeadline)
}

// handle handles a message of the daemon. It returns an error if the connection must end.
func (conn *connection) handle(c *Client, kind wire.Type, body []byte) error {
	switch kind {
	case wire.TypeFeatures:
		announcement, err := wire.DecodeFeatures(body)
		if err != nil {
			return err
		}
		conn.recordSettled(announcement.Settled) // number of spans that are delivered or counted as lost
		c.applyFeatures(announcement.Features)
		return nil
	case wire.TypeFlush:
		response, err := wire.DecodeFlush(body)
		if err != nil {
			return err
		}
		// The daemon reports delivered spans separately: Prometheus, for example, has them only after its next scrape.
		if f := conn.takeFlush(response.ID); f != nil {
			f.resolve(response)
		}
		return nil
	case wire.TypeBye:
		return decodeBye(body)
	}
	return fmt.Errorf("the daemon sent an unexpected %s", kind)
}

// endedCleanly reports whether the daemon has ended the connection, by closing it or with a bye. Otherwise, the
// connection has failed. It must be called after the end of the connection.
func (conn *connection) endedCleanly() bool {
	return errors.Is(conn.endReason, io.EOF) || conn.saidBye()
}

// saidBye reports whether the daemon has ended the connection with a bye, the message that announces a shutdown.
func (conn *connection) saidBye() bool {
	var bye *byeError
	return errors.As(conn.endReason, &bye)
}

// hasCrashed reports whether the connection has ended without a bye, and was not closed by the client: the daemon
// has crashed.
func (conn *connection) hasCrashed() bool {
	return errors.Is(conn.endReason, io.EOF) || errors.Is(conn.endReason, io.ErrUnexpectedEOF) ||
		errors.Is(conn.endReason, syscall.ECONNRESET)
}

// byeError is a bye message of the daemon, as the reason why the connection has ended.
type byeError wire.Bye

// decodeBye decodes a bye, the message with the reason for which the daemon ends the connection. It returns the
// reason as a byeError, or another error if the message is malformed.
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

// recordSettled records that the daemon has reported the outcome of so many spans, the first ones of the connection. It
// ignores a number that is lower than an earlier one. It must not be called concurrently.
func (conn *connection) recordSettled(spans uint64) {
	conn.settled.Store(max(conn.settled.Load(), spans))
}

// unsettled returns the number of sent spans that the daemon has reported neither as delivered nor as lost. It
// returns 0 if the daemon does not send such reports.
func (conn *connection) unsettled() uint64 {
	if !conn.welcome.Settled {
		return 0
	}
	settled := conn.settled.Load()
	sent := max(conn.sent.Load(), settled) // the daemon can report spans before the sender has counted them
	return sent - settled
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

// applyFeatures applies the features that the daemon has announced: Publish accepts spans if the daemon wants
// statistics, and refuses them otherwise. It must not be called concurrently.
func (c *Client) applyFeatures(announced Features) {
	if announced.Stats {
		c.gate.open()
	} else {
		c.gate.refuse(notWanted)
	}
	c.features.set(announced)
}

// set stores newFeatures. If they differ from the stored features, it sends a signal on the channel f.changes. It must
// not be called concurrently.
func (f *features) set(newFeatures Features) {
	if reflect.DeepEqual(newFeatures, *f.current.Load()) {
		return
	}
	f.current.Store(&newFeatures)
	select {
	case f.changes <- struct{}{}:
	default: // a signal is pending already
	}
}

// gate decides whether Publish accepts snapshots. It is closed while the daemon wants no statistics or is unavailable
// for too long, and permanently by Close.
type gate struct{ reason atomic.Uint32 }

// closedReason returns the reason why the gate is closed, or noReason if it is open.
func (g *gate) closedReason() reason { return reason(g.reason.Load()) }

// open makes Publish accept spans, unless the client is closed.
func (g *gate) open() { g.setReason(noReason) }

// refuse makes Publish refuse spans for the given reason, unless the client is closed.
func (g *gate) refuse(newReason reason) { g.setReason(newReason) }

// setReason replaces the reason, but not the reason closed: a closed client is never reopened.
func (g *gate) setReason(newReason reason) {
	for {
		current := g.reason.Load()
		if reason(current) == closed {
			return
		}
		if g.reason.CompareAndSwap(current, uint32(newReason)) {
			return
		}
	}
}
