package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/ingest/socket"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
	"golang.org/x/sys/unix"
)

// conn is one tracer's connection. Its goroutine owns all of it but the socket's
// write side, which writing guards.
type conn struct {
	*shared
	socket    *net.UnixConn
	frames    *frames
	peer      socket.Peer
	publisher *admit.Publisher // nil before the hello

	since  time.Time
	lost   atomic.Uint64          // spans that it says it lost itself
	tracer atomic.Pointer[Tracer] // what status says of it, once it has said hello

	reporting atomic.Int32    // answers to flushes that are owed
	answering sync.WaitGroup  // those who wait to give them
	ended     context.Context // ends with the connection, and what it waits for with it
	end       context.CancelFunc

	writing      sync.Mutex
	greeted      bool   // welcome was sent, so features may follow
	wantsSettled bool   // it asked in its hello to be told what is settled
	settled      uint64 // what it was told: spans
}

// identify asks the kernel who connected, before a byte of it is read.
func (c *conn) identify() (err error) {
	if c.peer, err = c.credentials(c.socket); err != nil {
		return faultf(FaultNotAllowed, "identify tracer: %w", err)
	}
	allowed := c.config.AllowUIDs
	if len(allowed) > 0 && !slices.Contains(allowed, c.peer.UID) {
		return faultf(FaultNotAllowed, "identify tracer: user %d is not one of --allow-uid", c.peer.UID)
	}
	return nil
}

// attributes are how a line of the log names a connection.
func (c *conn) attributes() []any {
	attributes := []any{"uid", c.peer.UID, "pid", c.peer.PID, "container", c.peer.Container}
	if tracer := c.tracer.Load(); tracer != nil {
		attributes = append(attributes, "service", tracer.Service, "lang", tracer.Lang)
	}
	return attributes
}

// helloTimeout is how long a tracer may take to say who it is.
const helloTimeout = 5 * time.Second

func (c *conn) hello() error {
	hello, message, err := readHello(c.frames)
	if message != nil {
		c.counters.frames.Add(1)
	}
	if err != nil {
		return err
	}
	c.publisher = c.config.Admit.NewConnection(c.originOf(hello), c.peer.PID)
	c.wantsSettled = hello.Settled
	earlier := c.config.Running.Earlier(hello.Earlier)
	origin := c.publisher.Origin()
	c.tracer.Store(&Tracer{
		Client: span.Text(hello.Client, span.MaxOriginField), Service: origin.Service, Env: origin.Env,
		Lang: origin.Lang, Container: origin.ContainerID,
		UID: c.peer.UID, PID: c.peer.PID, Since: c.since,
	})
	c.config.Log.Debug("tracer connected", c.attributes()...)
	c.welcome(earlier)
	return nil
}

// readHello reads the first message, and returns it whatever it is, if there was one.
func readHello(f *frames) (hello *wire.Hello, message []byte, err error) {
	message, err = f.first(helloTimeout)
	if err != nil {
		if FaultOf(err) == FaultTooSlow {
			return nil, nil, faultf(FaultNoHello, "read hello: none within %s", helloTimeout)
		}
		return nil, nil, err
	}
	kind, body, err := wire.Split(message)
	if err != nil {
		return nil, message, &fault{FaultNoHello, err}
	}
	if kind != wire.TypeHello {
		f.putBack(message)
		return nil, message, faultf(FaultNoHello, "read hello: the first message is %s", kind)
	}
	decoded, err := wire.DecodeHello(body)
	if err != nil {
		return nil, message, &fault{FaultBadMessage, err}
	}
	if decoded.Version != wire.Version {
		return nil, message, faultf(FaultVersion, "read hello: version %d is not spoken here, %d is",
			decoded.Version, wire.Version)
	}
	return &decoded, message, nil
}

// originOf is the tracer's origin, in the peer's container where it names none.
func (c *conn) originOf(hello *wire.Hello) span.Origin {
	origin := hello.Origin
	if origin.ContainerID == "" && origin.EntityID == "" {
		origin.ContainerID = c.peer.Container
	}
	return origin
}

