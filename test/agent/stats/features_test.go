package stats

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/DataDog/datadog-agent/pkg/trace/config"
	"github.com/spanstatsd/spanstatsd/client"
)

// TestTracersHearWhatTheAgentWants: tracers are told what the real agent says of itself, and again
// when another configuration takes its place, which the state on its answers gives away.
func TestTracersHearWhatTheAgentWants(t *testing.T) {
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

// An agent without the endpoint is a downgrade: tracers are told to stop, spans that still come
// are counted, and an upgrade is found out without a restart.
func TestDowngradeAndRecovery(t *testing.T) {
	for name, kind := range map[string]trouble{
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
			// it has asked, and been told all is well
			for d.metric(`spanstatsd_destination_reachable{destination="agent"}`) != "1" {
				time.Sleep(time.Millisecond)
			}
			f.befall(kind)
			publish(t, c, shopSpans(100, "unwanted"))
			if err := c.Flush(t.Context()); err == nil {
				t.Error("the tracer was told that an agent without statistics took them")
			}
			awaitFeatures(c, func(f client.Features) bool { return !f.Stats })
			if got := d.unsent("not_wanted"); got != "100" {
				t.Errorf("%s spans are not_wanted", got)
			}
			f.befall(none)
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
