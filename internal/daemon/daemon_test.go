package daemon_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/daemon"
	exporter "github.com/spanstatsd/spanstatsd/internal/export/agent"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
)

func testConfig(t *testing.T, dir, agent string) daemon.Config {
	t.Helper()
	config := daemon.DefaultConfig()
	config.HTTPAddr, config.Version = "127.0.0.1:0", "test"
	config.Log = slog.New(slog.DiscardHandler)
	config.Ingest.Socket.Path = filepath.Join(dir, "s")
	config.ShutdownGrace = 20 * time.Second
	config.Aggregate.FlushInterval = time.Second
	var err error
	if config.Agent.URL, err = exporter.ParseURL(agent); err != nil {
		t.Fatal(err)
	}
	return config
}

// TestStop_LeavesNothing: neither a failed start nor a shutdown leaves a socket or a goroutine.
func TestStop_LeavesNothing(t *testing.T) {
	before := runtime.NumGoroutine()
	dir := t.TempDir()
	config := testConfig(t, dir, "unix://"+filepath.Join(dir, "absent"))
	for _, broken := range []struct {
		change  func(*daemon.Config)
		wantErr string
	}{
		{func(c *daemon.Config) { c.HTTPAddr = "256.0.0.1:1" }, "--http-addr"},
		{func(c *daemon.Config) { c.Aggregate.RingSlots = 3000 }, "power of two"},
		{func(c *daemon.Config) {
			c.Ingest.Socket.Path = filepath.Join(dir, "no", "s")
		}, "create the directory"},
		{func(c *daemon.Config) { c.ShutdownGrace = 0 }, "shutdown-grace"},
	} {
		c := config
		broken.change(&c)
		if d, err := daemon.New(c); err == nil || !strings.Contains(err.Error(), broken.wantErr) {
			t.Errorf("got %v, %v; want an error with %q", d, err, broken.wantErr)
		}
	}
	d, err := daemon.New(config)
	if err != nil {
		t.Fatal(err)
	}
	d.Start()
	d.Stop()
	eventually.True(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before })
	if _, err := os.Lstat(config.Ingest.Socket.Path); err == nil {
		t.Error("the socket is left")
	}
}