// handle does what one message asks. It reports whether the tracer has left.
func (c *conn) handle(message []byte) (left bool, err error) {
	kind, body, err := wire.Split(message)
	if err != nil {
		return false, badMessage(err)
	}
	switch kind {
	case wire.TypeSpans:
		return false, badMessage(c.publisher.Publish(body))
	case wire.TypeDefine:
		return false, c.define(body)
	case wire.TypeLost:
		return false, c.countLost(body)
	case wire.TypeFlush:
		return false, c.flush(body)
	case wire.TypeBye:
		return true, nil
	default:
		return false, faultf(FaultBadMessage, "handle message: a tracer does not send %s here", kind)
	}
}

func (c *conn) define(body []byte) error {
	walker, err := wire.WalkDefine(body)
	if err != nil {
		return badMessage(err)
	}
	maxKeys := c.config.Admit.MaxKeys()
	for number, raw, ok := walker.Next(); ok; number, raw, ok = walker.Next() {
		if int64(number) >= int64(maxKeys) {
			return faultf(FaultBadMessage, "define key: number %d is not below the %d of the welcome", number,
				maxKeys)
		}
		if err := c.publisher.Define(number, raw); err != nil {
			return badMessage(err)
		}
	}
	return badMessage(walker.Err())
}

// countLost adds what the tracer itself had to drop to the counters of its kind.
func (c *conn) countLost(body []byte) error {
	lost, err := wire.DecodeLost(body)
	if err != nil {
		return badMessage(err)
	}
	for reason, spans := range lost {
		c.counters.countLost(reason, spans)
		addLost(&c.lost, spans)
	}
	return nil
}

// maxOpenFlushes bounds the answers that one connection may be owed.
const maxOpenFlushes = 8

// flush asks for a report and answers when it has arrived. The connection goes on reading
// meanwhile; one question too many is refused at once.
func (c *conn) flush(body []byte) error {
	request, err := wire.DecodeFlush(body)
	if err != nil {
		return badMessage(err)
	}
	if c.reporting.Add(1) > maxOpenFlushes {
		c.reporting.Add(-1)
		c.answer(wire.Flush{ID: request.ID, Error: "too many flushes of this connection wait for their " +
			"answer"})
		return nil
	}
	c.answering.Go(func() {
		err := c.config.Report(c.ended)
		isEnded := c.ended.Err() != nil // asked while the answer is owed, see serve
		c.reporting.Add(-1)
		if isEnded {
			return
		}
		answer := wire.Flush{ID: request.ID, OK: err == nil}
		if err != nil {
			answer.Error = err.Error()
		}
		c.answer(answer)
	})
	return nil
}

// writeTimeout is for a tracer that does not read. A message has some hundred bytes, and a
// socket holds hundreds of kilobytes, so only a tracer that is broken reaches this time-out.
const writeTimeout = 100 * time.Millisecond

// write sends one frame. Any goroutine may call it. A tracer that has left meanwhile does
// not miss it, and what it wrote before is read all the same.
func (c *conn) write(frame []byte) {
	c.writing.Lock()
	defer c.writing.Unlock()
	_ = c.writeLocked(frame)
}

// writeLocked sends one frame. A tracer that does not take it loses its connection, or it
// could make us wait for each answer in turn.
func (c *conn) writeLocked(frame []byte) error {
	err := c.socket.SetWriteDeadline(time.Now().Add(writeTimeout))
	if err == nil {
		_, err = c.socket.Write(frame)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.counters.faults[FaultTooSlow].Add(1)
		c.log.fault(FaultTooSlow, fmt.Errorf("write to tracer: it does not read: %w", err), c.attributes())
		// Nothing can be handed over from here on; the reads go on to the end of what was.
		_ = c.socket.CloseRead()
		_ = c.socket.CloseWrite()
	}
	return err
}

// welcome tells the tracer what it may send, if it is still there: one with little to say
// may have written that and left. Features that change from here on follow it. It is told what
// became of the spans of its earlier connection, if it asked and somebody knows.
func (c *conn) welcome(earlier []uint64) {
	c.writing.Lock()
	defer c.writing.Unlock()
	config := &c.config
	token := ""
	if c.wantsSettled {
		token = c.publisher.Token()
	}
	err := c.writeLocked(wire.AppendWelcome(nil, &wire.Welcome{
		Version: wire.Version, Daemon: config.Version,
		MaxFrame: config.MaxFrame, MaxBatch: config.Admit.MaxBatch(), MaxKeys: config.Admit.MaxKeys(),
		MaxKeyBytes: config.Admit.MaxKeyBytes(),
		Features:    *c.features.Load(), Settled: c.wantsSettled, Interval: uint64(config.Interval),
		Token: token, Earlier: earlier,
	}))
	c.greeted = err == nil
}

