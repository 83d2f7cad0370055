package health

import (
	"io"
	"net"
	"strings"
	"testing"
)

// TestCrowd fills the server with connections that say nothing: the next is
// closed and counted, those inside are answered, and one that leaves makes room.
func TestCrowd(t *testing.T) {
	s := newServer(t, Config{})
	s.http.ReadHeaderTimeout, s.http.ReadTimeout = 0, 0 // they stay, however long it takes to fill it
	s.Start()
	open := func() net.Conn {
		t.Helper()
		conn, err := net.Dial("tcp", s.Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	var inside []net.Conn
	for range maxHTTPConnections {
		inside = append(inside, open())
	}
	if answer, _ := io.ReadAll(open()); len(answer) > 0 || s.refused.Load() != 1 {
		t.Errorf("one too many got %q, %d are refused", answer, s.refused.Load())
	}
	ask := func(conn net.Conn) string {
		_, _ = io.WriteString(conn, "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		answer, _ := io.ReadAll(conn)
		return string(answer)
	}
	if answer := ask(inside[0]); !strings.Contains(answer, "\nspanstatsd_http_refused_total 1\n") {
		t.Errorf("who is inside got %.200q", answer)
	}
	for answer := ""; answer == ""; { // the server closes its end when it likes
		answer = ask(open())
	}
}
