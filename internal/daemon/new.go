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

// New creates a daemon and opens its listeners. Start must be called to serve clients.
func New(config Config) (*Daemon, error) {
	err := errors.Join(config.checkDestinations(), config.checkGrace(), config.checkMemory(),
		config.checkDescriptors())
	if err != nil {
		return nil, err
	}
	d := &Daemon{config: config, stopping: make(chan struct{}), settled: make(chan struct{})}
	if err := d.newFlusher(config); err != nil {
		return nil, err
	}
	if err := d.newPipeline(config); err != nil {
		d.flusher.Close(context.Background()) // returns immediately: nothing is queued
		return nil, err
	}
	return d, nil
}

// newFlusher creates the exporters, and starts the flusher that sends statistics to them.
func (d *Daemon) newFlusher(config Config) error {
	exporters := config.exporters()
	if !config.Agent.Off() {
		if err := d.newAgent(config); err != nil {
			return err
		}
		// Users see the accounting of the first destination in detail.
		position := 0
		if config.Agent.AutoDiscovered {
			position = len(exporters)
		}
		exporters = slices.Insert(exporters, position, d.agent.Describe())
	}
	for _, exporter := range exporters {
		if exporter.LimitTotals != nil {
			exporter.LimitTotals(config.totalsLimits(exporter))
		}
	}
	config.Flush.Log = config.Log
	flusher, err := export.New(config.Flush, exporters...)
	d.flusher = flusher
	return err
}

// newAgent creates the exporter for the Datadog agent.
func (d *Daemon) newAgent(config Config) (err error) {
	config.Agent.Version = config.Version
	config.Agent.Log = config.Log
	d.agent, err = agent.New(config.Agent)
	return err
}

// newPipeline creates all components except the destinations. If it succeeds, it also logs the
// losses of previous daemons that have crashed.
func (d *Daemon) newPipeline(config Config) error {
	if err := d.newRecoveryFile(&config); err != nil {
		return err
	}
	if err := d.newComponents(config); err != nil {
		return errors.Join(err, d.recoveryFile.Remove())
	}
	d.recoveryFile.ReportCrashes() // last, because a daemon that fails to start must leave the report to the next one
	return nil
}

// newRecoveryFile creates the recovery file next to the socket, and makes other components use it.
// If this daemon crashes, the next one reads the file to report how many spans were lost.
func (d *Daemon) newRecoveryFile(config *Config) error {
	hasInheritedSocket := config.Ingest.Socket.Inherited != nil
	if !hasInheritedSocket {
		if err := config.Ingest.Socket.PrepareDirectory(); err != nil {
			return err //nolint:wrapcheck // the error is complete
		}
	}
	file, err := recovery.Create(recovery.Config{
		Path: config.Ingest.Socket.Path, Connections: config.Ingest.MaxConnections,
		Log: config.Log, FlushLog: config.FlushLog,
	})
	if err != nil {
		return err
	}
	d.recoveryFile = file
	config.Aggregate.Recovery = file
	config.Admit.Recovery = file
	config.Ingest.Recovery = file
	return nil
}

// newComponents creates the aggregator, and then the components that need it: the publishers, the receivers
// and the status server. Each step can set fields of config, a copy of the daemon's configuration, for later
// steps.
func (d *Daemon) newComponents(config Config) error {
	if err := d.newAggregator(&config); err != nil {
		return err
	}
	if err := d.newPublishers(&config); err != nil {
		return err
	}
	// All listeners are opened even if one fails, so that the error names every address in use.
	err := errors.Join(d.newIngest(config), d.openReceivers(&config), d.newStatusServer(config))
	if err != nil {
		d.closeListeners()
	}
	return err
}

// newAggregator creates the aggregator, which counts spans and passes the counts of each interval to
// the flusher. It also completes config.Aggregate, which other components use.
func (d *Daemon) newAggregator(config *Config) error {
	grid, err := gridFor(config.exporters())
	if err != nil {
		return err
	}
	config.Aggregate = config.aggregateConfig()
	config.Aggregate.Deliver = d.flusher.Accept
	config.Aggregate.Grid = grid
	d.aggregator, err = aggregate.New(config.Aggregate)
	return err
}

// newPublishers creates the publishers, through which receivers pass spans to the aggregator. It also
// completes config.Admit, which other components use.
func (d *Daemon) newPublishers(config *Config) (err error) {
	config.Admit = config.admitConfig()
	config.Admit.Aggregator = d.aggregator
	d.admit, err = admit.New(config.Admit)
	return err
}

// newIngest opens the socket for native clients.
func (d *Daemon) newIngest(config Config) (err error) {
	ingestConfig := config.Ingest
	ingestConfig.Version = config.Version
	ingestConfig.Log = config.Log
	ingestConfig.Interval = config.Aggregate.FlushInterval
	ingestConfig.Admit = d.admit
	ingestConfig.Features = d.nativeFeatures
	ingestConfig.Deliver = d.flushNow
	ingestConfig.Settled = d.aggregator.Settled
	d.ingest, err = ingest.New(ingestConfig)
	return err
}