// announce sends changed features to a tracer that was greeted. One that is not
// will read them in its welcome.
func (c *conn) announce(features *wire.Features) {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.greeted {
		_ = c.writeLocked(wire.AppendFeatures(nil,
			&wire.Announcement{Features: *features, Settled: c.settled}))
	}
}

// settle tells a tracer that asked for it how many of its spans have had their outcome, if
// they are more now that all cycles before that one have. It need not remember for longer
// what it handed over of those: should we be killed, they are not lost.
func (c *conn) settle(through uint64, features *wire.Features) {
	c.writing.Lock()
	defer c.writing.Unlock()
	if !c.greeted {
		return
	}
	if settled := c.publisher.Settled(through); settled > c.settled && c.wantsSettled {
		c.settled = settled
		_ = c.writeLocked(wire.AppendFeatures(nil, &wire.Announcement{Features: *features, Settled: settled}))
	}
}

func (c *conn) answer(flush wire.Flush) { c.write(wire.AppendFlushAnswer(nil, &flush)) }

func (c *conn) bye(bye wire.Bye) { c.write(wire.AppendBye(nil, &bye)) }

// serve reads until the tracer or the daemon ends the connection.
func (c *conn) serve() {
	defer c.socket.Close()
	defer c.endAnswers()
	err, isDraining := contain(c.read), c.isDraining()
	isDone := err == nil || errors.Is(err, io.EOF)
	switch {
	case isDraining && (isDone || FaultOf(err) == FaultHalfFrame):
		c.bye(byeShutdown) // half a frame is where the daemon has cut it
	case !isDone:
		c.fail(err)
	}
	c.countRest()
	c.release()
	if isDone && c.reporting.Load() > 0 {
		c.awaitAnswers()
	}
}

// fail counts and logs why the connection ends, and tells its tracer unless that has left.
func (c *conn) fail(err error) {
	reason := FaultOf(err)
	c.counters.faults[reason].Add(1)
	c.log.fault(reason, err, c.attributes())
	if bye, ok := ByeOf(err); ok {
		c.bye(bye)
	}
}

// release gives back what the connection took of what all share, and its buffer, which is more
// than awaitAnswers takes.
func (c *conn) release() {
	c.frames.release()
	c.frames.base, c.frames.buf = nil, nil
	if c.publisher != nil {
		c.publisher.Close()
	}
}

// read reads until there is nothing more: io.EOF where the tracer just left.
func (c *conn) read() error {
	c.peer.Container = socket.ContainerOf(c.peer.PID)
	if err := c.hello(); err != nil {
		return err
	}
	for {
		message, err := c.frames.next()
		if err != nil {
			return err
		}
		c.counters.frames.Add(1)
		left, err := c.handle(message)
		if left || err != nil {
			return err
		}
	}
}

// awaitAnswers waits until a tracer that has nothing more to say has the answers that it is
// owed, unless it has left or the daemon stops.
func (c *conn) awaitAnswers() {
	answered, left := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(answered)
		c.answering.Wait()
	}()
	go func() {
		defer close(left)
		c.awaitLeave()
	}()
	select {
	case <-answered:
	case <-left:
	case <-c.draining:
	}
	c.endAnswers()
	_ = c.socket.SetReadDeadline(time.Unix(1, 0)) // ends awaitLeave; fails only where that has ended
	<-left
}

// awaitLeave waits until the tracer has closed its socket, or shut both of its sides. The end of
// what it writes says nothing of that: it may listen on.
func (c *conn) awaitLeave() {
	raw, err := c.socket.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Read(func(fd uintptr) (hasLeft bool) { // fails where nobody waits any more
		socket := []unix.PollFd{{Fd: int32(fd)}}
		_, err := unix.Poll(socket, 0)
		return err == nil && socket[0].Revents != 0
	})
}

// endAnswers ends those who wait to answer a flush: there is nobody to tell any more.
func (c *conn) endAnswers() {
	c.end()
	c.answering.Wait()
}
