package ingest

import (
	"context"
	"errors"
	"io"
	"net"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/socket"
)

// conn is one tracer's connection. Its goroutine owns all of it but the socket's
// write side, which writing guards.
type conn struct {
	server    *Server
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

// connBytes is what a connection takes besides its publisher and its buffer.
const connBytes = int(unsafe.Sizeof(conn{}) + unsafe.Sizeof(frames{}))

// serve reads until the tracer or the daemon ends the connection.
func (c *conn) serve() {
	defer c.server.remove(c)
	defer c.socket.Close()
	defer c.release()
	defer c.endAnswers()
	err, isDraining := contain(c.read), c.server.isDraining()
	switch {
	case isDraining && (err == nil || errors.Is(err, io.EOF) || FaultOf(err) == FaultHalfFrame):
		c.bye(byeShutdown) // half a frame is where the daemon has cut it
	case err != nil && !errors.Is(err, io.EOF):
		c.fail(err)
	}
	c.countRest()
}

// fail counts and logs why the connection ends, and tells its tracer unless that has left.
func (c *conn) fail(err error) {
	reason := FaultOf(err)
	c.server.counters.faults[reason].Add(1)
	c.server.log.fault(reason, err, c)
	if bye, ok := ByeOf(err); ok {
		c.bye(bye)
	}
}

// endAnswers ends those who wait to answer a flush: there is nobody to tell any more.
func (c *conn) endAnswers() {
	c.end()
	c.answering.Wait()
}

// release gives back what the connection took of what all share.
func (c *conn) release() {
	c.frames.release()
	if c.publisher != nil {
		c.publisher.Close()
	}
}

// contain makes a panic an error: it costs one connection and no other.
func contain(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = faultf(FaultBug, "serve connection: panic: %v\n%s", p, debug.Stack())
		}
	}()
	return do()
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
		c.server.counters.frames.Add(1)
		left, err := c.handle(message)
		if left || err != nil {
			return err
		}
	}
}

// identify asks the kernel who connected, before a byte of it is read.
func (c *conn) identify() (err error) {
	if c.peer, err = c.server.credentials(c.socket); err != nil {
		return faultf(FaultNotAllowed, "identify tracer: %w", err)
	}
	allowed := c.server.config.AllowUIDs
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
