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

// conn is the connection of one client. Only its own goroutine uses it, except for the atomic fields,
// and for writing, which writeMu guards.
type conn struct {
	*shared
	socket    *net.UnixConn
	frames    *frameReader
	peer      socket.Peer
	publisher *admit.Publisher // nil before the hello

	since  time.Time
	lost   atomic.Uint64          // spans that the client reports as lost
	tracer atomic.Pointer[Tracer] // description for the status page; nil before the hello

	pendingFlushes atomic.Int32    // flush requests without a reply
	flushReplies   sync.WaitGroup  // goroutines that wait to send a reply
	flushContext   context.Context // done when the connection ends
	cancelFlushes  context.CancelFunc

	writeMu      sync.Mutex
	isWelcomed   bool   // the welcome has been sent, so other messages may follow
	wantsSettled bool   // the client has requested the number of settled spans
	settled      uint64 // number of settled spans that was sent last
}

// authenticate gets the peer's credentials from the kernel, and returns an error unless its user may
// connect.
func (c *conn) authenticate() (err error) {
	if c.peer, err = c.credentials(c.socket); err != nil {
		return faultf(FaultNotAllowed, "authenticate client: %w", err)
	}
	allowed := c.config.AllowUIDs
	if len(allowed) > 0 && !slices.Contains(allowed, c.peer.UID) {
		return faultf(FaultNotAllowed, "authenticate client: user %d is not allowed; add it to "+
			"--allow-uid", c.peer.UID)
	}
	return nil
}

// logAttributes returns the log attributes that identify the connection.
func (c *conn) logAttributes() []any {
	attributes := []any{"uid", c.peer.UID, "pid", c.peer.PID, "container", c.peer.Container}
	if tracer := c.tracer.Load(); tracer != nil {
		attributes = append(attributes, "service", tracer.Service, "lang", tracer.Lang)
	}
	return attributes
}

// serve handles messages until the client or the daemon ends the connection. All spans that the client
// has written by then are counted or dropped with a reason.
func (c *conn) serve() {
	defer c.socket.Close()
	defer c.stopFlushes()
	err := recoverPanic(c.handleMessages)
	isDraining := c.isDraining()
	isClean := err == nil || errors.Is(err, io.EOF)
	switch {
	case isDraining && (isClean || FaultOf(err) == FaultHalfFrame):
		c.sendBye(byeShutdown) // Drain may have stopped the client in the middle of a frame
	case errors.Is(err, errEarlierPending):
		c.sendBye(wire.Bye{Reason: "earlier_pending", Detail: err.Error()})
	case !isClean:
		c.fail(err)
	}
	c.dropRemaining()
	c.release()
	if isClean && c.pendingFlushes.Load() > 0 { // the client can still read the replies
		c.waitForFlushes()
	}
}

// handleMessages handles all messages of the client. It returns nil after a bye, and io.EOF if the
// client has closed the connection without one.
func (c *conn) handleMessages() error {
	c.peer.Container = socket.ContainerOf(c.peer.PID) // reads /proc, which would delay the accept loop
	if err := c.handleHello(); err != nil {
		return err
	}
	for {
		message, err := c.frames.next()
		if err != nil {
			return err
		}
		c.counters.frames.Add(1)
		isBye, err := c.handleMessage(message)
		if isBye || err != nil {
			return err
		}
	}
}

// helloTimeout is the maximum time from the start of a connection to the end of its hello.
const helloTimeout = 5 * time.Second

