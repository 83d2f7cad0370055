package daemon

import (
	"github.com/spanstatsd/spanstatsd/internal/door"
	"github.com/spanstatsd/spanstatsd/internal/flush/agent"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// wanted is what is wanted of tracers: what the agent wants, and statistics in any case
// where they go elsewhere too. Without an agent, and before one that is looked for is found, it is what
// one wants as it is shipped.
func (d *Daemon) wanted() (agent.Features, <-chan struct{}) {
	if d.agent == nil {
		return agent.DefaultFeatures(), nil
	}
	f, changed := d.agent.WatchFeatures()
	f.Stats = f.Stats || len(d.config.exporters()) > 0
	return f, changed
}

// featuresOf is the same, in the words of a door.
func featuresOf(f agent.Features, changed <-chan struct{}) (door.Features, <-chan struct{}) {
	return door.Features{
		Stats: f.Stats, PeerTags: f.PeerTags, SpanKinds: f.SpanKinds,
		IgnoreResources: f.IgnoreResources, FiltersTags: f.FiltersTags, DropsP0s: f.DropsP0s,
	}, changed
}

// features is what is wanted, in the words that tracers are told.
func (d *Daemon) features() (wire.Features, <-chan struct{}) {
	f, changed := d.wanted()
	return wire.Features{
		Stats: f.Stats, PeerTags: f.PeerTags, SpanKinds: f.SpanKinds,
		IgnoreResources: f.IgnoreResources, ObfuscationVersion: f.ObfuscationVersion,
	}, changed
}

// followWanted has batches admitted only while a destination takes statistics, and
// empties the tables each time that none does any more: their memory is of use to nobody
// until one does again.
func (d *Daemon) followWanted() {
	wanted := true
	for {
		features, changed := d.wanted()
		d.admit.SetWanted(features.Stats)
		if wanted && !features.Stats {
			d.aggregate.Clear()
		}
		wanted = features.Stats
		select {
		case <-changed:
		case <-d.stopping:
			return
		}
	}
}
