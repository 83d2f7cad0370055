package systemd

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func listenOn(t *testing.T, network, address string) net.Listener {
	t.Helper()
	listener, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener
}

// TestSockets_FoundByAddress checks that each inherited socket is returned once, also for a path through a
// symbolic link, and that the error of CheckTaken names the unused ones.
func TestSockets_FoundByAddress(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "l")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	one, other := listenOn(t, "unix", filepath.Join(dir, "s")), listenOn(t, "unix", filepath.Join(dir, "a"))
	tcp := listenOn(t, "tcp", "127.0.0.1:0")
	s := Sockets{inherited: []net.Listener{tcp, one, other}}
	if got := s.Unix(""); got != nil {
		t.Errorf("no path finds %s", got.Addr())
	}
	if got := s.TCP(""); got != nil {
		t.Errorf("no address finds %s", got.Addr())
	}
	if got := s.Unix(filepath.Join(dir, "x")); got != nil {
		t.Errorf("another path finds %s", got.Addr())
	}
	if got := s.Unix(filepath.Join(link, "s")); got != one {
		t.Errorf("through a link %v is found", got)
	}
	if got := s.Unix(filepath.Join(dir, "s")); got != nil {
		t.Errorf("%s is passed twice", got.Addr())
	}
	if err := s.CheckTaken(); err == nil || strings.Count(err.Error(), "no flag has the address") != 2 {
		t.Errorf("two are left: %v", err)
	}
	_, port, _ := net.SplitHostPort(tcp.Addr().String())
	if got := s.TCP("127.0.0.2:" + port); got != nil {
		t.Errorf("another host finds %s", got.Addr())
	}
	if got := s.TCP("localhost:" + port); got != tcp {
		t.Errorf("localhost finds %v", got)
	}
	if s.Unix(filepath.Join(dir, "a")) != other || s.CheckTaken() != nil {
		t.Errorf("the last is not found, or something is left: %v", s.CheckTaken())
	}
}

// TestSockets_IgnoresOtherProcess covers a LISTEN_PID of another process, and missing variables.
func TestSockets_IgnoresOtherProcess(t *testing.T) {
	t.Setenv("LISTEN_PID", "1")
	t.Setenv("LISTEN_FDS", "3")
	if s, err := TakeSockets(); len(s.inherited) != 0 || err != nil {
		t.Errorf("%v, %v", s, err)
	}
}
