package daemon

import (
	"context"
	"fmt"
	"sync"

	"github.com/spanstatsd/spanstatsd/internal/status"
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
	if d.scraped != nil {
		d.scraped.Start()
	}
	d.health.Start()
	d.health.SetReady(true)
	d.watching.Go(d.followWanted)
	d.config.Supervisor.Ready(d.look)
	d.watching.Go(d.logLosses)
	d.announce()
}

// logLosses says which spans are dropped, and which labels collapse.
func (d *Daemon) logLosses() {
	log := status.LossLog{
		Dropped: func() map[string]uint64 { return d.admit.Stats().Dropped }, Tracers: d.ingest.Tracers,
		Collapsed:     func() map[string]uint64 { return d.admit.Stats().Collapsed },
		MostCollapsed: d.aggregate.MostCollapsed, Masked: d.aggregate.Masked, Log: d.config.Log,
	}
	log.Run(d.stopping)
}

// Stop ends every room within the grace, and returns the books.
func (d *Daemon) Stop() status.Books {
	ctx, cancel := context.WithTimeout(context.Background(), d.config.ShutdownGrace)
	defer cancel()
	d.health.SetReady(false)
	close(d.stopping)
	d.watching.Wait()
	d.config.Supervisor.Stopping(d.config.ShutdownGrace)
	d.drainHTTP(ctx)
	reading, stopReading := context.WithTimeout(ctx, d.config.ShutdownGrace/2)
	defer stopReading()
	d.running.Stopping()
	if err := d.ingest.Drain(reading); err != nil {
		d.config.Log.Warn("not everything that tracers wrote was counted in time", "error", err)
	}
	d.aggregate.Stop()
	d.flusher.Close(ctx)
	d.ingest.Close()
	books := d.sources.Books()
	d.config.Log.Info("stopped", "received", books.Received, "aggregated", books.Aggregated,
		"dropped", books.DroppedTotal(), "flushed", books.Flushed, "unsent", books.Unsent,
		"held", books.Held, "before_found", books.BeforeFound, "balanced", books.Balanced)
	for _, other := range d.sources.Others() {
		d.config.Log.Info("stopped: another destination", "destination", other.Name,
			"flushed", other.Books.Flushed, "unsent", other.Books.Unsent, "held", other.Books.Held,
			"before_found", other.Books.BeforeFound)
	}
	d.saidDead()
	if err := d.running.Done(); err != nil {
		d.config.Log.Warn("the next daemon will take this one for one that was killed", "error", err)
	}
	if d.scraped != nil {
		d.scraped.Close(ctx)
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
