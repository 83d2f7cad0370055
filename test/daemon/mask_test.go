package daemon_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/client"
	"github.com/spanstatsd/spanstatsd/internal/daemon"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// TestMask_FloodOfIdentifiers has several tracers of one service send resources with
// identifiers in addition to normal routes. The agent must get every hit, error and nanosecond, the
// routes under their names, and most of the resources with identifiers under their mask.
func TestMask_FloodOfIdentifiers(t *testing.T) {
	p := startPair(t, func(c *daemon.Config) { c.Aggregate.Budgets[span.LabelResource] = 64 })
	const tracers, batches, regular = 4, 60, 20
	const mask = "GET /users/{id}/orders/{uuid}"
	var all sync.WaitGroup
	for tracer := range uint64(tracers) {
		all.Go(func() {
			c, err := client.Open(client.Config{Socket: p.socket, Origin: client.Origin{Service: "shop"}})
			if err != nil {
				t.Error(err)
				return
			}
			rnd := rand.New(rand.NewPCG(tracer, 20))
			for range batches {
				spans := batch(2*regular, "")
				for i := range spans {
					spans[i].Key.Resource = fmt.Sprintf("GET /regular/route-%c", 'a'+i/2)
					if i%2 == 1 {
						spans[i].Key.Resource = fmt.Sprintf("GET /users/%d/orders/%08x-0000-4000-8000-%012x",
							100_000+rnd.IntN(1<<30), rnd.Uint32(), rnd.Uint64()>>16)
					}
				}
				spans[1].Error = true
				if !c.Publish(spans) {
					t.Error("not published")
				}
			}
			if err := c.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	masked := p.metric(`spanstatsd_keys_masked_total{field="resource"}`)
	p.stop()

	const sent = tracers * batches * 2 * regular
	totals := p.agent.Totals()
	if totals.Hits != sent || totals.Errors != tracers*batches ||
		totals.Duration != sent*uint64(time.Millisecond) {
		t.Errorf("the agent has %+v of %d spans", totals.Counts, sent)
	}
	hits := map[string]uint64{}
	for i := range totals.Rows {
		hits[totals.Rows[i].Resource] += totals.Rows[i].Hits
	}
	for i := range regular {
		// A route that first occurs after the burst is counted under its name from the second
		// occurrence on.
		if route := fmt.Sprintf("GET /regular/route-%c", 'a'+i); hits[route] < tracers*(batches-1) ||
			hits[route] > tracers*batches {
			t.Errorf("%s has %d hits", route, hits[route])
		}
	}
	if flood := uint64(sent / 2); hits[mask] < flood*9/10 || hits[mask] > flood {
		t.Errorf("%d of %d spans are under %s, and %d under %s", hits[mask], flood, mask, hits[span.Blocked],
			span.Blocked)
	}
	if masked < sent/3 {
		t.Errorf("the metric reports %g masked keys", masked)
	}
}
