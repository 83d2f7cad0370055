package daemon

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/agent"
	"github.com/spanstatsd/spanstatsd/internal/ingest"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver"
	"github.com/spanstatsd/spanstatsd/internal/recovery"
	"github.com/spanstatsd/spanstatsd/internal/status"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// New makes every room. Its error says what the operator can do.
func New(config Config) (*Daemon, error) {
	d := &Daemon{config: config, stopping: make(chan struct{})}
	if err := errors.Join(config.checkDestinations(), config.checkGrace(), config.checkMemory(),
		config.checkDescriptors()); err != nil {
		return nil, err
	}
	if err := d.makeFlush(config); err != nil {
		return nil, err
	}
	if err := d.makeRest(config); err != nil {
		d.flusher.Close(context.Background()) // it has nothing to send yet
		return nil, err
	}
	return d, nil
}

// makeFlush makes the destinations. The agent is the first one, whose books are shown before all others,
// unless it is auto-discovered: then it is the last.
func (d *Daemon) makeFlush(config Config) (err error) {
	exporters := config.exporters()
	if !config.Agent.Off() {
		config.Agent.Version, config.Agent.Log = config.Version, config.Log
		if d.agent, err = agent.New(config.Agent); err != nil {
			return err
		}
		at := 0
		if config.Agent.LookedFor {
			at = len(exporters)
		}
		exporters = slices.Insert(exporters, at, d.agent.Describe())
	}
	for _, x := range exporters {
		if x.LimitTotals != nil {
			x.LimitTotals(config.totals(x))
		}
	}
	config.Flush.Log = config.Log
	d.flusher, err = export.New(config.Flush, exporters...)
	return err
}

// makeRest makes what stands before the flush.
func (d *Daemon) makeRest(config Config) (err error) {
	if err = d.makeRunning(&config); err != nil {
		return err
	}
	if err = d.makeRooms(config); err != nil {
		return errors.Join(err, d.running.Done())
	}
	d.countDead(config)
	return nil
}

// makeRunning makes what the next daemon reads, should this one be killed.
func (d *Daemon) makeRunning(config *Config) (err error) {
	if config.Ingest.Socket.Inherited == nil {
		if err := config.Ingest.Socket.PrepareDirectory(); err != nil {
			return err //nolint:wrapcheck // it says what to do
		}
	}
	var unmapped error
	d.running, unmapped, err = recovery.Make(config.Ingest.Socket.Path, config.Ingest.MaxConnections)
	if unmapped != nil {
		config.Log.Warn("should this daemon be killed, what it holds is lost, and counted by nobody, since "+
			"its running file can't be mapped; give the directory of --socket some room", "error", unmapped)
	}
	config.Aggregate.Running, config.Admit.Running, config.Ingest.Running = d.running, d.running, d.running
	return err
}

// makeRooms makes the rooms that a span goes through, and what shows them.
func (d *Daemon) makeRooms(config Config) (err error) {
	config.Aggregate = config.counting()
	if config.Aggregate.Grid, err = gridFor(config.exporters()); err != nil {
		return err
	}
	config.Aggregate.Deliver = d.flusher.Accept
	if d.aggregate, err = aggregate.New(config.Aggregate); err != nil {
		return err
	}
	config.Admit = config.admitting()
	config.Admit.Aggregator = d.aggregate
	if d.admit, err = admit.New(config.Admit); err != nil {
		return err
	}
	config.Ingest.Version, config.Ingest.Log = config.Version, config.Log
	config.Ingest.Interval = config.Aggregate.FlushInterval
	config.Ingest.Admit, config.Ingest.Features, config.Ingest.Report = d.admit, d.features, d.report
	config.Ingest.Settled = d.aggregate.Settled
	if d.ingest, err = ingest.New(config.Ingest); err != nil {
		return err
	}
	if err = d.makeDoors(&config); err == nil {
		if err = d.makeHealth(config); err != nil {
			d.abandonDoors()
		}
	}
	if err != nil {
		d.ingest.Abandon()
	}
	return err
}

