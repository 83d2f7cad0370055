package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/apm"
	"github.com/spanstatsd/spanstatsd/internal/flush"
	"github.com/spanstatsd/spanstatsd/internal/health"
	"github.com/spanstatsd/spanstatsd/internal/ingest"
	"github.com/spanstatsd/spanstatsd/internal/memory"
	"github.com/spanstatsd/spanstatsd/internal/systemd"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// Config is the rooms' configurations and what concerns them all.
type Config struct {
	Ingest        ingest.Config
	Admit         admit.Config
	Aggregate     aggregate.Config
	Flush         flush.Config
	APM           apm.Config
	HTTPAddr      string
	WebConfigFile string           // TLS and basic auth of the HTTP address
	Debug         bool             // what only a developer asks for
	Settings      []health.Setting // the values above as the operator gave them
	MemoryLimit   memory.Limit     // that all of it must fit
	ShutdownGrace time.Duration

	DescriptorLimit uint64 // files that the process may open, 0 if nobody knows

	Version      string
	Log          *slog.Logger
	LogLinesLost func() uint64       // what Log could not write, or nil
	Supervisor   *systemd.Supervisor // who started us and wants to hear how we are, or nil
}

// DefaultConfig is the defaults of the command line.
func DefaultConfig() Config {
	return Config{
		Ingest: ingest.DefaultConfig(), Admit: admit.DefaultConfig(), Aggregate: aggregate.DefaultConfig(),
		Flush:    flush.Config{RetryBytes: flush.DefaultRetryBytes, RetryAge: flush.DefaultRetryAge},
		APM:      apm.DefaultConfig(),
		HTTPAddr: ":9126", MemoryLimit: memory.None, ShutdownGrace: 5 * time.Second, Log: slog.Default(),
	}
}

// Daemon is one running program.
type Daemon struct {
	config    Config
	flusher   *flush.Flusher
	aggregate *aggregate.Aggregator
	admit     *admit.Publishers
	ingest    *ingest.Server
	apm       *apm.Server // nil where it is off
	health    *health.Server
	sources   health.Sources

	stopping chan struct{}
	watching sync.WaitGroup
}

// New makes every room. Its error says what the operator can do.
func New(config Config) (*Daemon, error) {
	d := &Daemon{config: config, stopping: make(chan struct{})}
	if err := errors.Join(config.checkGrace(), config.checkMemory(), config.checkDescriptors()); err != nil {
		return nil, err
	}
	config.Flush.Version, config.Flush.Log = config.Version, config.Log
	var err error
	if d.flusher, err = flush.New(config.Flush); err != nil {
		return nil, err
	}
	if err = d.makeRest(config); err != nil {
		d.flusher.Close(context.Background()) // it has nothing to send yet
		return nil, err
	}
	return d, nil
}

// makeRest makes what stands before the flush.
func (d *Daemon) makeRest(config Config) (err error) {
	config.Aggregate = config.counting()
	config.Aggregate.Deliver = d.flusher.Accept
	if warning := config.Aggregate.LimitDrainers(); warning != "" {
		config.Log.Warn(warning)
	}
	if d.aggregate, err = aggregate.New(config.Aggregate); err != nil {
		return err
	}
	if err = config.checkBatch(); err != nil {
		return err
	}
	// Each connection has its share of the memory for keys.
	config.Admit.Connections, config.Admit.Aggregator = config.Ingest.MaxConnections, d.aggregate
	if d.admit, err = admit.New(config.Admit); err != nil {
		return err
	}
	config.Ingest.Version, config.Ingest.Log = config.Version, config.Log
	config.Ingest.Admit, config.Ingest.Features, config.Ingest.Report = d.admit, d.features, d.report
	if d.ingest, err = ingest.New(config.Ingest); err != nil {
		return err
	}
	if err = d.makeAPM(config); err != nil {
		d.ingest.Abandon()
		return err
	}
	d.sources = health.Sources{Ingest: d.ingest, Admit: d.admit, Aggregate: d.aggregate, Flush: d.flusher, APM: d.apm}
	d.health, err = health.New(health.Config{
		Addr: config.HTTPAddr, WebConfigFile: config.WebConfigFile, Debug: config.Debug,
		Version: config.Version, FlushInterval: config.Aggregate.FlushInterval,
		AgentURL: config.Flush.Agent.String(), Settings: config.Settings,
		Limits: health.Limits{
			Aggregates: config.Aggregate.MaxAggregates, Origins: config.Aggregate.MaxOrigins,
			Connections: config.Ingest.MaxConnections, APMConnections: config.APM.MaxConnections,
			RetryBytes: config.Flush.RetryBytes,
		},
		Memory: config.Memory(), MemoryLimit: config.MemoryLimit,
		Sources: d.sources, Log: config.Log, LogLinesLost: config.LogLinesLost,
	})
	if err != nil {
		if d.apm != nil {
			d.apm.Abandon()
		}
		d.ingest.Abandon()
	}
	return err
}

