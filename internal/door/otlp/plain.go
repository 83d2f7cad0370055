package otlp

import (
	"net/http"

	"github.com/spanstatsd/spanstatsd/internal/door/http1"
)

// Requests of OTLP/HTTP that nothing is odd about, which are nearly all, are answered on their
// connection: see package http1. Those that wait for the destination to be there are net/http's,
// which knows how to wait; and so is all that goes on by gRPC or TLS.

// Takes says which are answered there.
func (s *Server) Takes(method, path string, fields *http1.Fields) bool {
	if s.forward != nil && s.forward.upstreams == nil {
		return false
	}
	c, no := open(headOf(method, path, fields))
	return no == nil && (c.signal == signalTraces || s.forward != nil)
}

// headOf is what says of a plain request how it is to be read.
func headOf(method, path string, fields *http1.Fields) head {
	return head{method: method, path: path, contentType: fields.Get("Content-Type"), contentEncoding: fields.Get("Content-Encoding")}
}

// Answer answers one, or has net/http go on with it, which is told what was found so far.
func (s *Server) Answer(conn *http1.Conn, r *http1.Request) (isOver bool) {
	s.serving.Add(1)
	defer s.serving.Add(-1)
	c, _ := open(headOf(r.Method, r.Path, &r.Fields)) // it is taken
	c.body = r.Body
	defer func() {
		if isOver {
			c.release()
		}
	}()
	answer, result := s.readPlain(conn, c, r)
	if answer == nil {
		answer, result = s.weigh(c, r.Fields.Get(headerComputedStats))
	}
	s.counters.requests[result].Add(1)
	if answer == nil {
		answer = s.forward.sendPlain(conn, r.Fields, c)
	}
	if answer == nil {
		c.begun = begun{s, conn, r.Fields.Header()}
		conn.HandOver(c)
		return false
	}
	s.finish(conn, conn.NewWriter(), c, answer)
	return true
}

// readPlain takes a body that was read, or says what is wrong with it, after which nothing is
// known of what comes.
func (s *Server) readPlain(conn *http1.Conn, c *call, r *http1.Request) (*reply, Result) {
	if r.Broken != nil {
		conn.EndBehind()
		no := s.notRead(r.Broken)
		return no.reply, no.result
	}
	c.message = c.body.Bytes
	return nil, 0
}

// begun is what net/http needs to go on with a call that was begun without it.
type begun struct {
	server *Server
	conn   *http1.Conn
	header http.Header
}

// Abandon ends a call that nobody goes on with.
func (c *call) Abandon() {
	c.release()
	if c.sum != 0 {
		c.begun.server.counted.Close(c.sum, false)
	}
}

// resume goes on with a call that is to be sent to the destination.
func (s *Server) resume(c *call, w http.ResponseWriter, r *http.Request) {
	defer c.release()
	r.Header = c.begun.header
	s.finish(c.begun.conn, w, c, s.forward.send(r, c))
}
