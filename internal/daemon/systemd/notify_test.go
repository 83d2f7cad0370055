package systemd

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// setEnvironment sets pairs of environment variables, and unsets the other variables of the protocol.
func setEnvironment(t *testing.T, pairs ...string) {
	t.Helper()
	for _, name := range []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"} {
		t.Setenv(name, "")
	}
	for i := 0; i < len(pairs); i += 2 {
		t.Setenv(pairs[i], pairs[i+1])
	}
}

// TestNotify_RealSockets sends to a socket in the file system and to one with an abstract name.
func TestNotify_RealSockets(t *testing.T) {
	dir, err := os.MkdirTemp("", "sn")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for _, address := range []string{
		filepath.Join(dir, "n"),
		fmt.Sprintf("@spanstatsd-test-%d", os.Getpid()),
	} {
		t.Run(address[:1], func(t *testing.T) {
			manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: address, Net: "unixgram"})
			if err != nil {
				t.Fatal(err)
			}
			defer manager.Close()
			setEnvironment(t, "NOTIFY_SOCKET", address)
			s, err := Open(slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			s.Ready(func() (string, error) { return "", nil })
			s.Stopping(time.Second)
			s.Close()
			for _, want := range []string{"STATUS=starting", "READY=1", "STOPPING=1\nSTATUS="} {
				buffer := make([]byte, 1000)
				n, err := manager.Read(buffer)
				if err != nil || !strings.HasPrefix(string(buffer[:n]), want) {
					t.Errorf("got %q, %v; want %q", buffer[:n], err, want)
				}
			}
		})
	}
}

func TestNotify_WithoutServiceManager(t *testing.T) {
	setEnvironment(t, "WATCHDOG_USEC", "1000000")
	s, err := Open(slog.New(slog.DiscardHandler))
	if s != nil || err != nil {
		t.Fatalf("got %v, %v", s, err)
	}
	s.Ready(nil)
	s.Stopping(time.Second)
	s.Close()
}

func TestWatchdogInterval(t *testing.T) {
	address := fmt.Sprintf("@spanstatsd-test-%d", os.Getpid())
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: address, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	ours, other := fmt.Sprint(os.Getpid()), fmt.Sprint(os.Getpid()+1)
	for _, c := range []struct {
		name, microseconds, pid string
		want                    time.Duration
		fails                   bool
	}{
		{name: "none"},
		{name: "for whoever asks", microseconds: "30000000", want: 30 * time.Second},
		{name: "for us", microseconds: "1500", pid: ours, want: 1500 * time.Microsecond},
		{name: "for another process", microseconds: "1500", pid: other},
		{name: "no number", microseconds: "soon", fails: true},
		{name: "zero", microseconds: "0", fails: true},
		{name: "longer than a duration", microseconds: "9223372036854775807", fails: true},
	} {
		setEnvironment(t, "NOTIFY_SOCKET", address, "WATCHDOG_USEC", c.microseconds, "WATCHDOG_PID", c.pid)
		s, err := Open(slog.New(slog.DiscardHandler))
		if (err != nil) != c.fails || s != nil && s.watchdog != c.want {
			t.Errorf("%s: %+v, %v", c.name, s, err)
		}
	}
}

// TestOpen_ErrorsHaveAdvice checks that the errors of Open contain advice for the operator.
func TestOpen_ErrorsHaveAdvice(t *testing.T) {
	for _, pairs := range [][]string{
		{"NOTIFY_SOCKET", "vsock:2:1234"},
		{"NOTIFY_SOCKET", "/nowhere/at/all"},
		{"NOTIFY_SOCKET", "@absent", "WATCHDOG_USEC", "x"},
	} {
		setEnvironment(t, pairs...)
		s, err := Open(slog.New(slog.DiscardHandler))
		if s != nil || err == nil || !strings.Contains(err.Error(), "unset it") {
			t.Errorf("%v gave %v", pairs, err)
		}
	}
}

// TestNotify_UnreadMessagesDoNotBlock sends to a service manager with a full queue.
func TestNotify_UnreadMessagesDoNotBlock(t *testing.T) {
	address := fmt.Sprintf("@spanstatsd-test-%d", os.Getpid())
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: address, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	setEnvironment(t, "NOTIFY_SOCKET", address)
	var refused error
	for i := 0; i < 10_000 && refused == nil; i++ {
		refused = send("WATCHDOG=1")
	}
	if !errors.Is(refused, os.ErrDeadlineExceeded) {
		t.Fatalf("a full queue gave %v", refused)
	}
	if err := send("WATCHDOG=1"); err == nil {
		t.Error("a second message is queued after the first")
	}
	go func() {
		for buffer := make([]byte, 100); ; {
			if _, err := manager.Read(buffer); err != nil {
				return // the socket was closed
			}
		}
	}()
	for deadline := time.Now().Add(30 * time.Second); send("WATCHDOG=1") != nil; {
		if time.Now().After(deadline) {
			t.Fatal("nothing is sent although the queue is read")
		}
	}
}

// TestNotify_ConcurrentMessages sends reports and the messages of a shutdown at the same time.
func TestNotify_ConcurrentMessages(t *testing.T) {
	address := fmt.Sprintf("@spanstatsd-test-%d", os.Getpid())
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: address, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	setEnvironment(t, "NOTIFY_SOCKET", address)
	const senders, messages = 4, 50
	failed := make(chan error, senders)
	for range senders {
		go func() {
			var err error
			for range messages {
				err = errors.Join(err, send("STATUS=x"))
			}
			failed <- err
		}()
	}
	_ = manager.SetReadDeadline(time.Now().Add(time.Minute))
	for range senders * messages {
		if _, err := manager.Read(make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
	}
	for range senders {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
}
