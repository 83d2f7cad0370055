package program

import (
	"net"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"
)

// TestServiceManager runs the daemon under a fake service manager. The manager must be notified of
// readiness once the socket exists, of liveness, and of the shutdown.
func TestServiceManager(t *testing.T) {
	dir := sockets(t)
	manager, err := net.ListenUnixgram("unixgram",
		&net.UnixAddr{Name: filepath.Join(dir, "n"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	if err := manager.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("NOTIFY_SOCKET", filepath.Join(dir, "n"))
	t.Setenv("WATCHDOG_USEC", "100000")
	agent := startAgent(t, "unix", filepath.Join(dir, "agent"))
	daemon := daemonProcess(t, agent.URL(), filepath.Join(dir, "s"))
	expect := func(pattern string) {
		t.Helper()
		buffer := make([]byte, 1000)
		n, err := manager.Read(buffer)
		if err != nil || !regexp.MustCompile(pattern).Match(buffer[:n]) {
			t.Fatalf("the service manager was notified with %q, %v; want %s", buffer[:n], err, pattern)
		}
	}
	expect(`^STATUS=starting$`)
	expect(`^READY=1$`)
	expect(`^WATCHDOG=1\nSTATUS=0 spans received, 0 dropped; 0 flushed, 0 unsent, 0 pending$`)
	expect(`^WATCHDOG=1\n`)
	if err := daemon.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	// Read before the daemon has ended, because the queue of messages is short.
	for buffer := make([]byte, 1000); ; {
		n, err := manager.Read(buffer)
		if err != nil {
			t.Fatal(err)
		}
		if regexp.MustCompile(`^STOPPING=1\n(?s).*EXTEND_TIMEOUT_USEC=6000000$`).Match(buffer[:n]) {
			break
		}
	}
	daemon.exit()
}
