package status

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
)

// openConnections fills the server with connections that have sent the given bytes, the oldest first.
func openConnections(t *testing.T, s *Server, sent string) (inside []net.Conn) {
	t.Helper()
	for range MaxConnections {
		inside = append(inside, dial(t, s, sent))
	}
	return inside
}

func dial(t *testing.T, s *Server, sent string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, sent); err != nil {
		t.Fatal(err)
	}
	return conn
}

// unhurried returns a server without a timeout for headers.
func unhurried(t *testing.T) *Server {
	t.Helper()
	s := newServer(t, Config{})
	s.http.ReadHeaderTimeout, s.http.ReadTimeout = 0, 0
	s.Start()
	s.SetReady(true)
	return s
}

// slowly returns a server that responds to requests with the header Slow when the channel is closed or the client
// disconnects. The server signals that such a request has started.
func slowly(t *testing.T, config Config, end chan struct{}) (s *Server, began chan struct{}) {
	t.Helper()
	s = newServer(t, config)
	s.http.ReadHeaderTimeout, s.http.ReadTimeout = 0, 0
	began = make(chan struct{}, MaxConnections)
	answer := s.http.Handler
	s.http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Slow") != "" {
			began <- struct{}{}
			select {
			case <-end:
			case <-r.Context().Done():
			}
		}
		answer.ServeHTTP(w, r)
	})
	s.Start()
	return s, began
}

const slowRequest = "GET /metrics HTTP/1.1\r\nHost: x\r\nSlow: 1\r\nConnection: close\r\n\r\n"

// TestProbes_AmongIncompleteRequests repeatedly fills all connections with incomplete requests. Each probe gets a
// response, because the oldest connection is evicted.
func TestProbes_AmongIncompleteRequests(t *testing.T) {
	for _, half := range []string{"", "GET /livez HTT", "GET /metrics HTTP/1.1\r\nHost: x\r\n"} {
		s := unhurried(t)
		inside := openConnections(t, s, half)
		for range 10 {
			if response, body := get(t, s, "/livez", nil); response.StatusCode != http.StatusOK {
				t.Fatalf("a probe beside %q: %s %s", half, response.Status, body)
			}
			dial(t, s, half)
		}
		if s.connections.Evicted() == 0 {
			t.Error("no idle connection was closed")
		}
		if _, err := bufio.NewReader(inside[0]).ReadByte(); err == nil {
			t.Error("the oldest got an answer to half a request")
		}
	}
}

// TestConnections_BusyAreNotEvicted floods the server with incomplete requests during a slow response. The response
// is completed. The evicted connections are counted.
func TestConnections_BusyAreNotEvicted(t *testing.T) {
	end := make(chan struct{})
	s, began := slowly(t, Config{}, end)
	slow := dial(t, s, slowRequest)
	<-began
	openConnections(t, s, "GET")
	get(t, s, "/livez", nil)
	close(end)
	response, err := http.ReadResponse(bufio.NewReader(slow), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if evicted := "\nspanstatsd_http_evicted_connections_total "; err != nil ||
		!strings.Contains(string(text), evicted) || strings.Contains(string(text), evicted+"0\n") {
		t.Errorf("%v: %.300s", err, text)
	}
}

// TestTLS_BusyConnectionIsNotEvicted checks that the limiter also recognizes busy connections over TLS.
func TestTLS_BusyConnectionIsNotEvicted(t *testing.T) {
	certificate, key := selfSigned(t)
	end := make(chan struct{})
	s, began := slowly(t, Config{WebConfigFile: webConfig(t,
		"tls_server_config:\n  cert_file: "+certificate+"\n  key_file: "+key+"\n")}, end)
	slow, err := tls.Dial("tcp", s.Addr(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	if _, err := io.WriteString(slow, slowRequest); err != nil {
		t.Fatal(err)
	}
	<-began
	openConnections(t, s, "")
	eventually.True(t, "a silent connection is evicted", func() bool { return s.connections.Evicted() > 0 })
	close(end)
	if text, err := io.ReadAll(slow); err != nil || !strings.HasPrefix(string(text), "HTTP/1.1 200 ") {
		t.Errorf("%v: %.100s", err, text)
	}
}

// TestConnections_UnfinishedResponsesAreEvicted fills all connections with unfinished responses. A probe still gets
// through.
func TestConnections_UnfinishedResponsesAreEvicted(t *testing.T) {
	s, began := slowly(t, Config{}, nil)
	openConnections(t, s, slowRequest)
	for range MaxConnections {
		<-began
	}
	if response, _ := get(t, s, "/livez", nil); response.StatusCode != http.StatusOK {
		t.Error(response.Status)
	}
}

// TestConnections_ClosedFreeSlots checks that closed connections free their slots.
func TestConnections_ClosedFreeSlots(t *testing.T) {
	s := unhurried(t)
	for range 2 * MaxConnections {
		conn := dial(t, s, "GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(conn); err != nil || !strings.Contains(string(text), "200 OK") {
			t.Fatalf("%v: %s", err, text)
		}
	}
	if n := s.connections.Evicted(); n != 0 {
		t.Errorf("%d gave way, though each had ended", n)
	}
}
