package daemon_test

import (
	"os"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/daemon"
)

// TestCrash_ReportedAfterFailedStart checks that a crash is reported by the next daemon that
// runs, not only by one that exits because its HTTP address is in use.
func TestCrash_ReportedAfterFailedStart(t *testing.T) {
	other := startPair(t, nil)
	p := startPair(t, func(c *daemon.Config) {
		if err := os.WriteFile(c.Ingest.Socket.Path+".running-1", nil, 0o600); err != nil {
			t.Fatal(err)
		}
		inUse := *c
		inUse.HTTPAddr = other.HTTPAddr()
		if _, err := daemon.New(inUse); err == nil {
			t.Fatal("two daemons listen at one address")
		}
	})
	if died := p.Status().Crashed; died != 1 {
		t.Errorf("%d daemons died", died)
	}
	p.stop()
	other.stop()
}
