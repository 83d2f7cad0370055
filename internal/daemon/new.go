package daemon

import (
	"context"
	"errors"
	"slices"

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

// New creates a daemon. Its error tells the operator what to do.
func New(config Config) (*Daemon, error) {
	d := &Daemon{config: config, stopping: make(chan struct{}), settled: make(chan struct{})}
	if err := errors.Join(config.checkDestinations(), config.checkGrace(), config.checkMemory(),
		config.checkDescriptors()); err != nil {
		return nil, err
	}
	if err := d.newFlusher(config); err != nil {
		return nil, err
	}
	if err := d.newPipeline(config); err != nil {
		d.flusher.Close(context.Background()) // returns immediately: nothing is queued
		return nil, err
	}
	return d, nil
}

// newFlusher creates the destinations. The status shows the accounting of the first destination in
// detail. This is the agent, unless the agent is auto-discovered: then the agent is the last one.
func (d *Daemon) newFlusher(config Config) (err error) {
	exporters := config.exporters()
	if !config.Agent.Off() {
		config.Agent.Version, config.Agent.Log = config.Version, config.Log
		if d.agent, err = agent.New(config.Agent); err != nil {
			return err
		}
		position := 0
		if config.Agent.AutoDiscovered {
			position = len(exporters)
		}
		exporters = slices.Insert(exporters, position, d.agent.Describe())
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

// newPipeline creates everything except the destinations, and reports crashed predecessors.
func (d *Daemon) newPipeline(config Config) (err error) {
	if err = d.newRecoveryFile(&config); err != nil {
		return err
	}
	if err = d.newComponents(config); err != nil {
		return errors.Join(err, d.recoveryFile.Remove())
	}
	// Only now, so that a daemon which fails to start does not report crashes.
	d.recoveryFile.ReportCrashes()
	return nil
}

// newRecoveryFile creates the recovery file, which the next daemon reads if this one crashes.
func (d *Daemon) newRecoveryFile(config *Config) (err error) {
	if config.Ingest.Socket.Inherited == nil {
		if err := config.Ingest.Socket.PrepareDirectory(); err != nil {
			return err //nolint:wrapcheck // it says what to do
		}
	}
	d.recoveryFile, err = recovery.Create(recovery.Config{
		Path: config.Ingest.Socket.Path, Connections: config.Ingest.MaxConnections,
		Log: config.Log, FlushLog: config.FlushLog,
	})
	config.Aggregate.Running, config.Admit.Running, config.Ingest.Recovery = d.recoveryFile, d.recoveryFile, d.recoveryFile
	return err
}

// newComponents creates the components in the order in which they depend on each other: from the
// aggregator to the receivers, then the status server.
func (d *Daemon) newComponents(config Config) (err error) {
	config.Aggregate = config.aggregateConfig()
	if config.Aggregate.Grid, err = gridFor(config.exporters()); err != nil {
		return err
	}
	config.Aggregate.Deliver = d.flusher.Accept
	if d.aggregator, err = aggregate.New(config.Aggregate); err != nil {
		return err
	}
	config.Admit = config.admitConfig()
	config.Admit.Aggregator = d.aggregator
	if d.admit, err = admit.New(config.Admit); err != nil {
		return err
	}
	config.Ingest.Version, config.Ingest.Log = config.Version, config.Log
	config.Ingest.Interval = config.Aggregate.FlushInterval
	config.Ingest.Admit, config.Ingest.Features, config.Ingest.Deliver = d.admit, d.features, d.flushNow
	config.Ingest.Settled = d.aggregator.Settled
	d.ingest, err = ingest.New(config.Ingest)
	// If an address is in use, the others are tried as well, so that the error names all that are.
	if err = errors.Join(err, d.openReceivers(&config), d.newStatusServer(config)); err != nil {
		d.abandon()
	}
	return err
}

// abandon closes the opened listeners if the daemon can't be created.
func (d *Daemon) abandon() {
	if d.ingest != nil {
		d.ingest.Abandon()
	}
	for _, opened := range d.receivers {
		opened.Abandon()
	}
	for _, opened := range []*status.Server{d.scrapeServer, d.statusServer} {
		if opened != nil {
			opened.Abandon()
		}
	}
}

// newStatusServer creates the servers for status, metrics and scrapes.
func (d *Daemon) newStatusServer(config Config) (err error) {
	d.sources.Ingest, d.sources.Admit, d.sources.Aggregate = d.ingest, d.admit, d.aggregator
	d.sources.Flush, d.sources.Agent, d.sources.Exemplars = d.flusher, d.agent, config.Exemplars
	d.sources.Prometheus = config.Prometheus
	scrapeErr := d.newScrapeServer(&config)
	d.statusServer, err = status.New(status.Config{
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
		Log: config.Log, LogLinesLost: config.LogLinesLost, Died: d.recoveryFile.Crashes,
		LostToKills: d.recoveryFile.Losses,
	})
	return errors.Join(scrapeErr, err)
}

// newScrapeServer creates the server for scrapes on an address of its own, if one is configured.
func (d *Daemon) newScrapeServer(config *Config) (err error) {
	if config.PrometheusAddr != "" {
		d.scrapeServer, err = status.New(status.Config{
			Addr: config.PrometheusAddr, WebConfigFile: config.WebConfigFile, Log: config.Log,
			Sources: status.Sources{Prometheus: config.Prometheus}, Spans: true, OnlySpans: true,
		})
	}
	return err
}

// flushNow requests an early end of the cycle. It returns when all spans counted before the call
// are delivered, when delivery fails, or when ctx is done.
func (d *Daemon) flushNow(ctx context.Context) error {
	deliveries, err := d.aggregator.RequestFlush(ctx)
	if err == nil {
		err = deliveries.Wait(ctx)
	}
	return err
}

// wantedFeatures returns the agent's features, and a channel that is closed when they change. If
// other destinations exist, Stats is always true. Without an agent, or until it has been found, the
// features are those of an agent with its default configuration.
func (d *Daemon) wantedFeatures() (agent.Features, <-chan struct{}) {
	if d.agent == nil {
		return agent.DefaultFeatures(), nil
	}
	f, changed := d.agent.WatchFeatures()
	f.Stats = f.Stats || len(d.config.exporters()) > 0
	return f, changed
}

// receiverFeatures converts the result of wantedFeatures for receivers.
func receiverFeatures(f agent.Features, changed <-chan struct{}) (receiver.Features, <-chan struct{}) {
	return receiver.Features{
		Stats: f.Stats, PeerTags: f.PeerTags, SpanKinds: f.SpanKinds,
		IgnoreResources: f.IgnoreResources, FiltersTags: f.FiltersTags, DropsP0s: f.DropsP0s,
	}, changed
}

// features converts the result of wantedFeatures for native clients.
func (d *Daemon) features() (wire.Features, <-chan struct{}) {
	f, changed := d.wantedFeatures()
	return wire.Features{
		Stats: f.Stats, PeerTags: f.PeerTags, SpanKinds: f.SpanKinds,
		IgnoreResources: f.IgnoreResources, ObfuscationVersion: f.ObfuscationVersion,
	}, changed
}

// followFeatures runs until the daemon stops. It lets admit reject batches while no destination
// accepts statistics. When that begins, it also clears the counts of the current cycle, which no
// destination would accept.
func (d *Daemon) followFeatures() {
	wanted := true
	for {
		features, changed := d.wantedFeatures()
		d.admit.SetStatsWanted(features.Stats)
		if wanted && !features.Stats {
			d.aggregator.Clear()
		}
		wanted = features.Stats
		select {
		case <-changed:
		case <-d.stopping:
			return
		}
	}
}
