package daemon_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/client"
	"github.com/spanstatsd/spanstatsd/internal/daemon"
)

// TestOrigins_FloodLosesNoSpan creates containers faster than --max-origins allows. The agent must
// get every hit, error and nanosecond.
func TestOrigins_FloodLosesNoSpan(t *testing.T) {
	p := startPair(t, func(c *daemon.Config) { c.Aggregate.MaxOrigins = 4 })
	const containers, each = 40, 100
	for i := range containers {
		c, err := client.Open(client.Config{
			Socket: p.socket, Origin: client.Origin{Service: "shop", ContainerID: fmt.Sprintf("%064d", i)},
			MaxKept: client.KeepNothing, // so that Close waits for no acknowledgement
		})
		if err != nil {
			t.Fatal(err)
		}
		spans := batch(each, "r")
		spans[0].Error = true
		if !c.Publish(spans) {
			t.Fatal("not published")
		}
		if err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	p.stop()
	totals := p.agent.Totals()
	want := uint64(containers * each)
	if totals.Hits != want || totals.Errors != containers ||
		totals.Duration != want*uint64(time.Millisecond) {
		t.Errorf("the agent has %+v of %d spans", totals.Counts, want)
	}
	if accounting := p.Accounting(); accounting.DroppedTotal() != 0 {
		t.Errorf("dropped %v", accounting.Dropped)
	}
}
