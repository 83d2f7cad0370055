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

// handshakeLimit bounds the time from connecting to the daemon's welcome.
const handshakeLimit = 5 * time.Second

// byeLimit bounds the time that a daemon has to say bye once it takes nothing any more. A
// daemon that is still there after that has not died.
const byeLimit = 5 * time.Second

// longAgo, as a deadline, ends every read and write that is under way.
var longAgo = time.Unix(1, 0)

// connection is one. The sender writes to it, its reader reads.
type connection struct {
	conn  *net.UnixConn
	in    *bufio.Reader
	says  wire.Welcome // the daemon
	since time.Time

	release func() bool // of the abort that ends it early

	gone   chan struct{} // closed by the reader when nothing comes any more
	ending error         // why, set before gone

	handed  atomic.Uint64 // spans that the socket took, the sender's
	settled atomic.Uint64 // of them, those that have had their outcome, as far as the daemon has said

	mu      sync.Mutex
	flushes map[uint64]*flush // asked and not answered
	lastID  uint64
}

// connect finds the daemon where the configuration says, or at the first socket path where one listens.
// Its error is of the first.
func connect(c *Client) (net.Conn, error) {
	points := []string{c.config.Socket}
	if c.config.Socket == "" {
		points = socketpath.ForClients()
	}
	var first error
	dialer := net.Dialer{Timeout: handshakeLimit}
	for _, path := range points {
		conn, err := dialer.DialContext(c.aborted, "unix", path)
		if err == nil {
			return conn, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

// dial connects and greets, and asks about an earlier connection, if there is one to ask about. The
// features of the welcome are in force when it returns.
func dial(c *Client, earlier *connection) (*connection, error) {
	conn, err := connect(c)
	if err != nil {
		return nil, err
	}
	socket := conn.(*net.UnixConn)
	_ = socket.SetWriteBuffer(wire.SendBuffer) // the kernel gives what it allows
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
	// The line above may have undone the abort's deadline.
	if err = errors.Join(err, c.aborted.Err()); err != nil {
		l.release()
		conn.Close()
		return nil, fmt.Errorf("greet daemon: %w", err)
	}
	c.features.set(l.says.Features, &c.gate)
	return l, nil
}

// greet sends hello and reads the answer.
func (l *connection) greet(hello *wire.Hello) error {
	if _, err := l.conn.Write(wire.AppendHello(nil, hello)); err != nil {
		return fmt.Errorf("write hello: %w", err)
	}
	t, body, err := l.next()
	switch {
	case err != nil:
		return fmt.Errorf("read welcome: %w", err)
	case t == wire.TypeBye:
		return farewell(body)
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

// ask sends a flush request whose answer the reader will hand to f.
func (l *connection) ask(f *flush) error {
	l.mu.Lock()
	l.lastID++
	id := l.lastID
	for id, asked := range l.flushes {
		if asked.ctx.Err() != nil {
			delete(l.flushes, id) // its caller has left
		}
	}
	f.handed = l.handed.Load()
	l.flushes[id] = f
	l.mu.Unlock()
	if _, err := l.conn.Write(wire.AppendFlush(nil, &wire.Flush{ID: id})); err != nil {
		// Nobody was asked, so the next connection can be.
		l.mu.Lock()
		delete(l.flushes, id)
		l.mu.Unlock()
		return fmt.Errorf("write flush: %w", err)
	}
	return nil
}

// close ends the connection and waits for its reader.
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

// backoff is the pauses between attempts to connect: a random part of a span
// that doubles, so that the tracers of a pod do not all knock at once when their
// daemon is back.
type backoff struct {
	most     time.Duration
	failures int
}

// next is how long to wait after one more failure.
func (b *backoff) next() time.Duration {
	limit := b.limit()
	b.failures++
	return rand.N(limit) + 1
}

func (b *backoff) limit() time.Duration {
	return min(minBackoff<<min(b.failures, maxDoublings), b.most)
}

// reset begins anew, after a connection that lasted longer than the longest
// pause: a daemon that takes connections and ends them at once is no success.
func (b *backoff) reset(lasted time.Duration) {
	if lasted > b.most {
		b.failures = 0
	}
}

// read is the reader: it takes what the daemon says until there is no more, and then ends
// whatever write is under way. The write says exactly how far it came, so nothing is lost.
func (l *connection) read(c *Client) {
	defer close(l.gone)
	for l.ending == nil {
		t, body, err := l.next()
		if err == nil {
			err = l.handle(c, t, body)
		}
		l.ending = err
	}
	l.conn.SetWriteDeadline(longAgo)
}

// handle acts on one message. An error ends the connection.
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
				l.settle(f.handed)
			}
			f.resolve(answer)
		}
		return nil
	case wire.TypeBye:
		return farewell(body)
	}
	return fmt.Errorf("the daemon sent %s, which it may not", t)
}

// endedInOrder reports whether the connection ended as one does that both sides
// are done with.
func (l *connection) endedInOrder() bool {
	return errors.Is(l.ending, io.EOF) || l.saidBye()
}

// saidBye reports whether the daemon did.
func (l *connection) saidBye() bool {
	var bye *byeError
	return errors.As(l.ending, &bye)
}

// byeError is a daemon's bye.
type byeError wire.Bye

func farewell(body []byte) error {
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

// A daemon that is killed takes with it what it holds. So a connection counts the spans that it
// handed over, and those that the daemon said have had their outcome. What became of the rest, if the
// daemon leaves without a bye, is a question to the next one.

// settle notes that so many spans of the connection have had their outcome. It is the
// reader's, and the sender's once that has ended.
func (l *connection) settle(spans uint64) {
	l.settled.Store(max(l.settled.Load(), spans))
}

// unsettled is how many spans were handed over and have had no outcome yet, where the daemon says when
// they have.
func (l *connection) unsettled() uint64 {
	if !l.says.Settled {
		return 0
	}
	settled := l.settled.Load()
	return max(l.handed.Load(), settled) - settled
}

// died reports whether the connection ended without a bye, and not by this side.
func (l *connection) died() bool {
	return errors.Is(l.ending, io.EOF) || errors.Is(l.ending, io.ErrUnexpectedEOF) ||
		errors.Is(l.ending, syscall.ECONNRESET)
}

// Features is what the agent behind the daemon wants counted: whether stats at
// all, which peer tags, which span kinds, which resources not.
type Features = wire.Features

// features is what the daemon said last of what it wants.
type features struct {
	now     atomic.Pointer[Features]
	changes chan struct{} // has room for one notice
}

// newFeatures wants stats and nothing else, before a daemon has said anything.
func newFeatures() *features {
	f := &features{changes: make(chan struct{}, 1)}
	f.now.Store(&Features{Stats: true})
	return f
}

// set is called by whoever reads from the daemon, one at a time. The gate is shut while no
// stats are wanted.
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

// gate says whether snapshots are taken, and why not. It opens and shuts with what
// the daemon wants and with how long it is away, until Close shuts it for good.
type gate struct{ why atomic.Uint32 }

// shut is why it is shut, none while it is open.
func (g *gate) shut() reason { return reason(g.why.Load()) }

// set opens or shuts it, unless it was shut for good.
func (g *gate) set(why reason) {
	for from := g.why.Load(); reason(from) != closed; from = g.why.Load() {
		if g.why.CompareAndSwap(from, uint32(why)) {
			return
		}
	}
}
