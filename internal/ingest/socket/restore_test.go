package socket

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// lines is a log that is kept in memory.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

// served returns a listener that accepts all connections. look checks its file once, as Watch does every second, and
// logs to memory.
func served(t *testing.T, path string) (l *Listener, look func(), log *lines) {
	t.Helper()
	l, err := Listen(Config{Path: path, Mode: 0o600})
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "here")
			conn.Close()
		}
	})
	t.Cleanup(func() {
		l.Close()
		running.Wait()
	})
	log = &lines{}
	logger := slog.New(slog.NewTextHandler(log, nil))
	return l, func() { l.checkFile(logger) }, log
}

// answers reports whether a process accepts connections at the path.
func answers(path string) bool {
	conn, err := net.Dial("unix", path)
	if err != nil {
		return false
	}
	defer conn.Close()
	answer, err := io.ReadAll(conn)
	return err == nil && string(answer) == "here"
}

// If the socket's file is removed, or its directory including the lock, clients can connect again, and a
// log line reports it.
func TestRemovedSocket_IsRecreated(t *testing.T) {
	dir := filepath.Join(shortDir(t), "d")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "s")
	l, look, log := served(t, path)
	for times := 1; times <= 3; times++ {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if look(); !answers(path) || log.count("has been created again") != times {
			t.Fatalf("the socket is not there again, or nothing says so:\n%s", log.text.String())
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("it has %v, %v", info, err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	look()
	if look(); l.Unreachable() == nil {
		t.Error("the missing socket is not reported")
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if look(); !answers(path) || l.Unreachable() != nil {
		t.Errorf("the socket is not there again: %v", l.Unreachable())
	}
	if n := log.count("can't be created again"); n != 1 {
		t.Errorf("%d lines report that it is missing:\n%s", n, log.text.String())
	}
	if _, err := Listen(Config{Path: path, Mode: 0o600}); err == nil ||
		!strings.Contains(err.Error(), "holds its lock") {
		t.Errorf("the lock was not acquired again: a second daemon got %v", err)
	}
}

// Connections to the previous socket are not lost when a new socket replaces it.
func TestRemovedSocket_EarlierClientsAreAccepted(t *testing.T) {
	path := filepath.Join(shortDir(t), "s")
	l, err := Listen(Config{Path: path, Mode: 0o600})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	write := func(text string) {
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, text)
		conn.Close()
	}
	write("first")
	write("second")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if restored, err := l.restore(); !restored || err != nil {
		t.Fatal(restored, err)
	}
	write("third")
	l.RejectNew()
	if conn, err := net.Dial("unix", path); err == nil {
		conn.Close()
		t.Error("a socket that was shut can be connected to")
	}
	for _, want := range []string{"first", "second", "third"} {
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(conn); err != nil || string(got) != want {
			t.Errorf("accepted %q, %v; want %q", got, err, want)
		}
		conn.Close()
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after the last connection: %v", err)
	}
}

// Close does not remove the socket of another daemon, nor create one in its place.
func TestClose_RemovesOnlyOwnSocket(t *testing.T) {
	path := filepath.Join(shortDir(t), "s")
	first, err := Listen(Config{Path: path, Mode: 0o600})
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{path, path + ".lock"} {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	served(t, path)
	if restored, err := first.restore(); restored || err == nil {
		t.Errorf("the successor's socket was replaced: %v, %v", restored, err)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	if !answers(path) {
		t.Error("the successor's socket was removed")
	}
}
