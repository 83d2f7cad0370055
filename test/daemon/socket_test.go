package daemon_test

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/daemon"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
)

// TestReady_NotWithoutSocketFile removes each of the daemon's sockets in turn. The daemon must
// become ready again once tracers can find the socket.
func TestReady_NotWithoutSocketFile(t *testing.T) {
	t.Parallel()
	var sockets []string
	p := startPair(t, func(c *daemon.Config) {
		for _, path := range []*string{&c.Ingest.Socket.Path, &c.APM.Socket.Path} {
			dir, err := os.MkdirTemp("", "dp")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
			*path = filepath.Join(dir, "s")
			sockets = append(sockets, *path)
		}
	})
	t.Cleanup(func() { p.Stop() })
	isReady := func() bool {
		resp, err := http.Get("http://" + p.HTTPAddr() + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}
	for _, socket := range sockets {
		if !isReady() {
			t.Error("it is not ready from the start")
		}
		if err := os.RemoveAll(filepath.Dir(socket)); err != nil {
			t.Fatal(err)
		}
		eventually.True(t, "it is not ready", func() bool { return !isReady() })
		if err := os.Mkdir(filepath.Dir(socket), 0o700); err != nil {
			t.Fatal(err)
		}
		eventually.True(t, "it is ready again", isReady)
	}
	p.mustServe()
}
