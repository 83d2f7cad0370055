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

// connections holds the HTTP address to its limit. Where there are too many, the one
// that has kept us waiting for a request's head the longest gives way, so that half-sent
// requests never shut a probe out; where each is being answered, the oldest does.
type connections struct {
	mu      sync.Mutex
	order   queue.List // of *connection, by when its wait for a head began
	of      map[net.Conn]*queue.Element
	gaveWay uint64
}

type connection struct {
	net.Conn
	answering int // requests with a whole head; several in HTTP/2
}

// connectionKey is where a request's context has its connection.
type connectionKey struct{}

// attach has a server tell of its connections and requests.
func (c *connections) attach(server *http.Server) {
	c.of = map[net.Conn]*queue.Element{}
	server.ConnState = c.follow
	server.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, connectionKey{}, conn)
	}
}

// follow is told of each connection's states.
func (c *connections) follow(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		if len(c.of) >= MaxConnections {
			c.closeOne()
		}
		c.of[conn] = c.order.PushBack(&connection{Conn: conn})
	case http.StateClosed, http.StateHijacked:
		if at, open := c.of[conn]; open {
			c.forget(at)
		}
	}
}

// closeOne has a connection give way.
func (c *connections) closeOne() {
	chosen := c.order.Front()
	for at := chosen; at != nil; at = at.Next() {
		if at.Value.(*connection).answering == 0 {
			chosen = at
			break
		}
	}
	conn := chosen.Value.(*connection).Conn
	c.forget(chosen)
	c.gaveWay++
	if encrypted, ok := conn.(*tls.Conn); ok {
		conn = encrypted.NetConn() // without a farewell, which might wait
	}
	conn.Close()
}

func (c *connections) forget(at *queue.Element) {
	delete(c.of, at.Value.(*connection).Conn)
	c.order.Remove(at)
}

// refused is how many connections gave way.
func (c *connections) refused() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gaveWay
}

// watch marks connections while their requests are answered.
func (c *connections) watch(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _ := r.Context().Value(connectionKey{}).(net.Conn)
		c.answering(conn, 1)
		defer c.answering(conn, -1)
		next.ServeHTTP(w, r)
	})
}

// answering counts an answer that begins or ends. Behind the last, the wait for the next head
// begins.
func (c *connections) answering(conn net.Conn, change int) {
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
