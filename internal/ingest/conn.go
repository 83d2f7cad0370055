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

	since      time.Time
	lost       atomic.Uint64          // spans that the client reports as lost
	clientInfo atomic.Pointer[Tracer] // description for the status page; nil before the hello

	pendingFlushes atomic.Int32    // flush requests without a reply
	flushReplies   sync.WaitGroup  // goroutines that wait to send a reply
	flushContext   context.Context // done when the connection ends
	cancelFlushes  context.CancelFunc

	writeMu           sync.Mutex
	isWelcomed        bool   // the welcome has been sent, so other messages may follow
	wantsSettledCount bool   // the client has requested the number of settled spans
	sentSettledCount  uint64 // number of settled spans that was sent last
}

// authenticate sets c.peer to the user and the process of the client, according to the kernel. It returns an error
// if the kernel does not report them, or if the user is not listed in --allow-uid.
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

// logAttributes returns log attributes that identify the client: user, process and container. They also contain the
// service and the language, if the client has sent its first message.
func (c *conn) logAttributes() []any {
	attributes := []any{"uid", c.peer.UID, "pid", c.peer.PID, "container", c.peer.Container}
	if info := c.clientInfo.Load(); info != nil {
		attributes = append(attributes, "service", info.Service, "lang", info.Lang)
	}
	return attributes
}

// serve handles the client's messages until the client or the daemon ends the connection, and then closes it. It
// counts spans in messages that it could not handle as dropped. Unless there was an error, it first waits until the
// client has the replies to its flush messages.
func (c *conn) serve() {
	defer c.socket.Close()
	defer c.cancelFlushReplies()
	err := recoverPanic(c.handleMessages)
	c.sendEndReason(err)
	c.dropRemaining()
	c.releaseResources()
	if isNormalEnd(err) {
		c.waitForFlushReplies()
	}
}

// isNormalEnd reports whether a connection has ended without an error. io.EOF means that one side has
// closed it after a complete message.
func isNormalEnd(err error) bool { return err == nil || errors.Is(err, io.EOF) }

// sendEndReason sends a bye message with the reason if the daemon, and not the client, ends the connection. err is
// the result of handleMessages. If it is a fault of the client, sendEndReason also counts and logs it.
func (c *conn) sendEndReason(err error) {
	switch {
	case c.isEndedByShutdown(err):
		c.sendBye(byeShutdown)
	case isNormalEnd(err): // the client has ended the connection
	case errors.Is(err, errEarlierPending):
		c.sendBye(wire.Bye{Reason: "earlier_pending", Detail: err.Error()})
	default:
		c.fail(err)
	}
}

// isEndedByShutdown reports whether a connection, whose handleMessages returned err, ends because the daemon shuts
// down. The last frame can then be incomplete, because the shutdown can interrupt a write of the client.
func (c *conn) isEndedByShutdown(err error) bool {
	if !c.isDraining() {
		return false
	}
	return isNormalEnd(err) || FaultOf(err) == FaultIncompleteFrame
}

// handleMessages reads and handles messages of the client until the connection ends. It returns nil after a bye,
// the regular last message, and io.EOF if the client has closed the connection without a bye.
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

