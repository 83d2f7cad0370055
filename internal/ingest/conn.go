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

// authenticate reads the user and the process of the client from the kernel. It returns an error if
// they can't be read, or if the user is not one of those in --allow-uid.
func (c *conn) authenticate() error {
	peer, err := c.readCredentials(c.socket)
	if err != nil {
		return faultf(FaultNotAllowed, "authenticate client: %w", err)
	}
	c.peer = peer
	allowedUsers := c.config.AllowUIDs
	isAllowed := len(allowedUsers) == 0 || slices.Contains(allowedUsers, peer.UID)
	if !isAllowed {
		return faultf(FaultNotAllowed, "authenticate client: user %d is not allowed; add it to "+
			"--allow-uid", peer.UID)
	}
	return nil
}

// logAttributes returns log attributes that identify the client: its user, process and container. After
// the client's first message, they also contain its service and language.
func (c *conn) logAttributes() []any {
	attributes := []any{"uid", c.peer.UID, "pid", c.peer.PID, "container", c.peer.Container}
	if tracer := c.tracer.Load(); tracer != nil {
		attributes = append(attributes, "service", tracer.Service, "lang", tracer.Lang)
	}
	return attributes
}

// serve handles messages until the client or the daemon ends the connection, and then closes it. All
// spans that the client has written by then are counted as received, or as dropped with a reason.
func (c *conn) serve() {
	defer c.socket.Close()
	defer c.stopFlushes()
	err := recoverPanic(c.handleMessages)
	c.sendEndReason(err)
	c.dropRemaining()
	c.release()
	if isNormalEnd(err) && c.pendingFlushes.Load() > 0 {
		c.waitForFlushes() // the client can still read the replies
	}
}

// isNormalEnd reports whether a connection has ended without an error. io.EOF means that one side has
// closed it after a complete message.
func isNormalEnd(err error) bool { return err == nil || errors.Is(err, io.EOF) }

// sendEndReason tells the client why the connection ends, if the daemon ends it. err is the result of
// handleMessages. An error of the client is also counted and logged.
func (c *conn) sendEndReason(err error) {
	isDraining := c.isDraining()
	isNormal := isNormalEnd(err)
	// A shutdown of the daemon can interrupt a client that is writing a message.
	isInterrupted := isDraining && FaultOf(err) == FaultIncompleteFrame
	switch {
	case isInterrupted, isDraining && isNormal:
		c.sendBye(byeShutdown)
	case errors.Is(err, errEarlierPending): // the client has to retry later
		c.sendBye(wire.Bye{Reason: "earlier_pending", Detail: err.Error()})
	case !isNormal:
		c.fail(err)
	}
}

// handleMessages reads the client's messages and handles them one by one. It returns nil after a bye
// message, and io.EOF if the client has closed the connection without one.
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
		if err != nil || isBye {
			return err
		}
	}
}

// helloTimeout is the maximum time from the start of a connection to the end of its hello.
const helloTimeout = 5 * time.Second

// handleHello reads the client's first message, the hello, and replies with the welcome message. In
// between, it creates the publisher that passes the client's spans to the aggregation.
func (c *conn) handleHello() error {
	hello, firstMessage, err := readHello(c.frames)
	if firstMessage != nil { // also if it is not a valid hello
		c.counters.frames.Add(1)
	}
	if err != nil {
		return err
	}
	outcomes, err := c.awaitOutcomes(hello.Earlier)
	if err != nil {
		return err
	}
	c.publisher = c.config.Admit.NewConnection(c.originOf(hello), c.peer.PID)
	c.wantsSettled = hello.Settled
	c.tracer.Store(c.describe(hello))
	c.config.Log.Debug("client connected", c.logAttributes()...)
	c.sendWelcome(outcomes)
	return nil
}

