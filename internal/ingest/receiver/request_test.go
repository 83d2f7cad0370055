package receiver

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver/conns"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
)

// oneConnection is a listener that accepts the same connection repeatedly.
type oneConnection struct {
	net.Listener
	conn net.Conn
}

func (l oneConnection) Accept() (net.Conn, error) { return l.conn, nil }

// TestServe_ClosedConnection checks that a request is not served if net/http has read it from a connection that was
// evicted as idle. Its sender retries, maybe at the next daemon.
func TestServe_ClosedConnection(t *testing.T) {
	served := 0
	config := DefaultConfig()
	config.MaxConnections, config.MaxBody, config.MaxBodyBytes = 4, 1<<20, 4<<20
	config.Admit, config.Log = newPublishers(t, 1).admit, slog.New(slog.DiscardHandler)
	s, err := New(&config, Setup{
		ReadHeaderTimeout: time.Hour, BodyTimeout: time.Hour, WriteTimeout: time.Hour, IdleTimeout: time.Hour,
		Results: []string{"any"},
		Classify: func(*BufferedRequest) (Exchange, Response) {
			served++
			return nil, func(http.ResponseWriter) error { return nil }
		},
	}, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, isClosed := range []bool{false, true} {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		accepted, _ := s.listeners.Limit(oneConnection{conn: ours}).Accept()
		if isClosed {
			s.limiter.CloseAll()
		}
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("body"))
		var panicked any
		func() {
			defer func() { panicked = recover() }()
			s.serve(httptest.NewRecorder(), r.WithContext(conns.ConnContext(t.Context(), accepted)))
		}()
		if served != 1 || (panicked == http.ErrAbortHandler) != isClosed {
			t.Errorf("closed %v: %d requests are served, panicked %v", isClosed, served, panicked)
		}
	}
}

// TestServer_DeadHTTP2Peer checks that a connection whose peer does not answer pings is closed although one of its
// requests is in flight.
func TestServer_DeadHTTP2Peer(t *testing.T) {
	config := DefaultConfig()
	config.MaxConnections, config.MaxBody, config.MaxBodyBytes = 4, 1<<20, 4<<20
	config.Admit, config.Log, config.Addr = newPublishers(t, 1).admit, slog.New(slog.DiscardHandler), "127.0.0.1:0"
	started, end := make(chan struct{}), make(chan struct{})
	s, err := New(&config, Setup{
		ReadHeaderTimeout: time.Hour, BodyTimeout: time.Hour, WriteTimeout: time.Hour, IdleTimeout: time.Hour,
		HTTP2:    &http.HTTP2Config{SendPingTimeout: 10 * time.Millisecond, PingTimeout: 10 * time.Millisecond},
		Classify: func(*BufferedRequest) (Exchange, Response) { return nil, nil },
		Stream:   http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(started); <-end }),
	}, 1)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	defer func() {
		close(end)
		if err := s.Drain(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	peer, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	const settings, get = "\x00\x00\x00\x04\x00\x00\x00\x00\x00",
		"\x00\x00\x06\x01\x05\x00\x00\x00\x01" + "\x82\x86\x84\x41\x01x"
	if _, err := io.WriteString(peer, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+settings+get); err != nil {
		t.Fatal(err)
	}
	<-started
	eventually.True(t, "the dead peer's slot is free", func() bool { return s.Stats().Connections == 0 })
}

// TestOutboundBody_FillsReads checks that each read fills its buffer across prefix and message, that the last read
// returns io.EOF, and that reads fail after Close.
func TestOutboundBody_FillsReads(t *testing.T) {
	for _, message := range [][]byte{{}, {1}, bytes.Repeat([]byte("span"), 100)} {
		for _, prefix := range [][]byte{nil, {0, 0, 0, 1, 0}} {
			complete := append(bytes.Clone(prefix), message...)
			for size := 1; size <= len(complete)+1; size++ {
				body := &outboundBody{prefix: prefix, message: message}
				from, _ := body.newReader()
				var got []byte
				for err := error(nil); err == nil; {
					piece := make([]byte, size)
					var n int
					n, err = from.Read(piece)
					got = append(got, piece[:n]...)
					if isLast := len(got) == len(complete); isLast != errors.Is(err, io.EOF) || !isLast && n != size {
						t.Fatalf("%d of %d bytes are read into a buffer of %d: %v", n, len(complete), size, err)
					}
				}
				if !bytes.Equal(got, complete) {
					t.Errorf("read %x, want %x", got, complete)
				}
				again, _ := body.newReader()
				body.Close()
				if n, err := again.Read(make([]byte, 1)); n != 0 || errors.Is(err, io.EOF) {
					t.Errorf("after Close: %d bytes, %v", n, err)
				}
			}
		}
	}
}

// TestIsTrue compares with the results of the Datadog agent.
func TestIsTrue(t *testing.T) {
	for value, want := range map[string]bool{
		"": false, "false": false, "0": false, "true": true, "1": true, "yes": true,
	} {
		if IsTrue(value) != want {
			t.Errorf("%q is %v", value, !want)
		}
	}
}
