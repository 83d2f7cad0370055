//go:build languages

package java

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestApplication_NeverWaits suspends the daemon with a signal. The application creates more spans
// than its buffers can hold, and must respond to all requests before the daemon resumes. Response times
// are reported, together with those of an uninstrumented application that gets requests in turns.
func TestApplication_NeverWaits(t *testing.T) {
	eachJava(t, func(t *testing.T, java string) {
		behind, ours := newReceiver(t), newLedger(t)
		socket := filepath.Join(t.TempDir(), "s")
		d := start(t, ours, socket)
		with := startShop(t, java, behind, []string{extensions(false)}, "SPANSTATSD_SOCKET="+socket)
		without := startShop(t, java, behind, nil)
		turns(t, with, without) // warm-up
		rows := []string{""}
		report := func(daemon string) {
			mine, theirs := turns(t, with, without)
			rows = append(rows, fmt.Sprintf("%-6s with us %s, without %s", daemon, mine, theirs))
		}
		report("there")

		d.signal(t, syscall.SIGSTOP)
		const spun = 400_000
		with.get(t, fmt.Sprint("/spin/", spun))
		report("hangs")
		d.signal(t, syscall.SIGCONT)

		d.kill(t)
		report("away")
		d = start(t, ours, socket)
		with.get(t, "/orders/0")
		with.end(t)
		without.end(t)
		lost := d.status(t).ClientLost
		d.stop(t)
		if lost["buffer_full"] == 0 || lost["buffer_full"] > spun {
			t.Errorf("the buffers were to be full while the daemon hung; lost is %v", lost)
		}
		t.Log(strings.Join(rows, "\n"))
		t.Logf("lost %v", lost)
	})
}

// quantiles are latency quantiles.
type quantiles struct{ median, p99, longest time.Duration }

func (q quantiles) String() string {
	return fmt.Sprintf("p50 %6v p99 %6v max %6v", q.median.Round(10*time.Microsecond),
		q.p99.Round(10*time.Microsecond), q.longest.Round(10*time.Microsecond))
}

func quantilesOf(took []time.Duration) quantiles {
	slices.Sort(took)
	return quantiles{took[len(took)/2], took[len(took)*99/100], took[len(took)-1]}
}

// turns sends requests to two applications in alternating order, so that other load on the machine
// affects both equally.
func turns(t *testing.T, one, other *shop) (ofOne, ofOther quantiles) {
	t.Helper()
	shops, took := [...]*shop{one, other}, [2][]time.Duration{}
	for turn := range 20 {
		at := (turn/2 + turn) % 2
		took[at] = append(took[at], shops[at].order(t, 100)...)
	}
	return quantilesOf(took[0]), quantilesOf(took[1])
}