// describe returns the description of the client for the status page. Its texts have a limited length.
func (c *conn) describe(hello *wire.Hello) *Tracer {
	origin := c.publisher.Origin()
	return &Tracer{
		Client:  span.Text(hello.Client, span.MaxOriginField),
		Service: origin.Service, Env: origin.Env, Lang: origin.Lang, Container: origin.ContainerID,
		UID: c.peer.UID, PID: c.peer.PID, Since: c.since,
	}
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

// awaitOutcomes returns the outcomes of the spans that a reconnecting client sent to an earlier daemon:
// delivered, lost or unknown. token identifies the earlier connection. While the earlier daemon is still
// shutting down, awaitOutcomes waits for up to earlierTimeout, and then returns errEarlierPending.
func (c *conn) awaitOutcomes(token string) (outcomes []uint64, err error) {
	deadline := time.Now().Add(earlierTimeout)
	for {
		outcomes, isPending := c.config.Recovery.Earlier(token)
		if !isPending {
			return outcomes, nil
		}
		if c.isDraining() {
			return nil, io.EOF // not an error of the client
		}
		if time.Now().After(deadline) {
			return nil, errEarlierPending
		}
		time.Sleep(earlierPoll)
	}
}

// readHello reads the first message, which has to be a hello, and decodes it. If the message was read but
// is not a valid hello, readHello returns both the encoded message and an error.
func readHello(frames *frameReader) (hello *wire.Hello, message []byte, err error) {
	message, err = frames.first(helloTimeout)
	if err != nil {
		if FaultOf(err) == FaultTooSlow {
			err = faultf(FaultNoHello, "read hello: no message within %s", helloTimeout)
		}
		return nil, nil, err
	}
	kind, body, err := wire.Split(message)
	if err != nil {
		return nil, message, &fault{FaultNoHello, err}
	}
	if kind != wire.TypeHello {
		frames.unread(message) // if it contains spans, they are counted as dropped when the connection ends
		return nil, message, faultf(FaultNoHello, "read hello: the first message is %s", kind)
	}
	hello, err = decodeHello(body)
	return hello, message, err
}

// decodeHello decodes the body of a hello message. It returns an error if the body is invalid, or if the
// client uses an unsupported version of the protocol.
func decodeHello(body []byte) (*wire.Hello, error) {
	hello, err := wire.DecodeHello(body)
	if err != nil {
		return nil, &fault{FaultBadMessage, err}
	}
	if hello.Version != wire.Version {
		return nil, faultf(FaultVersion, "read hello: protocol version %d is not supported; use version %d",
			hello.Version, wire.Version)
	}
	return &hello, nil
}

// originOf returns the origin of the client's spans, such as service and environment, from its hello. If
// the hello identifies no container, originOf adds the container in which the client's process runs.
func (c *conn) originOf(hello *wire.Hello) span.Origin {
	origin := hello.Origin
	if origin.ContainerID == "" && origin.EntityID == "" {
		origin.ContainerID = c.peer.Container
	}
	return origin
}

// handleMessage handles one message of the client, except for the first, which is a hello. isBye reports
// whether the message is a bye, which is the last one.
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

// defineKeys handles a define message, which assigns numbers to keys. Later messages of the client can
// contain the number instead of the key. defineKeys returns an error if a number or a key is invalid.
func (c *conn) defineKeys(body []byte) error {
	definitions, err := wire.WalkDefine(body)
	if err != nil {
		return badMessage(err)
	}
	maxKeys := c.config.Admit.MaxKeys()
	for {
		number, key, ok := definitions.Next()
		if !ok {
			return badMessage(definitions.Err())
		}
		if int64(number) >= int64(maxKeys) {
			return faultf(FaultBadMessage, "define key: number %d is not below %d, the maximum in the welcome "+
				"message", number, maxKeys)
		}
		if err := c.publisher.Define(number, key); err != nil {
			return badMessage(err)
		}
	}
}

// countLost handles a lost message, in which a client reports how many spans it has lost for each reason.
// It adds them to the counters of the reasons and of the connection.
func (c *conn) countLost(body []byte) error {
	spansByReason, err := wire.DecodeLost(body)
	if err != nil {
		return badMessage(err)
	}
	for reason, spans := range spansByReason {
		c.counters.countLost(reason, spans)
		addLost(&c.lost, spans)
	}
	return nil
}

// maxPendingFlushes is the maximum number of flush requests of a connection without a reply.
const maxPendingFlushes = 8

// handleFlush handles a flush message, in which a client asks for delivery of all spans received so far.
// Another goroutine sends the reply after the delivery, so that the connection can handle other messages.
// If maxPendingFlushes flushes have no reply yet, handleFlush replies with an error instead.
func (c *conn) handleFlush(body []byte) error {
	request, err := wire.DecodeFlush(body)
	if err != nil {
		return badMessage(err)
	}
	pendingFlushes := c.pendingFlushes.Add(1)
	if pendingFlushes > maxPendingFlushes {
		c.pendingFlushes.Add(-1)
		c.sendFlushReply(wire.Flush{ID: request.ID, Error: "too many flushes of this connection wait for their " +
			"answer"})
		return nil
	}
	c.flushReplies.Go(func() { c.deliverAndReply(request.ID) })
	return nil
}

// deliverAndReply waits until all spans received so far are delivered, and then replies to the flush
// message with the ID flushID. It does not reply if the connection ends first.
func (c *conn) deliverAndReply(flushID uint64) {
	err := c.config.Deliver(c.flushContext)
	isCanceled := c.flushContext.Err() != nil
	c.pendingFlushes.Add(-1) // after the check, because serve cancels the context once no flush is pending
	if isCanceled {
		return
	}
	// The client may close after the reply, so it must know the outcome of its spans before.
	firstUnsettled, _ := c.config.Settled()
	c.sendSettled(firstUnsettled, c.features.Load())
	reply := wire.Flush{ID: flushID, OK: err == nil}
	if err != nil {
		reply.Error = err.Error()
	}
	c.sendFlushReply(reply)
}

// writeTimeout is the maximum time to write a frame. A frame has some hundred bytes and a socket buffer
// hundreds of kilobytes, so only clients that don't read exceed it.
const writeTimeout = 100 * time.Millisecond

// write writes one frame. Any goroutine can call it. It ignores errors, because messages that the client
// has sent before it closed the connection must still be read.
func (c *conn) write(frame []byte) {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	_ = c.writeLocked(frame)
}

// writeLocked writes one frame; the caller holds writeMu. A client that does not read the frame within
// writeTimeout is disconnected, because every later write could block as long.
func (c *conn) writeLocked(frame []byte) error {
	if err := c.socket.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	_, err := c.socket.Write(frame)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.disconnectSlow(err)
	}
	return err
}

