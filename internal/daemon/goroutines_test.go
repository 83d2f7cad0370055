package daemon

import (
	"maps"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/client"
	"github.com/spanstatsd/spanstatsd/internal/eventually"
)

var (
	room = regexp.MustCompile(`spanstatsd/internal/(aggregate|routing|ingest|flush|health|daemon)\.`)
	// Those of the test, of a tracer and an agent in the same process, and of an HTTP
	// request while it lasts.
	others = regexp.MustCompile(`created by net/http|testing\.tRunner|daemon\.Test|spanstatsd/client\.|internal/standin\.`)
)

// goroutines counts the daemon's own that run, by room.
func goroutines() map[string]int {
	stacks := make([]byte, 4<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	rooms := map[string]int{}
	for stack := range strings.SplitSeq(string(stacks), "\n\n") {
		if of := room.FindAllStringSubmatch(stack, -1); of != nil && !others.MatchString(stack) {
			rooms[of[len(of)-1][1]]++ // the last is where it began
		}
	}
	return rooms
}

// TestGoroutinesAreConstant: the daemon has as many goroutines as docs/architecture.md
// says, one for each connection beside them, and not one more under load, while
// partitions grow and cycles are sealed and sent.
func TestGoroutinesAreConstant(t *testing.T) {
	const drainers, connections = 3, 4
	p := startPair(t, func(c *Config) {
		c.Aggregate.Drainers, c.Aggregate.RebalanceInterval = drainers, 100*time.Millisecond
	})
	want := map[string]int{"aggregate": drainers + 1, "routing": 1, "ingest": 2 + connections, "flush": 2, "health": 1, "daemon": 3}
	var clients []*client.Client
	for range connections {
		clients = append(clients, p.client("shop"))
	}
	eventually.True(t, "all tracers are connected", func() bool { return p.daemonConnections() == connections })
	check := func(when string) {
		t.Helper()
		if got := goroutines(); !maps.Equal(got, want) {
			t.Errorf("%s: goroutines %v, want %v", when, got, want)
		}
	}
	// Tracers are told of the agent's first answer side by side.
	eventually.True(t, "the goroutines are as many as documented", func() bool { return maps.Equal(goroutines(), want) })
	var sending sync.WaitGroup
	for i, c := range clients {
		sending.Go(func() {
			for n := range 500 {
				c.Publish(batch(64, string(rune('a'+(n*7+i)%200))))
			}
		})
	}
	for range 20 {
		time.Sleep(5 * time.Millisecond)
		check("under load")
	}
	sending.Wait()
	check("after it")
	p.stop()
}

func (p *pair) daemonConnections() int { return p.Daemon.ingest.Stats().Connections }