// closeListeners closes the listeners that were opened before New failed.
func (d *Daemon) closeListeners() {
	if d.ingest != nil {
		d.ingest.Abandon()
	}
	for _, server := range d.receivers {
		server.Abandon()
	}
	if d.scrapeServer != nil {
		d.scrapeServer.Abandon()
	}
	if d.statusServer != nil {
		d.statusServer.Abandon()
	}
}

// newStatusServer opens the server for the status, metrics and probes. If a separate address for
// scrapes of span statistics is configured, it opens the server for this address as well.
func (d *Daemon) newStatusServer(config Config) (err error) {
	scrapeErr := d.newScrapeServer(&config)
	d.setSources(&config)
	d.statusServer, err = status.New(d.statusConfig(&config))
	return errors.Join(scrapeErr, err)
}

// setSources stores the components from which the status is read in d.sources.
func (d *Daemon) setSources(config *Config) {
	d.sources.Ingest = d.ingest
	d.sources.Admit = d.admit
	d.sources.Aggregate = d.aggregator
	d.sources.Flush = d.flusher
	d.sources.Agent = d.agent
	d.sources.Exemplars = config.Exemplars
	d.sources.Prometheus = config.Prometheus
}

// statusConfig returns the configuration of the status server.
func (d *Daemon) statusConfig(config *Config) status.Config {
	return status.Config{
		Addr: config.HTTPAddr, Hosts: config.HTTPHosts, WebConfigFile: config.WebConfigFile,
		Debug:   config.Debug,
		Version: config.Version, FlushInterval: config.Aggregate.FlushInterval,
		Settings: config.Settings,
		Limits: status.Limits{
			Aggregates: config.Aggregate.MaxAggregates, Origins: config.Aggregate.MaxOrigins,
			Connections: config.Ingest.MaxConnections,
		},
		Memory: config.Memory(), MemoryLimit: config.MemoryLimit, Preset: config.Preset,
		Sources: d.sources, ServesScrapes: config.PrometheusAddr == "",
		Log: config.Log, LogLinesLost: config.LogLinesLost,
		Crashes: d.recoveryFile.Crashes, CrashLosses: d.recoveryFile.Losses,
	}
}

// newScrapeServer opens the separate server for scrapes of span statistics. It does nothing if
// scrapes use the address of the status server.
func (d *Daemon) newScrapeServer(config *Config) (err error) {
	if config.PrometheusAddr == "" {
		return nil
	}
	d.scrapeServer, err = status.New(status.Config{
		Addr: config.PrometheusAddr, WebConfigFile: config.WebConfigFile, Log: config.Log,
		Sources: status.Sources{Prometheus: config.Prometheus}, ServesScrapes: true, OnlyScrapes: true,
	})
	return err
}

// flushNow exports the current counts without waiting for the end of the interval. It returns nil
// when all spans that were counted before the call are delivered, and an error if a delivery fails
// or ctx ends before.
func (d *Daemon) flushNow(ctx context.Context) error {
	deliveries, err := d.aggregator.RequestFlush(ctx)
	if err != nil {
		return err
	}
	return deliveries.Wait(ctx)
}

// wantedFeatures returns the features of the Datadog agent, for example which span tags it expects as labels.
// Without an agent, they are those of an agent with the default configuration. features.Stats is true if the
// agent or another destination accepts statistics. changed is closed when the features change.
func (d *Daemon) wantedFeatures() (features agent.Features, changed <-chan struct{}) {
	if d.agent == nil {
		return agent.DefaultFeatures(), nil
	}
	features, changed = d.agent.WatchFeatures()
	hasOtherDestination := len(d.config.exporters()) > 0
	if hasOtherDestination {
		features.Stats = true
	}
	return features, changed
}

// receiverFeatures returns the features of the Datadog agent in the type that HTTP receivers use.
func receiverFeatures(f agent.Features) receiver.Features {
	return receiver.Features{
		Stats: f.Stats, PeerTags: f.PeerTags, SpanKinds: f.SpanKinds,
		IgnoreResources: f.IgnoreResources, FiltersByTags: f.FiltersTags, AllowsDropUnsampled: f.DropsP0s,
	}
}

// nativeFeatures returns the features of the Datadog agent, for example which span tags it expects as
// labels, in the type that is sent to native clients. changed is closed when the features change.
func (d *Daemon) nativeFeatures() (features wire.Features, changed <-chan struct{}) {
	f, changed := d.wantedFeatures()
	features = wire.Features{
		Stats: f.Stats, PeerTags: f.PeerTags, SpanKinds: f.SpanKinds,
		IgnoreResources: f.IgnoreResources, ObfuscationVersion: f.ObfuscationVersion,
	}
	return features, changed
}

// followFeatures makes receivers reject spans while no destination accepts statistics. When the last
// destination stops accepting them, it also discards the counts of the current interval, because
// they can't be delivered. It returns when the daemon stops.
func (d *Daemon) followFeatures() {
	wasWanted := true
	for {
		features, changed := d.wantedFeatures()
		isWanted := features.Stats
		d.admit.SetStatsWanted(isWanted)
		if wasWanted && !isWanted {
			d.aggregator.Clear()
		}
		wasWanted = isWanted
		select {
		case <-changed:
		case <-d.stopping:
			return
		}
	}
}
