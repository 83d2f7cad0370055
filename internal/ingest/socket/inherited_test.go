package socket

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// duplicate returns a duplicate of a socket, like a service manager that passes it to one daemon after the other.
func duplicate(t *testing.T, kept *os.File) *net.UnixListener {
	t.Helper()
	listener, err := net.FileListener(kept)
	if err != nil {
		t.Fatal(err)
	}
	return listener.(*net.UnixListener)
}

// After RejectNew, the first daemon accepts no connection and does not remove the socket. The next daemon
// accepts the pending connections with the data that their clients have written.
func TestInheritedSocket_PendingGoToNextDaemon(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	manager, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	kept, err := manager.File()
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	for daemons := range 3 {
		l, err := Listen(Config{Path: path, Inherited: duplicate(t, kept)})
		if err != nil {
			t.Fatal(err)
		}
		if daemons > 0 {
			conn, err := l.AcceptUnix()
			if err != nil {
				t.Fatal(err)
			}
			if text, err := io.ReadAll(conn); string(text) != "spans" || err != nil {
				t.Errorf("daemon %d reads %q, %v", daemons, text, err)
			}
			conn.Close()
		}
		waiting := make(chan error)
		go func() {
			_, err := l.AcceptUnix()
			waiting <- err
		}()
		l.RejectNew()
		if err := <-waiting; !errors.Is(err, net.ErrClosed) {
			t.Errorf("an accept that waits ends with %v", err)
		}
		tracer, err := net.Dial("unix", path)
		if err != nil {
			t.Fatalf("daemon %d has shut the socket: %v", daemons, err)
		}
		if _, err := tracer.Write([]byte("spans")); err != nil {
			t.Error(err)
		}
		tracer.Close()
		if _, err := l.AcceptUnix(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("daemon %d accepts after its stop: %v", daemons, err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(path); err != nil {
			t.Fatalf("daemon %d has removed the socket: %v", daemons, err)
		}
	}
	if _, err := os.Lstat(path + ".lock"); err == nil {
		t.Error("an inherited socket is locked")
	}
}

// A new socket would not be the one that the service manager passes to the next daemon.
func TestInheritedSocket_IsNotRecreated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	manager, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	kept, err := manager.File()
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	l, err := Listen(Config{Path: path, Inherited: duplicate(t, kept)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	log := &lines{}
	l.checkFile(slog.New(slog.NewTextHandler(log, nil)))
	if l.Unreachable() != nil {
		t.Error(l.Unreachable())
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	l.checkFile(slog.New(slog.NewTextHandler(log, nil)))
	if err := l.Unreachable(); err == nil || !strings.Contains(err.Error(), "socket unit") ||
		log.count("the socket was removed") != 1 {
		t.Errorf("an inherited socket without a file: %v", err)
	}
	if _, err := Listen(Config{Path: path, Inherited: duplicate(t, kept)}); err == nil {
		t.Error("an inherited socket without a file is accepted")
	}
}