// handleHello reads the hello, creates the publisher, and sends the welcome.
func (c *conn) handleHello() error {
	hello, message, err := readHello(c.frames)
	if message != nil {
		c.counters.frames.Add(1)
	}
	if err != nil {
		return err
	}
	earlier, err := c.awaitEarlier(hello.Earlier)
	if err != nil {
		return err
	}
	c.publisher = c.config.Admit.NewConnection(c.originOf(hello), c.peer.PID)
	c.wantsSettled = hello.Settled
	origin := c.publisher.Origin()
	c.tracer.Store(&Tracer{
		Client: span.Text(hello.Client, span.MaxOriginField), Service: origin.Service, Env: origin.Env,
		Lang: origin.Lang, Container: origin.ContainerID,
		UID: c.peer.UID, PID: c.peer.PID, Since: c.since,
	})
	c.config.Log.Debug("client connected", c.logAttributes()...)
	c.sendWelcome(earlier)
	return nil
}

const (
	// earlierTimeout is the maximum time that a welcome waits for a daemon that is still shutting down. It
	// is shorter than the time that clients wait.
	earlierTimeout = 2 * time.Second
	earlierPoll    = 100 * time.Millisecond
)

// errEarlierPending ends a connection whose client must ask again later. It is not a fault of the client.
var errEarlierPending = errors.New("handle hello: the daemon of the earlier connection is still shutting down; " +
	"retry later")

// awaitEarlier returns the outcomes of the spans of an earlier connection. While the daemon of that connection
// is shutting down, they are not known yet. If it takes too long, the client must ask again later.
func (c *conn) awaitEarlier(token string) ([]uint64, error) {
	for until := time.Now().Add(earlierTimeout); ; time.Sleep(earlierPoll) {
		outcomes, isPending := c.config.Running.Earlier(token)
		switch {
		case !isPending:
			return outcomes, nil
		case c.isDraining():
			return nil, io.EOF // not a fault of the client
		case time.Now().After(until):
			return nil, errEarlierPending
		}
	}
}

// readHello reads the first message and decodes it as a hello. It also returns the message if it is
// not a valid hello.
func readHello(f *frameReader) (hello *wire.Hello, message []byte, err error) {
	message, err = f.first(helloTimeout)
	if err != nil {
		if FaultOf(err) == FaultTooSlow {
			return nil, nil, faultf(FaultNoHello, "read hello: no message within %s", helloTimeout)
		}
		return nil, nil, err
	}
	kind, body, err := wire.Split(message)
	if err != nil {
		return nil, message, &fault{FaultNoHello, err}
	}
	if kind != wire.TypeHello {
		f.unread(message) // its spans are counted as dropped
		return nil, message, faultf(FaultNoHello, "read hello: the first message is %s", kind)
	}
	decoded, err := wire.DecodeHello(body)
	if err != nil {
		return nil, message, &fault{FaultBadMessage, err}
	}
	if decoded.Version != wire.Version {
		return nil, message, faultf(FaultVersion, "read hello: protocol version %d is not supported; use version %d",
			decoded.Version, wire.Version)
	}
	return &decoded, message, nil
}

// originOf returns the origin in a hello, with the container of the peer if the hello has none.
func (c *conn) originOf(hello *wire.Hello) span.Origin {
	origin := hello.Origin
	if origin.ContainerID == "" && origin.EntityID == "" {
		origin.ContainerID = c.peer.Container
	}
	return origin
}

// handleMessage handles a message that follows the hello. isBye reports whether it is a bye.
func (c *conn) handleMessage(message []byte) (isBye bool, err error) {
	kind, body, err := wire.Split(message)
	if err != nil {
		return false, badMessage(err)
	}
	switch kind {
	case wire.TypeSpans:
		return false, badMessage(c.publisher.Publish(body))
	case wire.TypeDefine:
		return false, c.defineKeys(body)
	case wire.TypeLost:
		return false, c.countLost(body)
	case wire.TypeFlush:
		return false, c.handleFlush(body)
	case wire.TypeBye:
		_, err = wire.DecodeBye(body)
		return true, badMessage(err)
	default:
		return false, faultf(FaultBadMessage, "handle message: unexpected %s", kind)
	}
}