// disconnectSlow shuts down both directions of the socket of a client that does not read. Data that the
// client has already sent is still read. writeErr is the error of the write that timed out.
func (c *conn) disconnectSlow(writeErr error) {
	c.counters.faults[FaultTooSlow].Add(1)
	err := fmt.Errorf("write to client: the client does not read: %w", writeErr)
	c.log.logClosed(FaultTooSlow, err, c.logAttributes())
	_ = c.socket.CloseRead()
	_ = c.socket.CloseWrite()
}

// sendWelcome sends the welcome message, which contains the limits and the features of the daemon.
// outcomes are the outcomes of the spans that the client sent to an earlier daemon; nil if unknown. A write
// error is ignored, because a client can send all its messages and leave without reading the welcome.
func (c *conn) sendWelcome(outcomes []uint64) {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	config := &c.config
	welcome := wire.Welcome{
		Version: wire.Version, Daemon: config.Version, Interval: uint64(config.Interval),
		MaxFrame: config.MaxFrame, MaxBatch: config.Admit.MaxBatch(),
		MaxKeys: config.Admit.MaxKeys(), MaxKeyBytes: config.Admit.MaxKeyBytes(),
		Features: *c.features.Load(), Settled: c.wantsSettled, Earlier: outcomes,
	}
	if c.wantsSettled {
		welcome.Token = c.publisher.Token()
	}
	err := c.writeLocked(wire.AppendWelcome(nil, &welcome))
	c.isWelcomed = err == nil
}

// sendFeatures sends changed features of the daemon to the client. It sends nothing before the welcome
// message, which contains the features too.
func (c *conn) sendFeatures(features *wire.Features) {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	if !c.isWelcomed {
		return
	}
	announcement := wire.Announcement{Features: *features, Settled: c.settled}
	_ = c.writeLocked(wire.AppendFeatures(nil, &announcement))
}

