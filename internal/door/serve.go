package door

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/door/bodies"
	"github.com/spanstatsd/spanstatsd/internal/door/http1"
)

// Take opens a plain request, for http1.
func (s *Server) Take(c *http1.Conn, r *http1.Request) http1.Exchange {
	h := s.Hold(c)
	h.Method, h.Path, h.Target, h.Fields = r.Method, r.Path, r.Path, &r.Fields
	if h.request, _ = s.door.Open(h); h.request == nil {
		return nil
	}
	return h
}

// Hold returns a request of which nothing is known yet but the connection that it came on.
func (s *Server) Hold(c *http1.Conn) *Held { return &Held{server: s, Conn: c} }

// serve answers a request that net/http has read up to its body.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.traffic.serving.Add(1)
	defer s.traffic.serving.Add(-1)
	s.traffic.byNetHTTP.Add(1)
	to := w // of HTTP/2 reply sets the deadline, as an answer there is whole and short
	if r.ProtoMajor == 1 {
		pieces := newResponseWriter(w, s)
		defer pieces.extendDeadline() // for the end of the answer, which net/http writes
		to = pieces
	}
	h := s.Hold(http1.ConnOf(r.Context()))
	h.HTTP = r
	if h.Conn != nil && h.Conn.IsOver() {
		panic(http.ErrAbortHandler)
	}
	if h.Conn != nil && !h.Conn.HTTP2.Load() {
		h.Conn.Begins()
		if begun, is := h.Conn.TakeBegun().(*Held); is {
			begun.HTTP = r
			begun.finish(to)
			return
		}
	}
	if r.ProtoMajor != 1 && s.setup.HTTP2 == nil { // the beginning of another protocol
		w.Header().Set("Connection", "close")
		http.Error(w, "unsupported protocol version", http.StatusHTTPVersionNotSupported)
		return
	}
	h.Method, h.Path, h.Target, h.Fields = r.Method, r.URL.Path, r.URL.RequestURI(), http1.Map(r.Header)
	request, reply := s.door.Open(h)
	if request == nil && reply == nil {
		s.door.Serve(to, r)
		return
	}
	isLeft := true // a part of the body, which nobody takes
	if h.request = request; reply == nil {
		err := h.read(to)
		isLeft = errors.Is(err, bodies.ErrNoRoom)
		reply = request.Read(err)
	}
	if reply == nil {
		h.finish(to)
		return
	}
	if !h.reply(to, reply) {
		panic(http.ErrAbortHandler)
	}
	if isLeft && r.ProtoMajor == 1 && r.Header.Get("Expect") == "" {
		control := http.NewResponseController(w)
		_ = control.SetReadDeadline(time.Now().Add(s.setup.Read)) // none where it can't be set
		_, _ = io.CopyN(io.Discard, r.Body, mostLeft)
	}
}

// mostLeft is how much is read of a body that is not taken. A sender that reads its answer behind its
// body would else find it gone with the connection.
const mostLeft = 64 << 20

// read reads the body of a request that net/http has. Where it breaks off the deadline stays:
// nothing more is waited for.
func (h *Held) read(w http.ResponseWriter) (err error) {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(h.server.setup.Read)) // none where it can't be set
	var has *atomic.Int64
	if h.Conn != nil {
		has = h.Conn.HasOfBodies
	}
	if h.Body, err = h.server.Bodies.Read(h.HTTP.Body, h.HTTP.ContentLength, has); err == nil {
		_ = control.SetReadDeadline(time.Time{})
	}
	return err
}

// responseWriter sets a write deadline for each piece of an answer, so that a sender that
// does not read holds its connection no longer than that. Between two pieces there may be any
// time. While the daemon stops it says of an answer that it is the connection's last.
type responseWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	server  *Server
}

func newResponseWriter(w http.ResponseWriter, s *Server) *responseWriter {
	to := &responseWriter{w, http.NewResponseController(w), s}
	to.extendDeadline() // for what net/http writes itself, such as 100 Continue
	return to
}

func (w *responseWriter) extendDeadline() {
	_ = w.control.SetWriteDeadline(time.Now().Add(w.server.setup.Write)) // none where it can't be set
}

// WriteHeader writes the header. Informational ones are sent at once.
func (w *responseWriter) WriteHeader(code int) {
	w.extendDeadline()
	if code >= http.StatusOK && w.server.IsStopping() {
		w.Header().Set("Connection", "close")
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *responseWriter) Write(p []byte) (int, error) {
	w.extendDeadline()
	return w.ResponseWriter.Write(p) //nolint:wrapcheck // net/http's own
}

// Unwrap is for http.ResponseController, also to flush what was written just before.
func (w *responseWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
