package client

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Without a configured socket, a client finds a daemon that the same user starts, even later. With one, it
// does not.
func TestSocketPath_DiscoversDaemonOfUser(t *testing.T) {
	// A daemon that is installed on this machine must not receive spans of a test.
	if _, err := os.Stat("/var/run/spanstatsd/spans.sock"); err == nil {
		t.Skip("a daemon of this machine would be found first")
	}
	runtime := t.TempDir()
	t.Setenv(SocketEnv, "")
	t.Setenv("XDG_RUNTIME_DIR", runtime)
	if err := os.Mkdir(filepath.Join(runtime, "spanstatsd"), 0o700); err != nil {
		t.Fatal(err)
	}
	d := newFakeDaemon(t)
	d.socket = filepath.Join(runtime, "spanstatsd", "spans.sock")
	c := open(t, Config{MaxBackoff: time.Millisecond})
	elsewhere := open(t, Config{Socket: filepath.Join(t.TempDir(), "absent"), MaxBackoff: time.Millisecond})
	d.start()
	c.Publish([]Snapshot{{Key: Key{Service: "shop", Operation: "op"}, End: time.Now()}})
	if err := c.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if elsewhere.Stats().Connects != 0 {
		t.Error("a client with a configured socket connected to another one")
	}
}
