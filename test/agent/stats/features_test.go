package stats

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/DataDog/datadog-agent/pkg/trace/config"
	"github.com/spanstatsd/spanstatsd/client"
)

// TestFeatures_ReachClients checks that tracers receive the features of the real agent, and
// receive them again after a configuration change, which the daemon notices by the state in the agent's
// responses.
func TestFeatures_ReachClients(t *testing.T) {
	t.Parallel()
	at := here(t)
	socket := at.path("agent")
	plain := startOracle(t, socket, nil)
	d := startDaemon(t, at.path("spans"), "unix://"+socket)
	c := d.tracer(origin)
	awaitFeatures(c, func(f client.Features) bool { return len(f.PeerTags) > 0 })
	if got, want := c.Features().PeerTags, config.New().ConfiguredPeerTags(); !slices.Equal(got, want) {
		t.Errorf("peer tags %v, want %v", got, want)
	}
	plain.Stop()
	startOracle(t, socket, func(conf *config.AgentConfig) {
		conf.PeerTags = []string{"my.peer"}
		conf.Ignore = map[string][]string{"resource": {"^GET /health$"}}
	})
	publish(t, c, shopSpans(1, "r"))
	if err := c.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	awaitFeatures(c, func(f client.Features) bool { return slices.Contains(f.PeerTags, "my.peer") })
	if f := c.Features(); !slices.Equal(f.IgnoreResources, []string{"^GET /health$"}) || !f.Stats {
		t.Errorf("features %+v", f)
	}
}

func awaitFeatures(c *client.Client, are func(client.Features) bool) {
	for !are(c.Features()) {
		<-c.FeatureChanges()
	}
}

// TestAgent_DowngradeAndUpgrade uses an agent without the endpoint, as after a downgrade. Tracers are
// notified to stop, spans that still arrive are counted, and an upgrade is noticed without a restart.
func TestAgent_DowngradeAndUpgrade(t *testing.T) {
	for name, kind := range map[string]disruption{
		"neither endpoint nor info":    absent,
		"an info without the endpoint": unlisted,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := here(t)
			o := startOracle(t, at.path("agent"), nil)
			f := startFront(t, at.path("front"), o.Socket)
			d := startDaemon(t, at.path("spans"), f.url())
			c := d.tracer(origin)
			// the daemon has queried the agent successfully
			for d.metric(`spanstatsd_destination_reachable{destination="agent"}`) != "1" {
				time.Sleep(time.Millisecond)
			}
			f.disrupt(kind)
			publish(t, c, shopSpans(100, "unwanted"))
			if err := c.Flush(t.Context()); err == nil {
				t.Error("the tracer was notified that an agent without statistics accepted them")
			}
			awaitFeatures(c, func(f client.Features) bool { return !f.Stats })
			if got := d.unsent("not_wanted"); got != "100" {
				t.Errorf("%s spans are not_wanted", got)
			}
			f.disrupt(none)
			awaitFeatures(c, func(f client.Features) bool { return f.Stats })
			publish(t, c, shopSpans(100, "wanted"))
			if err := c.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			d.stop()
			o.Stop()
			if got := o.hits(); !maps.Equal(got, map[string]uint64{"wanted": 100}) {
				t.Errorf("the agent counted %v", got)
			}
		})
	}
}
