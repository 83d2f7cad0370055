package stats

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/client"
)

// TestContainers_StaySeparate has two daemons serve three tracers in different containers that are
// otherwise identical. The agent must see three containers, each with the spans of its tracer.
func TestContainers_StaySeparate(t *testing.T) {
	at := here(t)
	o := startOracle(t, at.path("agent"), nil)
	first := startDaemon(t, at.path("spans-1"), "unix://"+o.Socket)
	second := startDaemon(t, at.path("spans-2"), "unix://"+o.Socket)
	in := func(container, entity string) client.Origin {
		from := origin
		from.ContainerID, from.EntityID = container, entity
		return from
	}
	for i, c := range []*client.Client{
		first.tracer(in("container-1", "")),
		first.tracer(in("container-2", "")),
		second.tracer(in("", "ci-container-3")),
	} {
		publish(t, c, shopSpans(100*(i+1), "GET /cart"))
		if err := c.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	first.stop()
	second.stop()
	o.Stop()
	hits := map[string]uint64{}
	for _, p := range o.Received.Payloads() {
		for _, b := range p.Stats {
			for _, g := range b.Stats {
				hits[p.ContainerID] += g.Hits
			}
		}
	}
	want := map[string]uint64{"container-1": 100, "container-2": 200, "container-3": 300}
	if !maps.Equal(hits, want) {
		t.Errorf("hits by container %v, want %v", hits, want)
	}
}

// shopSpans returns n equal spans.
func shopSpans(n int, resource string) []client.Snapshot {
	spans := make([]client.Snapshot, n)
	for i := range spans {
		spans[i] = client.Snapshot{
			Key: client.Key{
				Service: "shop", Operation: "http.request", Resource: resource,
				Kind: "server",
			},
			Duration: time.Duration(i) * time.Millisecond, End: time.Now(),
		}
	}
	return spans
}

// hits returns the agent's hits by resource.
func (o *oracle) hits() map[string]uint64 {
	all := map[string]uint64{}
	for _, p := range o.Received.Payloads() {
		for _, b := range p.Stats {
			for _, g := range b.Stats {
				all[g.Resource] += g.Hits
			}
		}
	}
	return all
}

func (b accounting) String() string {
	return fmt.Sprintf("received %d, aggregated %d, flushed %d, unsent %d, held %d, balanced %v",
		b.Received, b.Aggregated, b.Flushed, b.Unsent, b.Pending, b.Balanced)
}