// makeAPM makes the agent's API towards tracers, where it is on. Who may use its
// socket is as with ours.
func (d *Daemon) makeAPM(config Config) (err error) {
	c := config.traces()
	if !c.Enabled() {
		return nil
	}
	path := c.Socket.Path
	c.Socket = config.Ingest.Socket
	c.Socket.Path = path
	c.AllowUIDs, c.Admit, c.Log = config.Ingest.AllowUIDs, d.admit, config.Log
	c.Agent = apm.Agent{Network: config.Flush.Agent.Network, Address: config.Flush.Agent.Address}
	c.Features = func() (apm.Features, <-chan struct{}) {
		f, changed := d.flusher.WatchFeatures()
		return apm.Features{
			Stats: f.Stats, PeerTags: f.PeerTags, SpanKinds: f.SpanKinds,
			IgnoreResources: f.IgnoreResources, FiltersTags: f.FiltersTags, DropsP0s: f.DropsP0s,
		}, changed
	}
	d.apm, err = apm.New(c)
	return err
}

// features is what the agent wants, in the words that tracers are told.
func (d *Daemon) features() (wire.Features, <-chan struct{}) {
	f, changed := d.flusher.WatchFeatures()
	return wire.Features{
		Stats: f.Stats, PeerTags: f.PeerTags, SpanKinds: f.SpanKinds,
		IgnoreResources: f.IgnoreResources, ObfuscationVersion: f.ObfuscationVersion,
	}, changed
}

// report seals now, and returns when what was counted before is delivered. The end of
// the context says that the daemon stops.
func (d *Daemon) report(ctx context.Context) error {
	reported, err := d.aggregate.Report(ctx)
	if err == nil {
		err = reported.Wait(ctx)
	}
	if errors.Is(err, context.Canceled) {
		return aggregate.ErrStopped
	}
	return err
}

// Start runs every room. The flush runs since it was made, so that it may know
// already what the agent wants.
func (d *Daemon) Start() {
	d.aggregate.Start()
	d.admit.SetWanted(d.flusher.Features().Stats)
	d.ingest.Start()
	if d.apm != nil {
		d.apm.Start()
		d.config.Log.Info("taking traces for the agent", "socket", d.config.APM.Socket.Path, "addr", d.apm.Addr())
	}
	d.health.Start()
	d.health.SetReady(true)
	d.watching.Go(d.followWanted)
	d.config.Supervisor.Ready(d.look)
	d.watching.Go(d.logCollapses)
	d.announce()
}

// announce is the one line at start: where spans come in and go out, what may
// be used for them, and where to look for more.
func (d *Daemon) announce() {
	c := &d.config
	d.config.Log.Info("listening for tracers",
		"socket", c.Ingest.Socket.Path, "agent", c.Flush.Agent.String(), "http", d.health.Addr(),
		"drainers", d.aggregate.Drainers(), "ring_slots", c.Aggregate.RingSlots,
		"max_aggregates", c.Aggregate.MaxAggregates, "max_connections", c.Ingest.MaxConnections,
		"retry_bytes", c.Flush.RetryBytes, "memory_at_most", memory.Text(c.Memory().Total), "version", c.Version,
		"see", "spanstatsd status, or / on the http address; --log-level=debug says more")
}

// logCollapses says which labels collapse.
func (d *Daemon) logCollapses() {
	log := health.CollapseLog{
		Spans:         func() map[string]uint64 { return d.admit.Stats().Collapsed },
		MostCollapsed: d.aggregate.MostCollapsed, Log: d.config.Log,
	}
	log.Run(d.stopping)
}

// followWanted has batches admitted only while the agent takes statistics, and empties
// the tables each time that it stops: their memory is of use to nobody until it does
// again.
func (d *Daemon) followWanted() {
	wanted := true
	for {
		features, changed := d.flusher.WatchFeatures()
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

// Stop ends every room within the grace, and returns the books.
func (d *Daemon) Stop() health.Books {
	ctx, cancel := context.WithTimeout(context.Background(), d.config.ShutdownGrace)
	defer cancel()
	d.health.SetReady(false)
	close(d.stopping)
	d.watching.Wait()
	d.config.Supervisor.Stopping(d.config.ShutdownGrace)
	d.drainAPM(ctx)
	reading, stopReading := context.WithTimeout(ctx, d.config.ShutdownGrace/2)
	defer stopReading()
	if err := d.ingest.Drain(reading); err != nil {
		d.config.Log.Warn("not everything that tracers wrote was counted in time", "error", err)
	}
	d.aggregate.Stop()
	d.flusher.Close(ctx)
	d.ingest.Close()
	books := d.sources.Books()
	d.config.Log.Info("stopped", "received", books.Received, "aggregated", books.Aggregated,
		"dropped", books.DroppedTotal(), "flushed", books.Flushed, "unsent", books.Unsent,
		"held", books.Held, "balanced", books.Balanced)
	d.health.Close(ctx)
	d.config.Supervisor.Close()
	return books
}

// look is what the service manager is told: the books in a line, and an error
// if a restart would help.
func (d *Daemon) look() (string, error) {
	b := d.sources.Books()
	return fmt.Sprintf("%d spans received, %d dropped; %d flushed, %d unsent, %d held",
		b.Received, b.DroppedTotal(), b.Flushed, b.Unsent, b.Held), d.health.Alive()
}

func (d *Daemon) drainAPM(ctx context.Context) {
	if d.apm == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, d.config.ShutdownGrace/4)
	defer cancel()
	if err := d.apm.Drain(ctx); err != nil {
		d.config.Log.Warn("not every tracer's request came to its end in time", "error", err)
	}
}

// Books are what became of every span so far.
func (d *Daemon) Books() health.Books { return d.sources.Books() }

// HTTPAddr is where metrics and probes are answered.
func (d *Daemon) HTTPAddr() string { return d.health.Addr() }