// defineKeys assigns numbers to keys, so that later messages can refer to keys by number.
func (c *conn) defineKeys(body []byte) error {
	definitions, err := wire.WalkDefine(body)
	if err != nil {
		return badMessage(err)
	}
	maxKeys := c.config.Admit.MaxKeys()
	for number, key, ok := definitions.Next(); ok; number, key, ok = definitions.Next() {
		if int64(number) >= int64(maxKeys) {
			return faultf(FaultBadMessage, "define key: number %d is not below %d, the maximum in the welcome "+
				"message", number,
				maxKeys)
		}
		if err := c.publisher.Define(number, key); err != nil {
			return badMessage(err)
		}
	}
	return badMessage(definitions.Err())
}

// countLost counts the spans that the client reports as lost, by the client's reasons.
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

// maxPendingFlushes is the maximum number of flush requests of a connection without a reply.
const maxPendingFlushes = 8

// handleFlush requests delivery of all spans received so far. The reply is sent after delivery, by another
// goroutine, so that the connection can handle other messages. If too many flushes are pending, handleFlush
// replies with an error immediately.
func (c *conn) handleFlush(body []byte) error {
	request, err := wire.DecodeFlush(body)
	if err != nil {
		return badMessage(err)
	}
	if c.pendingFlushes.Add(1) > maxPendingFlushes {
		c.pendingFlushes.Add(-1)
		c.sendFlushReply(wire.Flush{ID: request.ID, Error: "too many flushes of this connection wait for their " +
			"answer"})
		return nil
	}
	c.flushReplies.Go(func() { c.reportAndReply(request.ID) })
	return nil
}

// reportAndReply waits until all spans received so far are delivered, and then replies to the flush request
// with the given ID. It does not reply if the connection ends first.
func (c *conn) reportAndReply(flushID uint64) {
	err := c.config.Report(c.flushContext)
	isCanceled := c.flushContext.Err() != nil // checked before serve can see that no flush is pending
	c.pendingFlushes.Add(-1)
	if isCanceled {
		return
	}
	firstUnsettled, _ := c.config.Settled()
	c.sendSettled(firstUnsettled, c.features.Load()) // first, so that a closing client knows the outcome of its spans
	reply := wire.Flush{ID: flushID, OK: err == nil}
	if err != nil {
		reply.Error = err.Error()
	}
	c.sendFlushReply(reply)
}

// writeTimeout is the maximum time to write a frame. A frame has some hundred bytes and a socket buffer
// hundreds of kilobytes, so only clients that don't read exceed it.
const writeTimeout = 100 * time.Millisecond

// write writes one frame. It can be called by any goroutine. It ignores errors, because messages that
// the client has sent before it closed the connection must still be read.
func (c *conn) write(frame []byte) {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	_ = c.writeLocked(frame)
}

// writeLocked writes one frame. It shuts down the connection of a client that does not read the
// frame within writeTimeout, because every further write to that client could block as long.
func (c *conn) writeLocked(frame []byte) error {
	err := c.socket.SetWriteDeadline(time.Now().Add(writeTimeout))
	if err == nil {
		_, err = c.socket.Write(frame)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.counters.faults[FaultTooSlow].Add(1)
		c.log.logClosed(FaultTooSlow, fmt.Errorf("write to client: the client does not read: "+
			"%w", err), c.logAttributes())
		// The client can't send any more data. Data that it has already sent is still read.
		_ = c.socket.CloseRead()
		_ = c.socket.CloseWrite()
	}
	return err
}

// sendWelcome sends the limits and features of the daemon. earlier is the outcome of the spans that the
// client sent to a daemon that crashed; nil if it is unknown. An error is ignored: a client can write
// all its messages and leave without waiting for the welcome.
func (c *conn) sendWelcome(earlier []uint64) {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
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
	c.isWelcomed = err == nil
}

// sendFeatures sends changed features to the client. Before the welcome it does nothing, because the
// welcome will contain them.
func (c *conn) sendFeatures(features *wire.Features) {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	if c.isWelcomed {
		_ = c.writeLocked(wire.AppendFeatures(nil,
			&wire.Announcement{Features: *features, Settled: c.settled}))
	}
}

