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

// handshakeLimit limits the time from connecting to the daemon's welcome.
const handshakeLimit = 5 * time.Second

// byeLimit limits the wait for a daemon's bye after a failed write. A daemon that is still
// connected after that has not crashed.
const byeLimit = 5 * time.Second

// longAgo, as a deadline, ends all pending reads and writes.
var longAgo = time.Unix(1, 0)

// connection is a connection to a daemon. The sender writes to it, and a reader goroutine reads
// from it.
type connection struct {
	conn  *net.UnixConn
	in    *bufio.Reader
	says  wire.Welcome // the daemon's welcome
	since time.Time

	release func() bool // cancels the effect of Client.abort on the connection

	gone   chan struct{} // closed by the reader at the end of the connection
	endErr error         // reason for the end, set before gone is closed

	sent    atomic.Uint64 // spans written to the socket; set by the sender
	settled atomic.Uint64 // those with an outcome, as reported by the daemon

	mu      sync.Mutex
	flushes map[uint64]*flush // requested and not answered
	lastID  uint64
}

// connect connects to the configured socket, or to the first default socket path that accepts a
// connection. If none does, it returns the error of the first path.
func connect(c *Client) (net.Conn, error) {
	paths := []string{c.config.Socket}
	if c.config.Socket == "" {
		paths = socketpath.OfTracer()
	}
	var firstErr error
	dialer := net.Dialer{Timeout: handshakeLimit}
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

// dial connects and performs the handshake. It asks about the spans of an earlier connection, if
// there is one. When it returns, the features of the welcome are in effect.
func dial(c *Client, earlier *connection) (*connection, error) {
	conn, err := connect(c)
	if err != nil {
		return nil, err
	}
	socket := conn.(*net.UnixConn)
	_ = socket.SetWriteBuffer(wire.SendBuffer) // limited by the kernel
	l := &connection{
		conn:    socket,
		in:      bufio.NewReader(conn),
		since:   time.Now(),
		gone:    make(chan struct{}),
		flushes: map[uint64]*flush{},
	}
	conn.SetDeadline(l.since.Add(handshakeLimit))
	l.release = context.AfterFunc(c.aborted, func() { conn.SetDeadline(longAgo) })
	hello := wire.Hello{Version: wire.Version, Client: c.config.Name, Origin: c.config.Origin, Settled: true}
	if earlier != nil {
		hello.Earlier = earlier.says.Token
	}
	err = l.greet(&hello)
	conn.SetDeadline(time.Time{})
	// Resetting the deadline may have reverted that of an abort.
	if err = errors.Join(err, c.aborted.Err()); err != nil {
		l.release()
		conn.Close()
		return nil, fmt.Errorf("greet daemon: %w", err)
	}
	c.features.set(l.says.Features, &c.gate)
	return l, nil
}

// greet sends hello and reads the daemon's welcome.
func (l *connection) greet(hello *wire.Hello) error {
	if _, err := l.conn.Write(wire.AppendHello(nil, hello)); err != nil {
		return fmt.Errorf("write hello: %w", err)
	}
	t, body, err := l.next()
	switch {
	case err != nil:
		return fmt.Errorf("read welcome: %w", err)
	case t == wire.TypeBye:
		return byeFrom(body)
	case t != wire.TypeWelcome:
		return fmt.Errorf("read welcome: the daemon sent %s instead", t)
	}
	welcome, err := wire.DecodeWelcome(body)
	switch {
	case err != nil:
		return err
	case welcome.Version != wire.Version:
		return fmt.Errorf("the daemon speaks version %d of the protocol, this client %d: "+
			"upgrade the older", welcome.Version, wire.Version)
	case welcome.MaxKeys < maxKeys:
		return fmt.Errorf("the daemon takes %d keys a connection, a buffer of this client "+
			"defines up to %d: upgrade the daemon", welcome.MaxKeys, maxKeys)
	case welcome.MaxKeyBytes != 0 && welcome.MaxKeyBytes < maxKeyCost:
		return fmt.Errorf("the daemon has room for keys that cost %d a connection, those "+
			"of a buffer of this client may cost %d: raise its --max-key-bytes", welcome.MaxKeyBytes,
			maxKeyCost)
	}
	l.says = welcome
	return nil
}

// next reads one message.
func (l *connection) next() (wire.Type, []byte, error) {
	var header [wire.HeaderLen]byte
	if _, err := io.ReadFull(l.in, header[:]); err != nil {
		return 0, nil, err
	}
	length := wire.FrameLength(header[:])
	if length > wire.DefaultMaxFrame {
		return 0, nil, fmt.Errorf("a message of %d bytes, where a daemon sends at most %d", length,
			wire.DefaultMaxFrame)
	}
	message := make([]byte, length)
	if _, err := io.ReadFull(l.in, message); err != nil {
		return 0, nil, err
	}
	return wire.Split(message)
}

// ask requests a flush from the daemon. The reader passes the reply to f. Requests whose caller has
// stopped waiting are removed.
func (l *connection) ask(f *flush) error {
	l.mu.Lock()
	l.lastID++
	id := l.lastID
	for id, asked := range l.flushes {
		if asked.ctx.Err() != nil {
			delete(l.flushes, id)
		}
	}
	f.sent = l.sent.Load()
	l.flushes[id] = f
	l.mu.Unlock()
	if _, err := l.conn.Write(wire.AppendFlush(nil, &wire.Flush{ID: id})); err != nil {
		// The request was not sent, so it can be sent on the next connection.
		l.mu.Lock()
		delete(l.flushes, id)
		l.mu.Unlock()
		return fmt.Errorf("write flush: %w", err)
	}
	return nil
}

// close closes the connection and waits for its reader.
func (l *connection) close() {
	l.release()
	l.conn.Close()
	<-l.gone
	for _, f := range l.flushes {
		f.fail(errLeftAlone)
	}
}

const (
	minBackoff   = 50 * time.Millisecond
	maxDoublings = 32 // beyond any pause, and within a time.Duration
)

// backoff determines the pauses between attempts to connect: random, up to a limit that doubles, so
// that the tracers of a pod do not all connect at the same time when their daemon is back.
type backoff struct {
	maxPause time.Duration // maximum pause
	failures int
}

// next returns the pause after another failure.
func (b *backoff) next() time.Duration {
	limit := b.limit()
	b.failures++
	return rand.N(limit) + 1
}

func (b *backoff) limit() time.Duration {
	return min(minBackoff<<min(b.failures, maxDoublings), b.maxPause)
}

// reset resets the pauses after a connection that lasted longer than the maximum pause. A daemon
// that accepts connections and closes them immediately counts as a failure.
func (b *backoff) reset(lasted time.Duration) {
	if lasted > b.maxPause {
		b.failures = 0
	}
}

// read is the reader: it handles messages until the connection ends, and then interrupts a pending
// write. The write reports how many bytes it has written, so no span is lost.
func (l *connection) read(c *Client) {
	defer close(l.gone)
	for l.endErr == nil {
		t, body, err := l.next()
		if err == nil {
			err = l.handle(c, t, body)
		}
		l.endErr = err
	}
	l.conn.SetWriteDeadline(longAgo)
}

// handle handles one message. An error ends the connection.
func (l *connection) handle(c *Client, t wire.Type, body []byte) error {
	switch t {
	case wire.TypeFeatures:
		said, err := wire.DecodeFeatures(body)
		if err != nil {
			return err
		}
		l.settle(said.Settled)
		c.features.set(said.Features, &c.gate)
		return nil
	case wire.TypeFlush:
		answer, err := wire.DecodeFlush(body)
		if err != nil {
			return err
		}
		l.mu.Lock()
		f := l.flushes[answer.ID]
		delete(l.flushes, answer.ID)
		l.mu.Unlock()
		if f != nil {
			if answer.OK {
				l.settle(f.sent)
			}
			f.resolve(answer)
		}
		return nil
	case wire.TypeBye:
		return byeFrom(body)
	}
	return fmt.Errorf("the daemon sent %s, which it may not", t)
}

// endedInOrder reports whether the connection has ended normally.
func (l *connection) endedInOrder() bool {
	return errors.Is(l.endErr, io.EOF) || l.saidBye()
}

// saidBye reports whether the daemon has sent bye.
func (l *connection) saidBye() bool {
	var bye *byeError
	return errors.As(l.endErr, &bye)
}

// byeError is the daemon's bye as an error.
type byeError wire.Bye

// byeFrom decodes a bye message. It returns the bye as an error, or the error of decoding it.
func byeFrom(body []byte) error {
	bye, err := wire.DecodeBye(body)
	if err != nil {
		return err
	}
	return (*byeError)(&bye)
}

// Error implements error.
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

// settle records that the given number of spans of the connection have an outcome. The reader calls it,
// and the sender after the reader has ended.
func (l *connection) settle(spans uint64) {
	l.settled.Store(max(l.settled.Load(), spans))
}

// unsettled returns the number of spans sent without an outcome, or 0 if the daemon does not report
// outcomes.
func (l *connection) unsettled() uint64 {
	if !l.says.Settled {
		return 0
	}
	settled := l.settled.Load()
	return max(l.sent.Load(), settled) - settled
}

// daemonCrashed reports whether the daemon has ended the connection without a bye.
func (l *connection) daemonCrashed() bool {
	return errors.Is(l.endErr, io.EOF) || errors.Is(l.endErr, io.ErrUnexpectedEOF) ||
		errors.Is(l.endErr, syscall.ECONNRESET)
}

// Features are the requirements of the agent: whether it accepts statistics, which peer tags and
// span kinds to count, and which resources to ignore.
type Features = wire.Features

// features contains the last features received.
type features struct {
	now     atomic.Pointer[Features]
	changes chan struct{} // has a buffer of one
}

// newFeatures returns the features before a daemon has sent any: statistics are wanted, and the
// lists are empty.
func newFeatures() *features {
	f := &features{changes: make(chan struct{}, 1)}
	f.now.Store(&Features{Stats: true})
	return f
}

// set sets the features received from the daemon. It closes the gate while no statistics are
// wanted. Calls must not be concurrent.
func (f *features) set(said Features, g *gate) {
	if said.Stats {
		g.set(none)
	} else {
		g.set(notWanted)
	}
	if reflect.DeepEqual(said, *f.now.Load()) {
		return
	}
	f.now.Store(&said)
	select {
	case f.changes <- struct{}{}:
	default:
	}
}

// gate controls whether snapshots are accepted, and the reason if not. It depends on the daemon's
// features and on how long the daemon is unreachable. Close closes it permanently.
type gate struct{ why atomic.Uint32 }

// shut returns the reason why the gate is closed, or none if it is open.
func (g *gate) shut() reason { return reason(g.why.Load()) }

// set opens or closes the gate, unless it is closed permanently.
func (g *gate) set(why reason) {
	for from := g.why.Load(); reason(from) != closed; from = g.why.Load() {
		if g.why.CompareAndSwap(from, uint32(why)) {
			return
		}
	}
}
