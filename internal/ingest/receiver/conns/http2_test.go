package conns

import (
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"
)

// evictingConn closes all idle connections of a limiter immediately before each write, while isResponding is true.
type evictingConn struct {
	net.Conn
	limiter      *Limiter
	isResponding *atomic.Bool
}

func (c *evictingConn) Write(b []byte) (int, error) {
	if c.isResponding.Load() {
		c.limiter.CloseIdle()
	}
	return c.Conn.Write(b)
}

// evictingListener adds accepted connections to a limiter.
type evictingListener struct {
	net.Listener
	limiter      *Limiter
	isResponding *atomic.Bool
}

func (l *evictingListener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &Conn{Conn: &evictingConn{accepted, l.limiter, l.isResponding}}
	l.limiter.add(c)
	return c, nil
}

// TestCloseIdle_HTTP2ResponseIsComplete checks that an HTTP/2 connection is not closed as idle before the end of its
// last response is written. Once it is written, the connection is idle.
func TestCloseIdle_HTTP2ResponseIsComplete(t *testing.T) {
	limiter := NewLimiter(4)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	isResponding := &atomic.Bool{}
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{
		Protocols: protocols, ConnState: ConnState, ConnContext: ConnContext,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			FromContext(r.Context()).SetHTTP2()
			isResponding.Store(true)
			w.Header().Set("Trailer", "Grpc-Status")
			_, _ = io.WriteString(w, "counted")
			w.Header().Set("Grpc-Status", "0")
		}),
	}
	go func() { _ = server.Serve(&evictingListener{listener, limiter, isResponding}) }()
	t.Cleanup(func() { _ = server.Close() })
	client := &http.Client{Transport: &http.Transport{Protocols: protocols}}
	for range 100 {
		response, err := client.Post("http://"+listener.Addr().String(), "application/grpc", nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		isResponding.Store(false)
		if err != nil || string(body) != "counted" || response.Trailer.Get("Grpc-Status") != "0" {
			t.Fatalf("%q with the trailer %v: %v", body, response.Trailer, err)
		}
	}
	isOpen := func() bool {
		limiter.CloseIdle()
		n, _ := limiter.Count()
		return n > 0
	}
	for isOpen() { // the server may not have returned from its last write yet
		time.Sleep(time.Millisecond)
	}
}
