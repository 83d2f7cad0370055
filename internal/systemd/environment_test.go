package systemd

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// environment answers like os.Getenv.
func environment(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

// TestRealSockets sends to a socket in the file system and to one with an
// abstract name.
func TestRealSockets(t *testing.T) {
	dir, err := os.MkdirTemp("", "sn")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for _, address := range []string{filepath.Join(dir, "n"), fmt.Sprintf("@spanstatsd-test-%d", os.Getpid())} {
		t.Run(address[:1], func(t *testing.T) {
			manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: address, Net: "unixgram"})
			if err != nil {
				t.Fatal(err)
			}
			defer manager.Close()
			s, err := Open(environment("NOTIFY_SOCKET", address), slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			s.Ready(func() (string, error) { return "", nil })
			s.Stopping(time.Second)
			s.Close()
			for _, want := range []string{"READY=1", "STOPPING=1\nSTATUS="} {
				buffer := make([]byte, 1000)
				n, err := manager.Read(buffer)
				if err != nil || !strings.HasPrefix(string(buffer[:n]), want) {
					t.Errorf("got %q, %v; want %q", buffer[:n], err, want)
				}
			}
		})
	}
}

func TestNoServiceManager(t *testing.T) {
	s, err := Open(environment("WATCHDOG_USEC", "1000000"), slog.New(slog.DiscardHandler))
	if s != nil || err != nil {
		t.Fatalf("got %v, %v", s, err)
	}
	s.Ready(nil)
	s.Stopping(time.Second)
	s.Close()
}

func TestWatchdogInterval(t *testing.T) {
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
		got, err := watchdogInterval(environment("WATCHDOG_USEC", c.microseconds, "WATCHDOG_PID", c.pid))
		if got != c.want || (err != nil) != c.fails {
			t.Errorf("%s: %s, %v", c.name, got, err)
		}
	}
}

// TestOpenSaysWhatToDo: its error is for an operator.
func TestOpenSaysWhatToDo(t *testing.T) {
	for _, pairs := range [][]string{
		{"NOTIFY_SOCKET", "vsock:2:1234"},
		{"NOTIFY_SOCKET", "/nowhere/at/all"},
		{"NOTIFY_SOCKET", "@nobody", "WATCHDOG_USEC", "x"},
	} {
		s, err := Open(environment(pairs...), slog.New(slog.DiscardHandler))
		if s != nil || err == nil || !strings.Contains(err.Error(), "unset it") {
			t.Errorf("%v gave %v", pairs, err)
		}
	}
}
