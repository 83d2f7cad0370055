package ingest

import (
	"context"
	"errors"
	"io"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// helloTimeout is how long a tracer may take to say who it is.
const helloTimeout = 5 * time.Second

// conn is one tracer's connection. Its goroutine owns all of it but the socket's
// write side, which writing guards.
type conn struct {
	admission
	socket *socket
	frames *frames
	peer   peer

	since    time.Time
	received atomic.Uint64          // spans; the goroutine's own, for others to read
	dropped  atomic.Uint64          // of them
	missed   atomic.Uint64          // spans that it says it lost itself
	known    atomic.Pointer[Tracer] // what status says of it, once it has said hello

	writing   sync.Mutex
	greeted   bool // welcome was sent, so features may follow
	reporting int  // answers to flushes that are owed

	leeway   leeway
	gathered [mostGathered]wire.SpansWalker // batches that are admitted together
	together int                            // of them
	apart    int                            // frames that are not gathered, after some that found no room together
}

// serve reads until the tracer or the daemon ends the connection.
func (c *conn) serve() {
	defer c.server.remove(c)
	defer c.socket.Close()
	defer c.leave()
	defer c.frames.release()
	err := c.guarded()
	if err == nil || errors.Is(err, io.EOF) {
		if c.server.isDraining() {
			c.bye(byeShutdown)
		}
		return
	}
	reason := faultOf(err)
	c.server.counters.faults[reason].Add(1)
	c.server.log.fault(reason, err, c)
	if reason != FaultHalfFrame {
		c.bye(wire.Bye{Reason: reason.String(), Detail: err.Error(), Versions: versionsFor(reason)})
	}
}

// versionsFor tells a tracer that speaks another version which are spoken.
func versionsFor(reason Fault) []uint64 {
	if reason == FaultVersion {
		return []uint64{wire.Version}
	}
	return nil
}

// guarded reads until there is nothing more: io.EOF where the tracer just left. It
// contains a panic: it costs this connection and no other.
func (c *conn) guarded() (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = faultf(FaultBug, "serve connection: panic: %v\n%s", p, debug.Stack())
		}
	}()
	if err := c.identify(); err != nil {
		return err
	}
	if err := c.hello(); err != nil {
		return err
	}
	for {
		message, err := c.frames.next()
		if err != nil {
			return err
		}
		c.server.counters.frames.Add(1)
		left, err := c.handle(message)
		if left || err != nil {
			return err
		}
	}
}

// identify asks the kernel who connected, before a byte of it is read.
func (c *conn) identify() (err error) {
	if c.peer, err = credentials(c.socket.UnixConn); err != nil {
		return faultf(FaultNotAllowed, "identify tracer: %w", err)
	}
	allowed := c.server.config.AllowUIDs
	if len(allowed) > 0 && !slices.Contains(allowed, c.peer.uid) {
		return faultf(FaultNotAllowed, "identify tracer: user %d is not one of --allow-uid", c.peer.uid)
	}
	return nil
}

// hello reads the first message and answers it.
func (c *conn) hello() error {
	message, err := c.frames.first(helloTimeout)
	if err != nil {
		if faultOf(err) == FaultTooSlow {
			return faultf(FaultNoHello, "read hello: none within %s", helloTimeout)
		}
		return err
	}
	c.server.counters.frames.Add(1)
	kind, body, err := wire.Split(message)
	if err != nil {
		return &fault{FaultNoHello, err}
	}
	if kind != wire.TypeHello {
		return faultf(FaultNoHello, "read hello: the first message is %s", kind)
	}
	hello, err := wire.DecodeHello(body)
	if err != nil {
		return &fault{FaultBadMessage, err}
	}
	if hello.Version != wire.Version {
		return faultf(FaultVersion, "read hello: version %d is not spoken here, %d is", hello.Version, wire.Version)
	}
	c.originate(hello.Origin)
	c.known.Store(&Tracer{
		Client: span.Text(hello.Client, span.MaxOriginField), Service: c.origin.Service, Env: c.origin.Env,
		Lang: c.origin.Lang, Container: c.origin.ContainerID,
		UID: c.peer.uid, PID: c.peer.pid, Since: c.since,
	})
	c.server.config.Log.Debug("tracer connected", c.attributes()...)
	if c.welcome() != nil {
		return io.EOF
	}
	return nil
}

// originate completes the origin by what the tracer did not say and we know.
func (c *conn) originate(o span.Origin) {
	if o.ContainerID == "" && o.EntityID == "" {
		o.ContainerID = c.peer.container
	}
	c.origin = c.server.complete(o)
}

// complete gives an origin the daemon's host and environment where it has none.
func (s *Server) complete(o span.Origin) span.Origin {
	if o.Host == "" {
		o.Host = s.config.DefaultHost
	}
	if o.Env == "" {
		o.Env = s.config.DefaultEnv
	}
	o.Normalize()
	return o
}

// attributes are how a line of the log names a connection.
func (c *conn) attributes() []any {
	return []any{
		"uid", c.peer.uid, "pid", c.peer.pid, "container", c.peer.container,
		"service", c.origin.Service, "lang", c.origin.Lang,
	}
}

// handle does what one message asks. It reports whether the tracer has left.
func (c *conn) handle(message []byte) (left bool, err error) {
	kind, body, err := wire.Split(message)
	if err != nil {
		return false, &fault{FaultBadMessage, err}
	}
	switch kind {
	case wire.TypeSpans:
		return false, c.spans(body)
	case wire.TypeDefine:
		return false, c.define(body)
	case wire.TypeLost:
		return false, c.lost(body)
	case wire.TypeFlush:
		return false, c.flush(body)
	case wire.TypeBye:
		return true, nil
	default:
		return false, faultf(FaultBadMessage, "handle message: a tracer does not send %s here", kind)
	}
}

// lost adds what the tracer itself had to drop to the counters of its kind.
func (c *conn) lost(body []byte) error {
	lost, err := wire.DecodeLost(body)
	if err != nil {
		return &fault{FaultBadMessage, err}
	}
	for reason, spans := range lost {
		c.server.counters.countLost(reason, spans)
		addUpTo(&c.missed, spans)
	}
	return nil
}

// maxOpenFlushes bounds the answers that one connection may be owed.
const maxOpenFlushes = 8

// flush asks for a report and answers when it has arrived. The connection goes
// on reading meanwhile; one question too many is refused at once.
func (c *conn) flush(body []byte) error {
	request, err := wire.DecodeFlush(body)
	if err != nil {
		return &fault{FaultBadMessage, err}
	}
	c.writing.Lock()
	busy := c.reporting == maxOpenFlushes
	if !busy {
		c.reporting++
	}
	c.writing.Unlock()
	if busy {
		c.answer(wire.Flush{ID: request.ID, Error: "too many flushes of this connection wait for their answer"})
		return nil
	}
	c.server.answering.Add(1)
	go func() {
		defer c.server.answering.Done()
		err := c.server.report()
		c.writing.Lock()
		c.reporting--
		c.writing.Unlock()
		answer := wire.Flush{ID: request.ID, OK: err == nil}
		if err != nil {
			answer.Error = err.Error()
		}
		c.answer(answer)
	}()
	return nil
}

// report seals now and waits for the outcome. Stop ends the wait.
func (s *Server) report() error {
	reported, err := s.config.Aggregator.Report(s.reports)
	if err == nil {
		err = reported.Wait(s.reports)
	}
	if errors.Is(err, context.Canceled) {
		return aggregate.ErrStopped
	}
	return err
}
