package daemon_test

import (
	"maps"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/client"
	"github.com/spanstatsd/spanstatsd/internal/daemon"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
)

var (
	internalPackage = regexp.MustCompile(`spanstatsd/internal/(aggregate|routing|ingest|export|status|daemon)\.`)
	// Goroutines of the test, of a tracer and an agent in the same process, and of HTTP requests in
	// flight.
	others = regexp.MustCompile(`created by net/http|testing\.tRunner|daemon_test\.|` +
		`spanstatsd/client\.|lab/standin\.`)
	// Goroutines that deliver a payload to the agent, for the time of the request.
	delivering = regexp.MustCompile(`export\.\(\*pushDestination\)\.(deliver|begin\.func1)`)
)

// mostDeliveries is the limit of concurrent deliveries according to docs/architecture.md.
const mostDeliveries = 28

// goroutines counts the daemon's permanent goroutines by package, and its deliveries.
func goroutines() (packages map[string]int, deliveries int) {
	stacks := make([]byte, 4<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	packages = map[string]int{}
	for stack := range strings.SplitSeq(string(stacks), "\n\n") {
		of := internalPackage.FindAllStringSubmatch(stack, -1)
		switch {
		case of == nil || others.MatchString(stack):
		case delivering.MatchString(stack):
			deliveries++
		default:
			packages[of[len(of)-1][1]]++ // the last one is where it was created
		}
	}
	return packages, deliveries
}

// TestGoroutines_AreConstant checks that the daemon has the goroutines listed in docs/architecture.md
// and one per connection. Under load, with growing partitions and ending cycles, there is only one more
// per payload in flight.
func TestGoroutines_AreConstant(t *testing.T) {
	const drainers, connections = 3, 4
	p := startPair(t, func(c *daemon.Config) {
		c.Aggregate.Drainers, c.Aggregate.RebalanceInterval = drainers, 100*time.Millisecond
	})
	want := map[string]int{
		"aggregate": drainers + 1, "routing": 1, "ingest": 3 + connections, "export": 2,
		"status": 1, "daemon": 3,
	}
	var clients []*client.Client
	for range connections {
		clients = append(clients, p.client("shop"))
	}
	eventually.True(t, "all tracers are connected",
		func() bool { return p.daemonConnections() == connections })
	check := func(when string) {
		t.Helper()
		if got, deliveries := goroutines(); !maps.Equal(got, want) || deliveries > mostDeliveries {
			t.Errorf("%s: goroutines %v, want %v, and %d deliveries", when, got, want, deliveries)
		}
	}
	// Tracers are notified of the agent's first response concurrently.
	eventually.True(t, "the goroutines are as many as documented", func() bool {
		got, _ := goroutines()
		return maps.Equal(got, want)
	})
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

func (p *pair) daemonConnections() int { return p.Status().Connections.Live }