// sendSettled sends the number of settled spans, which have been delivered or finally dropped, to a client
// that has requested it. All spans of cycles before firstUnsettled are settled. It sends nothing if the number
// has not increased. A client keeps spans until they are settled, so that it can resend them if the daemon
// crashes.
func (c *conn) sendSettled(firstUnsettled uint64, features *wire.Features) {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	if !c.isWelcomed {
		return
	}
	// Settled also frees memory in the recovery file, so it must be called for all clients.
	settled := c.publisher.Settled(firstUnsettled)
	if c.wantsSettled && settled > c.settled {
		c.settled = settled
		_ = c.writeLocked(wire.AppendFeatures(nil, &wire.Announcement{Features: *features, Settled: settled}))
	}
}

func (c *conn) sendFlushReply(reply wire.Flush) { c.write(wire.AppendFlushAnswer(nil, &reply)) }

func (c *conn) sendBye(bye wire.Bye) { c.write(wire.AppendBye(nil, &bye)) }

// fail counts and logs the error that ends the connection, and sends it to the client.
func (c *conn) fail(err error) {
	reason := FaultOf(err)
	c.counters.faults[reason].Add(1)
	c.log.logClosed(reason, err, c.logAttributes())
	if bye, ok := ByeOf(err); ok {
		c.sendBye(bye)
	}
}

// dropRemaining counts the spans that the client has written after the last message that was handled, as
// dropped. It closes the read side first, so that it reads at most one socket buffer and never waits.
func (c *conn) dropRemaining() {
	if err := recoverPanic(c.readRemaining); err != nil {
		c.log.logClosed(FaultBug, err, c.logAttributes())
	}
}

func (c *conn) readRemaining() error {
	_ = c.socket.CloseRead() // fails only if the client has closed the connection
	_ = c.socket.SetReadDeadline(time.Time{})
	c.frames.eachRemaining(func(head []byte, length int) {
		kind, body, err := wire.Split(head)
		switch {
		case err != nil:
		case kind == wire.TypeSpans:
			c.config.Admit.Refuse(wire.CountSpans(body, length-len(head)))
		case kind == wire.TypeLost && len(head) == length:
			_ = c.countLost(body) // an invalid message is ignored, because the connection has already ended
		}
	})
	return nil
}

// release releases the publisher and the buffers. waitForFlushes does not need them.
func (c *conn) release() {
	c.frames.releaseLarge()
	c.frames.base, c.frames.buf = nil, nil
	if c.publisher != nil {
		c.publisher.Close()
	}
}

// waitForFlushes waits until all flush replies have been sent, the client has closed the connection, or
// the daemon shuts down.
func (c *conn) waitForFlushes() {
	replied, closed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(replied)
		c.flushReplies.Wait()
	}()
	go func() {
		defer close(closed)
		c.waitForClose()
	}()
	select {
	case <-replied:
	case <-closed:
	case <-c.draining:
	}
	c.stopFlushes()
	_ = c.socket.SetReadDeadline(time.Unix(1, 0)) // ends waitForClose
	<-closed
}

// waitForClose waits until the client has closed its socket or shut down both directions, or until the
// read deadline. A client that has only shut down writing can still receive replies, so EOF does not
// count.
func (c *conn) waitForClose() {
	raw, err := c.socket.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Read(func(fd uintptr) (isClosed bool) { // fails at the deadline
		socket := []unix.PollFd{{Fd: int32(fd)}} // without events, poll reports only POLLHUP and errors
		_, err := unix.Poll(socket, 0)
		return err == nil && socket[0].Revents != 0
	})
}

// stopFlushes cancels pending flushes and waits for their goroutines.
func (c *conn) stopFlushes() {
	c.cancelFlushes()
	c.flushReplies.Wait()
}
