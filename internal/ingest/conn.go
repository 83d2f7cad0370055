package ingest

import (
	"context"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/socket"
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
