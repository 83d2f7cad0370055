package otlp

import (
	"net/http"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/door/http1"
)

// serve answers a request that net/http has read.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.serving.Add(1)
	defer s.serving.Add(-1)
	conn := http1.ConnOf(r.Context())
	if conn != nil && conn.IsOver() {
		panic(http.ErrAbortHandler)
	}
	if conn != nil && !conn.HTTP2.Load() {
		conn.Begins()
		if c, ok := conn.TakeBegun().(*call); ok {
			s.resume(c, w, r)
			return
		}
	}
	c, no := open(head{
		method: r.Method, path: r.URL.Path, contentType: r.Header.Get("Content-Type"), contentEncoding: r.Header.Get("Content-Encoding"),
		grpcEncoding: r.Header.Get(headerGRPCEncoding), isHTTP2: r.ProtoMajor == 2,
	})
	defer c.release()
	if no == nil && c.signal != signalTraces && s.forward == nil {
		no = notServed(c.signal)
	}
	if no == nil {
		no = s.read(c, w, r)
	}
	var answer *reply
	result := ResultRefused
	if no != nil {
		answer, result = no.reply, no.result
	} else {
		answer, result = s.take(c, r)
	}
	s.counters.requests[result].Add(1)
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
	}
	if r.ProtoMajor == 2 {
		c.left = r.Context() // of HTTP/1.1 an SDK may have left having read
	}
	s.finish(conn, w, c, answer)
}

// finish answers a call, and finds out whether its SDK has the answer where that matters.
func (s *Server) finish(conn *http1.Conn, w http.ResponseWriter, c *call, answer *reply) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout)) // none where it can't be set
	err := answer.write(w, c.encoding, c.signal)
	if c.sum != 0 {
		hasLeft := c.left != nil && c.left.Err() != nil
		s.awaitReceipt(conn, c.sum, err == nil && !hasLeft, answer.isFinal())
	}
}

// isFinal says whether an answer ends the matter for its sender: it has no reason to send
// the same again.
func (a *reply) isFinal() bool { return !a.code.isRetryable(a.retry > 0) }

// notServed is what is said of what nobody takes here.
func notServed(s signal) *refusal {
	return refused(http.StatusNotFound, codeUnimplemented,
		s.String()+" are not taken here, as there is nowhere to forward them to; give the daemon --otlp-forward, or switch that exporter of the SDK off")
}

// awaitReceipt ends a request whose body was counted. Of HTTP/1.1 the connection finds out
// whether the SDK has an answer that was written; of HTTP/2, where an SDK that gives a
// request up says so, it has it unless it said that.
func (s *Server) awaitReceipt(c *http1.Conn, sum uint64, isWritten, isFinal bool) {
	if c == nil || c.HTTP2.Load() || !isWritten || !isFinal {
		s.counted.Close(sum, isWritten && isFinal)
		return
	}
	c.Receipt.Await(sum)
}
