package daemon

import (
	"context"
	"fmt"
	"sync"

	"github.com/spanstatsd/spanstatsd/internal/health"
	"github.com/spanstatsd/spanstatsd/internal/memory"
)

// Start runs every room. The flush runs since it was made, so that it may know
// already what the agent wants.
func (d *Daemon) Start() {
	d.aggregate.Start()
	features, _ := d.wanted()
	d.admit.SetWanted(features.Stats)
	d.ingest.Start()
	for _, door := range d.doors {
		door.Start()
	}
	d.health.Start()
	d.health.SetReady(true)
	d.watching.Go(d.followWanted)
	d.config.Supervisor.Ready(d.look)
	d.watching.Go(d.logLosses)
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

// logLosses says which spans are dropped, and which labels collapse.
func (d *Daemon) logLosses() {
	log := health.LossLog{
		Dropped: func() map[string]uint64 { return d.admit.Stats().Dropped }, Tracers: d.ingest.Tracers,
		Collapsed:     func() map[string]uint64 { return d.admit.Stats().Collapsed },
		MostCollapsed: d.aggregate.MostCollapsed, Masked: d.aggregate.Masked, Log: d.config.Log,
	}
	log.Run(d.stopping)
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
	for _, door := range d.doors {
		draining.Go(func() {
			if err := door.Drain(ctx); err != nil {
				d.config.Log.Warn("not every tracer's request came to its end in time", "error", err)
			}
		})
	}
}