// makeHealth makes what shows the rest.
func (d *Daemon) makeHealth(config Config) (err error) {
	d.sources.Ingest, d.sources.Admit, d.sources.Aggregate = d.ingest, d.admit, d.aggregate
	d.sources.Flush, d.sources.Agent, d.sources.Exemplars = d.flusher, d.agent, config.Exemplars
	d.sources.Prometheus = config.Prometheus
	if err = d.makeScraped(&config); err != nil {
		return err
	}
	d.health, err = status.New(status.Config{
		Addr: config.HTTPAddr, Hosts: config.HTTPHosts, WebConfigFile: config.WebConfigFile,
		Debug:   config.Debug,
		Version: config.Version, FlushInterval: config.Aggregate.FlushInterval,
		Settings: config.Settings,
		Limits: status.Limits{
			Aggregates: config.Aggregate.MaxAggregates, Origins: config.Aggregate.MaxOrigins,
			Connections: config.Ingest.MaxConnections,
		},
		Memory: config.Memory(), MemoryLimit: config.MemoryLimit, Preset: config.Preset,
		Sources: d.sources, Spans: config.PrometheusAddr == "",
		Log: config.Log, LogLinesLost: config.LogLinesLost, Died: func() int { return d.died },
		LostToKills: d.running.Losses,
	})
	if err != nil && d.scraped != nil {
		d.scraped.Abandon()
	}
	return err
}

// makeScraped opens the address at which nothing but statistics is scraped, where there is one.
func (d *Daemon) makeScraped(config *Config) (err error) {
	if config.PrometheusAddr != "" {
		d.scraped, err = status.New(status.Config{
			Addr: config.PrometheusAddr, WebConfigFile: config.WebConfigFile, Log: config.Log,
			Sources: status.Sources{Prometheus: config.Prometheus}, Spans: true, OnlySpans: true,
		})
	}
	return err
}

// sayTime is enough for a line of the log to be written.
const sayTime = time.Second

// countDead is the last that can be done before a start: once said, those that died are nobody
// else's to count. A daemon that is killed before the line is out leaves it to the next; who reads
// both knows by the names that they speak of the same.
func (d *Daemon) countDead(config Config) {
	died, unknown := d.running.FindDead()
	if d.died = len(died); unknown != nil {
		config.Log.Warn("of a daemon before this one nobody can tell whether it ended without its books",
			"error", unknown)
	}
	if d.died > 0 {
		all := d.running.Losses()
		attributes := []any{"daemons", d.died, "names", died, "unknown", all.Unknown, "awaited", all.Awaited}
		for _, door := range slices.Sorted(maps.Keys(all.Doors)) {
			if loss := all.Doors[door]; loss != (recovery.Loss{}) {
				attributes = append(attributes, door+"_lost", loss.Lost, door+"_ambiguous", loss.Ambiguous)
			}
		}
		config.Log.Warn("the daemon before this one was killed: spans that it held and nobody else has are "+
			"lost, clients hand over again what they keep; look for a SIGKILL, for want of memory or after "+
			"the grace", attributes...)
		time.AfterFunc(sayTime, d.saidDead)
	}
}

// saidDead has no later daemon say again who died.
func (d *Daemon) saidDead() {
	if err := d.running.Said(); err != nil {
		d.config.Log.Warn("the next daemon will say again who was killed before this one", "error", err)
	}
}

// report seals now, and returns when what was counted before is delivered, or nobody
// waits for it any more.
func (d *Daemon) report(ctx context.Context) error {
	reported, err := d.aggregate.Report(ctx)
	if err == nil {
		err = reported.Wait(ctx)
	}
	return err
}

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
func featuresOf(f agent.Features, changed <-chan struct{}) (receiver.Features, <-chan struct{}) {
	return receiver.Features{
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
