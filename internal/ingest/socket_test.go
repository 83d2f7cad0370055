package ingest

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// socketPair is the two ends of a connection, the first as the daemon reads it.
func socketPair(t *testing.T) (*socket, *net.UnixConn) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	tracer, err := net.DialUnix("unix", nil, listener.Addr().(*net.UnixAddr))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := listener.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(); tracer.Close() })
	return newSocket(conn), tracer
}

// TestSocketReads reads what comes in pieces, before and after it waited, up to the end.
func TestSocketReads(t *testing.T) {
	s, tracer := socketPair(t)
	want := bytes.Repeat([]byte("0123456789"), 50_000)
	go func() {
		for rest := want; len(rest) > 0; rest = rest[min(len(rest), 70_001):] {
			if _, err := tracer.Write(rest[:min(len(rest), 70_001)]); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Millisecond) // so that some reads find nothing at first
		}
		tracer.Close()
	}()
	got, err := io.ReadAll(s)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("read %d bytes and %v, want the %d that were written and no error", len(got), err, len(want))
	}
	if n, err := s.Read(nil); n != 0 || err != nil {
		t.Errorf("reading nothing: %d, %v", n, err)
	}
}

// TestSocketErrors: whoever reads can tell why there is nothing more to read.
func TestSocketErrors(t *testing.T) {
	for _, test := range []struct {
		name string
		do   func(s *socket, tracer *net.UnixConn)
		want error
	}{
		{"deadline", func(s *socket, _ *net.UnixConn) { s.SetReadDeadline(time.Now().Add(10 * time.Millisecond)) }, os.ErrDeadlineExceeded},
		{"closed here", func(s *socket, _ *net.UnixConn) { s.Close() }, net.ErrClosed},
		{"closed there", func(_ *socket, tracer *net.UnixConn) { tracer.Close() }, io.EOF},
		{"read side closed", func(s *socket, _ *net.UnixConn) { s.CloseRead() }, io.EOF},
		{"reset", func(s *socket, tracer *net.UnixConn) {
			s.Write([]byte("unread")) // closing with something unread resets
			tracer.Close()
		}, syscall.ECONNRESET},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, tracer := socketPair(t)
			done := make(chan error, 1)
			go func() {
				_, err := s.Read(make([]byte, 10))
				done <- err
			}()
			test.do(s, tracer)
			if err := <-done; !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
}

// TestSocketReadsWithoutAllocating, once it was made.
func TestSocketReadsWithoutAllocating(t *testing.T) {
	s, tracer := socketPair(t)
	buffer, message := make([]byte, 100), make([]byte, 100)
	if n := testing.AllocsPerRun(100, func() {
		tracer.Write(message)
		if n, err := s.Read(buffer); n == 0 || err != nil {
			t.Fatal(n, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a read", n)
	}
}
