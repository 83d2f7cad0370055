package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/door/datadog"
	"github.com/spanstatsd/spanstatsd/internal/door/otlp"
	"github.com/spanstatsd/spanstatsd/internal/exemplars"
	"github.com/spanstatsd/spanstatsd/internal/flush"
	"github.com/spanstatsd/spanstatsd/internal/flush/agent"
	"github.com/spanstatsd/spanstatsd/internal/health"
	"github.com/spanstatsd/spanstatsd/internal/ingest"
	"github.com/spanstatsd/spanstatsd/internal/memory"
	"github.com/spanstatsd/spanstatsd/internal/socket"
	"github.com/spanstatsd/spanstatsd/internal/systemd"
)

// Config is the rooms' configurations and what concerns them all.
type Config struct {
	Ingest        ingest.Config
	Admit         admit.Config
	Aggregate     aggregate.Config
	Flush         flush.Config
	Agent         agent.Config
	Exporters     []flush.Exporter // of the destinations beside the agent
	Exemplars     *exemplars.Table // that they share with what hands traces on; nil: nobody wants any
	APM           datadog.Config
	OTLP          otlp.Config // that is taken; what is sent is an exporter's
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
		Flush: flush.Config{RetryBytes: flush.DefaultRetryBytes, RetryAge: flush.DefaultRetryAge},
		APM:   datadog.DefaultConfig(), OTLP: otlp.DefaultConfig(),
		HTTPAddr: ":9126", MemoryLimit: memory.None, ShutdownGrace: 5 * time.Second, Log: slog.Default(),
	}
}

// Daemon is one running program.
type Daemon struct {
	config    Config
	flusher   *flush.Flusher
	agent     *agent.Exporter // nil where there is none
	aggregate *aggregate.Aggregator
	admit     *admit.Publishers
	ingest    *ingest.Server
	apm       *datadog.Server // nil where it is off
	otlp      *otlp.Server    // the same
	health    *health.Server
	sources   health.Sources

	running *socket.Running
	died    int // daemons before this one that ended without their books

	stopping chan struct{}
	watching sync.WaitGroup
}

// Start runs every room. The flush runs since it was made, so that it may know
// already what the agent wants.
func (d *Daemon) Start() {
	d.aggregate.Start()
	features, _ := d.wanted()
	d.admit.SetWanted(features.Stats)
	d.ingest.Start()
	if d.apm != nil {
		d.apm.Start()
		d.config.Log.Info("taking traces for the agent", "socket", d.config.APM.Socket.Path, "addr",
			d.apm.Addr())
	}
	if d.otlp != nil {
		d.otlp.Start()
		d.config.Log.Info("taking OTLP", "socket", d.config.OTLP.Socket.Path, "addr", d.otlp.Addr())
	}
	d.health.Start()
	d.health.SetReady(true)
	d.watching.Go(d.followWanted)
	d.config.Supervisor.Ready(d.look)
	d.watching.Go(d.logCollapses)
	d.watching.Go(d.logDrops)
	d.announce()
}

// announce is the one line at start: where spans come in and go out, what may
// be used for them, and where to look for more.
func (d *Daemon) announce() {
	c := &d.config
	for _, other := range c.Exporters {
		d.config.Log.Info("sending statistics by this exporter", "destination", other.Name(), "url",
			other.URL())
	}
	d.config.Log.Info("listening for tracers",
		"socket", c.Ingest.Socket.Path, "agent", c.Agent.URL.String(), "http", d.health.Addr(),
		"drainers", d.aggregate.Drainers(), "ring_slots", c.Aggregate.RingSlots,
		"max_aggregates", c.Aggregate.MaxAggregates, "max_aggregates_from", c.aggregatesFrom(),
		"max_connections", c.Ingest.MaxConnections,
		"retry_bytes", memory.SizeText(c.Flush.RetryBytes), "memory_at_most", memory.Text(c.Memory().Total),
		"version", c.Version,
		"see", "spanstatsd status, or / on the http address; --log-level=debug says more")
}

// aggregatesFrom says why there are as many aggregates as there are: who chose the number,
// and the limit that it was chosen for.
func (c *Config) aggregatesFrom() string {
	for _, s := range c.Settings {
		if s.Name == "max-aggregates" && s.Origin == health.FromMemory {
			return fmt.Sprintf("%s of %s", c.MemoryLimit.Source, memory.Text(c.MemoryLimit.Bytes))
		} else if s.Name == "max-aggregates" {
			return s.Origin
		}
	}
	return health.FromDefault
}

// logCollapses says which labels collapse.
func (d *Daemon) logCollapses() {
	log := health.CollapseLog{
		Spans:         func() map[string]uint64 { return d.admit.Stats().Collapsed },
		MostCollapsed: d.aggregate.MostCollapsed, Masked: d.aggregate.Masked, Log: d.config.Log,
	}
	log.Run(d.stopping)
}

// logDrops says which spans are dropped.
func (d *Daemon) logDrops() {
	log := health.DropLog{
		Spans:   func() map[string]uint64 { return d.admit.Stats().Dropped },
		Tracers: d.ingest.Tracers, Log: d.config.Log,
	}
	log.Run(d.stopping)
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

// Stop ends every room within the grace, and returns the books.
func (d *Daemon) Stop() health.Books {
	ctx, cancel := context.WithTimeout(context.Background(), d.config.ShutdownGrace)
	defer cancel()
	d.health.SetReady(false)
	close(d.stopping)
	d.watching.Wait()
	d.config.Supervisor.Stopping(d.config.ShutdownGrace)
	d.drainHTTP(ctx)
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
	for _, other := range d.sources.Others() {
		d.config.Log.Info("stopped: another destination", "destination", other.Name,
			"flushed", other.Books.Flushed, "unsent", other.Books.Unsent, "held", other.Books.Held)
	}
	if err := d.running.Done(); err != nil {
		d.config.Log.Warn("the next daemon will take this one for one that was killed", "error", err)
	}
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

// drainHTTP has the requests of tracers and of SDKs end, side by side.
func (d *Daemon) drainHTTP(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, d.config.ShutdownGrace/4)
	defer cancel()
	var draining sync.WaitGroup
	defer draining.Wait()
	drain := func(room interface{ Drain(context.Context) error }) {
		if err := room.Drain(ctx); err != nil {
			d.config.Log.Warn("not every tracer's request came to its end in time", "error", err)
		}
	}
	if d.apm != nil {
		draining.Go(func() { drain(d.apm) })
	}
	if d.otlp != nil {
		draining.Go(func() { drain(d.otlp) })
	}
}

// Books are what became of every span so far.
func (d *Daemon) Books() health.Books { return d.sources.Books() }

// Status is what /status answers.
func (d *Daemon) Status() health.Status { return d.health.Status() }

// HTTPAddr is where metrics and probes are answered.
func (d *Daemon) HTTPAddr() string { return d.health.Addr() }
