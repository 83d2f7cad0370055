package health

import (
	queue "container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

// MaxConnections bounds connections: probes, scrapes and people are a handful.
// Each costs some tens of KiB, and nothing else bounds how many a process beside us
// opens.
const MaxConnections = 256

// connLimiter closes a connection of a server when there are more than a maximum: the one that has waited
// longest for a request header, so that half-sent requests never shut out a probe; or the oldest, if every connection
// is waiting for a response. (netutil.LimitListener would stop accepting instead.) It is
// safe for concurrent use.
type connLimiter struct {
	max int

	mu      sync.Mutex
	order   queue.List // of *connection, by the time at which the wait for a header began
	of      map[net.Conn]*queue.Element
	evicted uint64
}

func newConnLimiter(limit int) *connLimiter {
	return &connLimiter{max: limit, of: map[net.Conn]*queue.Element{}}
}

type connection struct {
	net.Conn
	answering int // requests being served; several in HTTP/2
}

// connectionKey is where a request's context has its connection.
type connectionKey struct{}

// attach makes a server report its connections and requests.
func (c *connLimiter) attach(server *http.Server) {
	server.ConnState = c.follow
	server.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, connectionKey{}, conn)
	}
}

// follow is called with each state of each connection.
func (c *connLimiter) follow(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		if len(c.of) >= c.max {
			c.evict()
		}
		c.of[conn] = c.order.PushBack(&connection{Conn: conn})
	case http.StateClosed, http.StateHijacked:
		if at, open := c.of[conn]; open {
			c.forget(at)
		}
	}
}

// evict closes a connection.
func (c *connLimiter) evict() {
	chosen := c.order.Front()
	for at := chosen; at != nil; at = at.Next() {
		if at.Value.(*connection).answering == 0 {
			chosen = at
			break
		}
	}
	conn := chosen.Value.(*connection).Conn
	c.forget(chosen)
	c.evicted++
	if encrypted, ok := conn.(*tls.Conn); ok {
		conn = encrypted.NetConn() // without a close_notify, which might block
	}
	conn.Close()
}

func (c *connLimiter) forget(at *queue.Element) {
	delete(c.of, at.Value.(*connection).Conn)
	c.order.Remove(at)
}

// evictions returns how many connections were closed.
func (c *connLimiter) evictions() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.evicted
}

// watch marks connections while their requests are served.
func (c *connLimiter) watch(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _ := r.Context().Value(connectionKey{}).(net.Conn)
		c.answering(conn, 1)
		defer c.answering(conn, -1)
		next.ServeHTTP(w, r)
	})
}

// answering counts a response that begins or ends. After the last one, the wait for the next header begins.
func (c *connLimiter) answering(conn net.Conn, change int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, open := c.of[conn]
	if !open {
		return
	}
	known := at.Value.(*connection)
	if known.answering += change; known.answering == 0 {
		c.order.MoveToBack(at)
	}
}
