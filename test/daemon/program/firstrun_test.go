package program

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spanstatsd/spanstatsd/client"
)

// unprivilegedUser is the ID of an unprivileged user.
const unprivilegedUser = 65534

// TestFirstRun_NeedsNoFlag runs the daemon as a user without write permission in /var/run. The socket
// must be in a directory of that user, the status page must respond, the log must explain the first
// steps, and a span must be counted.
func TestFirstRun_NeedsNoFlag(t *testing.T) {
	// Without flags, the daemon uses the default port and the default socket, if installed. A test must
	// not take them from another daemon.
	free, err := net.Listen("tcp", ":9126")
	if err != nil {
		t.Skip("the default port is in use on this machine")
	}
	free.Close()
	if _, err := os.Stat("/var/run/spanstatsd"); err == nil {
		t.Skip("the default directory exists on this machine")
	}
	dir := sockets(t)
	cmd := program(t, "run")
	cmd.Env = []string{"XDG_RUNTIME_DIR=" + dir, "GORACE=atexit_sleep_ms=0"}
	if os.Getuid() == 0 {
		for _, of := range []string{dir, filepath.Dir(daemonProgram)} {
			if err := os.Chmod(of, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chown(dir, unprivilegedUser, unprivilegedUser); err != nil {
			t.Fatal(err)
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: unprivilegedUser, Gid: unprivilegedUser}}
	}
	daemon, startLine := listening(t, cmd)
	socket := filepath.Join(dir, "spanstatsd", "spans.sock")
	if startLine["socket"] != socket {
		t.Errorf("the daemon listens at %v", startLine)
	}
	goes := <-daemon.lines
	if looked, _ := goes["auto_discovery"].(string); goes["msg"] != "exporting statistics" ||
		looked != "agent at http://127.0.0.1:8126" {
		t.Errorf("the second line is %v", goes)
	}
	daemon.await("using a socket in a directory of this user, because the default directory does not exist or " +
		"is not writable")
	for _, wants := range []string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=", "SPANSTATSD_SOCKET=" + socket,
		"http://127.0.0.1:9126/",
	} {
		line, found := <-daemon.lines, false
		for _, value := range line {
			text, _ := value.(string)
			found = found || strings.HasPrefix(text, wants)
		}
		if !found {
			t.Errorf("%v does not contain %s", line, wants)
		}
	}
	page, err := http.Get("http://127.0.0.1:9126/")
	if err != nil || page.StatusCode != http.StatusOK {
		t.Fatalf("the page: %v, %v", page, err)
	}
	page.Body.Close()
	c, err := client.Open(client.Config{Socket: socket})
	if err != nil {
		t.Fatal(err)
	}
	c.Publish([]client.Snapshot{{Key: client.Key{Service: "shop", Operation: "op"}}})
	if err := c.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	out, err := program(t, "status").CombinedOutput()
	for _, wants := range []string{"Every received span is accounted for", "not discovered yet"} {
		if err != nil || !strings.Contains(string(out), wants) {
			t.Errorf("status does not contain %q: %v, %s", wants, err, out)
		}
	}
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := daemon.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code, log := daemon.exit(); code != 0 {
		t.Errorf("exit code %d: %v", code, log)
	}
}