// sendSettled tells the client how many of its spans are settled: delivered, or finally dropped. The client
// stores all others, to resend them if the daemon crashes. Spans of aggregation cycles before firstUnsettled
// are settled. sendSettled sends nothing if the number has not increased, or if the client did not ask for it.
func (c *conn) sendSettled(firstUnsettled uint64, features *wire.Features) {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	if !c.isWelcomed {
		return
	}
	settled := c.publisher.Settled(firstUnsettled) // also frees memory, so it is called for all clients
	if !c.wantsSettled || settled <= c.settled {
		return
	}
	c.settled = settled
	announcement := wire.Announcement{Features: *features, Settled: settled}
	_ = c.writeLocked(wire.AppendFeatures(nil, &announcement))
}

func (c *conn) sendFlushReply(reply wire.Flush) { c.write(wire.AppendFlushAnswer(nil, &reply)) }

func (c *conn) sendBye(bye wire.Bye) { c.write(wire.AppendBye(nil, &bye)) }

// fail counts and logs an error that ends the connection, and sends it to the client as a bye message. It
// sends nothing if the client has already closed the connection.
func (c *conn) fail(err error) {
	reason := FaultOf(err)
	c.counters.faults[reason].Add(1)
	c.log.logClosed(reason, err, c.logAttributes())
	bye, canBeSent := ByeOf(err)
	if canBeSent {
		c.sendBye(bye)
	}
}

// dropRemaining reads all messages that the client has written but that have not been handled, and counts
// their spans as dropped. It never waits for the client, and ignores invalid messages.
func (c *conn) dropRemaining() {
	if err := recoverPanic(c.readRemaining); err != nil {
		c.log.logClosed(FaultBug, err, c.logAttributes())
	}
}

// readRemaining calls dropMessage with each message that the client has already written. It closes the
// read side of the socket first, so that at most one socket buffer of data is left to read.
func (c *conn) readRemaining() error {
	_ = c.socket.CloseRead() // fails only if the client has closed the connection
	_ = c.socket.SetReadDeadline(time.Time{})
	c.frames.eachRemaining(c.dropMessage)
	return nil
}

// dropMessage counts the spans of a message as dropped. head is the start of the message, and length the
// number of bytes of the whole message. Spans that the message reports as lost are counted as lost.
func (c *conn) dropMessage(head []byte, length int) {
	kind, body, err := wire.Split(head)
	if err != nil {
		return
	}
	missingBytes := length - len(head)
	switch kind {
	case wire.TypeSpans:
		c.config.Admit.Refuse(wire.CountSpans(body, missingBytes))
	case wire.TypeLost:
		if missingBytes == 0 {
			_ = c.countLost(body) // an error has no effect, because the connection has already ended
		}
	}
}

// release releases the publisher and the read buffers. Pending replies to flushes can still be sent.
func (c *conn) release() {
	c.frames.releaseLarge()
	c.frames.base, c.frames.buf = nil, nil
	if c.publisher != nil {
		c.publisher.Close()
	}
}

// waitForFlushes waits until the replies to all flush messages have been sent. It stops waiting if the
// client closes the connection or the daemon shuts down.
func (c *conn) waitForFlushes() {
	allReplied, clientClosed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(allReplied)
		c.flushReplies.Wait()
	}()
	go func() {
		defer close(clientClosed)
		c.waitForClose()
	}()
	select {
	case <-allReplied:
	case <-clientClosed:
	case <-c.draining:
	}
	c.stopFlushes()
	_ = c.socket.SetReadDeadline(time.Unix(1, 0)) // ends waitForClose
	<-clientClosed
}

// waitForClose waits until the client has closed its socket, or until the read deadline. A client that has
// only shut down writing can still read replies. A read returns io.EOF in both cases, so waitForClose polls
// the socket instead.
func (c *conn) waitForClose() {
	rawConn, err := c.socket.SyscallConn()
	if err != nil {
		return
	}
	_ = rawConn.Read(func(fd uintptr) (isClosed bool) { // returns an error at the deadline
		polled := []unix.PollFd{{Fd: int32(fd)}} // without requested events, poll reports only POLLHUP and errors
		_, err := unix.Poll(polled, 0)
		return err == nil && polled[0].Revents != 0
	})
}

// stopFlushes cancels pending flushes and waits until their goroutines have ended.
func (c *conn) stopFlushes() {
	c.cancelFlushes()
	c.flushReplies.Wait()
}