// handleHello reads the first message of the client, the hello, and replies with a welcome message. A client that
// reconnects also learns what happened to its earlier spans. handleHello creates c.publisher, which later passes the
// client's spans to the aggregation.
func (c *conn) handleHello() error {
	hello, message, err := readHello(c.frames)
	hasRead := message != nil // perhaps not a valid hello
	if hasRead {
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
	c.wantsSettledCount = hello.Settled // whether to report how many spans are delivered
	c.clientInfo.Store(c.describe(hello))
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
	// outcomesTimeout is the maximum time that a welcome waits for a daemon that is still shutting down. It
	// is shorter than the time that clients wait.
	outcomesTimeout = 2 * time.Second
	outcomesPoll    = 100 * time.Millisecond
)

// errEarlierPending ends a connection whose client must ask again later. It is not a fault of the client.
var errEarlierPending = errors.New("handle hello: the daemon of the earlier connection is still shutting down; " +
	"retry later")

// awaitOutcomes returns what happened to the spans of the client's previous connection: which were delivered, and
// which were lost. token identifies that connection. If the daemon that accepted it is still shutting down,
// awaitOutcomes waits for up to outcomesTimeout, and then returns errEarlierPending.
func (c *conn) awaitOutcomes(token string) (outcomes []uint64, err error) {
	deadline := time.Now().Add(outcomesTimeout)
	for {
		outcomes, isRunning := c.config.Recovery.OutcomesOf(token)
		if !isRunning {
			return outcomes, nil
		}
		if c.isDraining() {
			return nil, io.EOF // not an error of the client
		}
		if time.Now().After(deadline) {
			return nil, errEarlierPending
		}
		time.Sleep(outcomesPoll)
	}
}

// readHello reads and decodes the first message of a client, which must be a hello. If it reads a message that is
// not a valid hello, it returns both the encoded message and an error.
func readHello(frames *frameReader) (hello *wire.Hello, message []byte, err error) {
	message, err = frames.first(helloTimeout)
	if err != nil {
		isTooSlow := FaultOf(err) == FaultTooSlow
		if isTooSlow {
			err = faultf(FaultNoHello, "read hello: no message within %s", helloTimeout)
		}
		return nil, nil, err
	}
	kind, body, err := wire.Split(message)
	if err != nil {
		return nil, message, &fault{FaultNoHello, err}
	}
	if kind != wire.TypeHello {
		frames.unread(message) // so that conn.dropRemaining reads it again, and counts its spans as dropped
		return nil, message, faultf(FaultNoHello, "read hello: the first message is %s", kind)
	}
	hello, err = decodeHello(body)
	return hello, message, err
}

// decodeHello decodes the body of a hello, the first message of a client. It returns an error if the body is
// malformed, or if the client uses another protocol version than wire.Version.
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

// originOf returns the properties of the client's process that the hello contains, such as service and environment.
// If the hello identifies no container, originOf adds the container in which the process runs.
func (c *conn) originOf(hello *wire.Hello) span.Origin {
	origin := hello.Origin
	isContainerKnown := origin.ContainerID != "" || origin.EntityID != ""
	if !isContainerKnown {
		origin.ContainerID = c.peer.Container
	}
	return origin
}

// handleMessage handles any message of the client but the first one. isBye is true for a bye, after which the
// client sends no more messages. handleMessage returns an error if the message is invalid.
func (c *conn) handleMessage(message []byte) (isBye bool, err error) {
	kind, body, err := wire.Split(message)
	if err != nil {
		return false, asBadMessage(err)
	}
	switch kind {
	case wire.TypeSpans:
		err = c.publisher.Publish(body)
		return false, asBadMessage(err)
	case wire.TypeDefine:
		return false, c.defineKeys(body)
	case wire.TypeLost:
		return false, c.countLost(body)
	case wire.TypeFlush:
		return false, c.handleFlush(body)
	case wire.TypeBye:
		_, err = wire.DecodeBye(body)
		return true, asBadMessage(err)
	default:
		return false, faultf(FaultBadMessage, "handle message: unexpected %s", kind)
	}
}

// defineKeys handles a message in which the client assigns numbers to label sets (keys), so that later messages can
// contain the number instead of the labels. It returns an error if the message, a number or a key is invalid.
func (c *conn) defineKeys(body []byte) error {
	definitions, err := wire.WalkDefine(body)
	if err != nil {
		return asBadMessage(err)
	}
	maxKeys := c.config.Admit.MaxKeys()
	for {
		number, key, hasNext := definitions.Next()
		if !hasNext {
			break
		}
		if int64(number) >= int64(maxKeys) {
			return faultf(FaultBadMessage, "define key: number %d is not below %d, the maximum in the welcome "+
				"message", number, maxKeys)
		}
		if err := c.publisher.Define(number, key); err != nil {
			return asBadMessage(err)
		}
	}
	return asBadMessage(definitions.Err()) // nil unless the loop has ended at an invalid definition
}

// countLost handles a message in which the client reports how many spans it could not send, by reason. It adds the
// numbers to the daemon's counter for each reason and to the counter of this connection.
func (c *conn) countLost(body []byte) error {
	spansByReason, err := wire.DecodeLost(body)
	if err != nil {
		return asBadMessage(err)
	}
	for reason, spans := range spansByReason {
		c.counters.countLost(reason, spans)
		addLost(&c.lost, spans)
	}
	return nil
}

// maxPendingFlushes is the maximum number of flush requests of a connection without a reply.
const maxPendingFlushes = 8

// handleFlush handles a message in which the client asks for delivery of all spans received so far. Another
// goroutine waits for the delivery and sends the reply, so that handleFlush does not block. If maxPendingFlushes
// such goroutines are already running, handleFlush replies with an error instead.
func (c *conn) handleFlush(body []byte) error {
	request, err := wire.DecodeFlush(body)
	if err != nil {
		return asBadMessage(err)
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

// deliverAndReply waits until all spans received so far are delivered, and then replies to the client's flush
// message with the ID flushID. It sends no reply if c.flushContext is canceled first.
func (c *conn) deliverAndReply(flushID uint64) {
	err := c.config.Deliver(c.flushContext)
	c.pendingFlushes.Add(-1)
	isCanceled := c.flushContext.Err() != nil
	if isCanceled {
		return
	}
	// A client can close the connection as soon as it has the reply. So it first learns how many spans are settled.
	firstUnsettledInterval, _ := c.config.Settled()
	c.sendSettled(firstUnsettledInterval, c.features.Load())
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

// writeLocked writes one frame to the client; the caller must hold c.writeMu. If the write takes longer than
// writeTimeout, it disconnects the client, because every later write could block as long.
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

// disconnectSlow counts and logs that the client does not read, and makes all later writes of both sides fail. The
// daemon can still read data that the client has already written. writeErr is the error of the write that timed out.
func (c *conn) disconnectSlow(writeErr error) {
	c.counters.faults[FaultTooSlow].Add(1)
	err := fmt.Errorf("write to client: the client does not read: %w", writeErr)
	c.log.logClosed(FaultTooSlow, err, c.logAttributes())
	_ = c.socket.CloseRead()  // later writes of the client fail, but the data that it has written stays readable
	_ = c.socket.CloseWrite() // later writes of the daemon fail
}

// sendWelcome sends the daemon's first message, which contains its limits and features. outcomes states what
// happened to spans that the client sent to a previous daemon, or is nil if that is unknown. A write error is
// ignored, because a client can send all its messages and leave without reading.
func (c *conn) sendWelcome(outcomes []uint64) {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	config := &c.config
	welcome := wire.Welcome{
		Version: wire.Version, Daemon: config.Version, Interval: uint64(config.Interval),
		MaxFrame: config.MaxFrame, MaxBatch: config.Admit.MaxBatch(),
		MaxKeys: config.Admit.MaxKeys(), MaxKeyBytes: config.Admit.MaxKeyBytes(),
		Features: *c.features.Load(),
		Settled:  c.wantsSettledCount, // whether later messages contain the number of settled spans
		Earlier:  outcomes,            // of the client's previous connection
	}
	if c.wantsSettledCount {
		// After a reconnect, the client asks with this token for the outcomes of its earlier spans.
		welcome.Token = c.publisher.Token()
	}
	err := c.writeLocked(wire.AppendWelcome(nil, &welcome))
	c.isWelcomed = err == nil
}

// sendFeatures tells the client which features the daemon has now. It sends nothing if the welcome message has not
// been sent, because that message contains the features too.
func (c *conn) sendFeatures(features *wire.Features) {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	if !c.isWelcomed {
		return
	}
	settledCount := c.sentSettledCount // the message has to repeat the number of settled spans
	announcement := wire.Announcement{Features: *features, Settled: settledCount}
	_ = c.writeLocked(wire.AppendFeatures(nil, &announcement))
}

// sendSettled tells the client how many of its spans are settled, that is delivered or finally dropped; the client
// needs no copy of those. All spans from export intervals with a number below firstUnsettledInterval are settled.
// sendSettled sends nothing if there are no newly settled spans, or if the client did not ask for this.
func (c *conn) sendSettled(firstUnsettledInterval uint64, features *wire.Features) {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	if !c.isWelcomed {
		return
	}
	settledCount := c.publisher.SettleBefore(firstUnsettledInterval) // always needed, because it also frees memory
	hasGrown := settledCount > c.sentSettledCount
	if c.wantsSettledCount && hasGrown {
		c.sentSettledCount = settledCount
		announcement := wire.Announcement{Features: *features, Settled: settledCount}
		_ = c.writeLocked(wire.AppendFeatures(nil, &announcement))
	}
}

func (c *conn) sendFlushReply(reply wire.Flush) { c.write(wire.AppendFlushAnswer(nil, &reply)) }

func (c *conn) sendBye(bye wire.Bye) { c.write(wire.AppendBye(nil, &bye)) }

// fail counts and logs err, which ends the connection, and sends the reason to the client as the last message. It
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

// dropMessage counts the spans in an unhandled message as dropped. head is the first part of the message, and
// length is the length of the whole message. If the message is a complete report of spans that the client has lost,
// dropMessage counts those spans as lost.
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

// releaseResources releases the publisher and the read buffers. Pending replies to flushes can still be sent.
func (c *conn) releaseResources() {
	c.frames.releaseLarge()
	c.frames.base, c.frames.buf = nil, nil
	if c.publisher != nil {
		c.publisher.Close()
	}
}

// waitForFlushReplies waits until the daemon has replied to all pending flush messages of the client. It returns early
// if the client closes the connection, or if the daemon begins to shut down.
func (c *conn) waitForFlushReplies() {
	allReplied := doneAfter(c.flushReplies.Wait)
	clientClosed := doneAfter(c.waitForClose)
	select {
	case <-allReplied:
	case <-clientClosed:
	case <-c.draining:
	}
	// serve closes the socket next, so no goroutine may use it any more.
	c.cancelFlushReplies()
	past := time.Unix(1, 0)
	_ = c.socket.SetReadDeadline(past) // makes waitForClose return
	<-clientClosed
}

// doneAfter calls fn in a new goroutine. The returned channel is closed when fn has returned.
func doneAfter(fn func()) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		fn()
	}()
	return done
}

// waitForClose waits until the client has closed its socket completely, or until the read deadline. It polls the
// socket, because a read also returns io.EOF if the client has only shut down writing, and such a client can still
// read replies.
func (c *conn) waitForClose() {
	rawConn, err := c.socket.SyscallConn()
	if err != nil {
		return
	}
	isClosed := func(fd uintptr) bool {
		polled := []unix.PollFd{{Fd: int32(fd)}} // without requested events, poll reports only POLLHUP and errors
		_, err := unix.Poll(polled, 0)
		return err == nil && polled[0].Revents != 0
	}
	_ = rawConn.Read(isClosed) // calls isClosed at each event until it returns true; returns an error at the deadline
}

// cancelFlushReplies cancels pending flushes and waits until their goroutines have ended.
func (c *conn) cancelFlushReplies() {
	c.cancelFlushes()
	c.flushReplies.Wait()
}
