package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/spanstatsd/spanstatsd/internal/status"
)

// Start starts all components except the flusher. New has started the flusher, so that it can read
// the agent's features before the first client connects.
func (d *Daemon) Start() {
	d.aggregator.Start()
	features, _ := d.wantedFeatures()
	d.admit.SetStatsWanted(features.Stats)
	d.ingest.Start()
	for _, server := range d.receivers {
		server.Start()
	}
	if d.scrapeServer != nil {
		d.scrapeServer.Start()
	}
	d.statusServer.Start()
	d.statusServer.SetReady(true)
	d.background.Go(d.followFeatures)
	d.config.Supervisor.Ready(d.statusLine)
	d.background.Go(d.logLosses)
	d.background.Go(func() { d.recoveryFile.FollowPredecessors(d.stopping) })
	d.announce()
}

// logLosses logs dropped spans and collapsed labels until the daemon stops.
func (d *Daemon) logLosses() {
	log := status.LossLog{
		Dropped: func() map[string]uint64 { return d.admit.Stats().Dropped }, Tracers: d.ingest.Tracers,
		Collapsed:     func() map[string]uint64 { return d.admit.Stats().Collapsed },
		MostCollapsed: d.aggregator.MostCollapsed, Masked: d.aggregator.Masked, Log: d.config.Log,
	}
	log.Run(d.stopping)
}

// Settled returns a channel that Stop closes when every span has its outcome: the end of the process loses nothing from
// then on. Stop returns later, because it waits for HTTP requests to the status server.
func (d *Daemon) Settled() <-chan struct{} { return d.settled }

// Stop stops all components in the order of the data flow, within the grace period, and returns the
// accounting.
func (d *Daemon) Stop() status.Accounting {
	ctx, cancel := context.WithTimeout(context.Background(), d.config.ShutdownGrace)
	defer cancel()
	d.statusServer.SetReady(false)
	before := d.sources.Accounting()
	unsentBefore := map[string]uint64{}
	for _, other := range d.sources.Others() {
		unsentBefore[other.Name] = other.Accounting.Unsent
	}
	close(d.stopping)
	d.background.Wait()
	d.config.Supervisor.Stopping(d.config.ShutdownGrace)
	d.drainHTTP(ctx)
	drainCtx, cancelDrain := context.WithTimeout(ctx, d.config.ShutdownGrace/2)
	defer cancelDrain()
	d.recoveryFile.SetStopping()
	if err := d.ingest.Drain(drainCtx); err != nil {
		d.config.Log.Warn("not all spans that clients had written were read within the grace period", "error", err)
	}
	d.aggregator.Stop()
	d.flusher.Close(ctx)
	d.ingest.Close()
	accounting := d.sources.Accounting()
	lost := accounting.Unsent - before.Unsent + accounting.DroppedTotal() - before.DroppedTotal()
	d.config.Log.Log(ctx, stopLevel(lost), "stopped", "lost", lost, "received", accounting.Received, "aggregated", accounting.Aggregated,
		"dropped", accounting.DroppedTotal(), "flushed", accounting.Flushed, "unsent", accounting.Unsent,
		"pending", accounting.Pending, "before_discovery", accounting.BeforeDiscovery, "balanced", accounting.Balanced)
	if !accounting.Balanced {
		d.config.Log.Error("the accounting does not balance, which is a bug; please report it with the line above")
	}
	for _, other := range d.sources.Others() {
		lost := other.Accounting.Unsent - unsentBefore[other.Name]
		d.config.Log.Log(ctx, stopLevel(lost), "stopped: additional destination", "destination", other.Name, "lost", lost,
			"flushed", other.Accounting.Flushed, "unsent", other.Accounting.Unsent, "pending", other.Accounting.Pending,
			"before_discovery", other.Accounting.BeforeDiscovery)
	}
	if err := d.recoveryFile.Remove(); err != nil {
		d.config.Log.Warn("can't remove the recovery file, so the next daemon will report a crash", "error", err)
	}
	close(d.settled)
	if d.scrapeServer != nil {
		d.scrapeServer.Close(ctx)
	}
	d.statusServer.Close(ctx)
	d.config.Supervisor.Close()
	return accounting
}

// stopLevel returns the log level of a stop that dropped or did not deliver a number of spans.
func stopLevel(lost uint64) slog.Level {
	if lost > 0 {
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

// statusLine returns the accounting as one line for the service manager, and an error if a restart
// would help.
func (d *Daemon) statusLine() (string, error) {
	b := d.sources.Accounting()
	return fmt.Sprintf("%d spans received, %d dropped; %d flushed, %d unsent, %d pending",
		b.Received, b.DroppedTotal(), b.Flushed, b.Unsent, b.Pending), d.statusServer.Alive()
}

// drainHTTP waits for the HTTP requests in flight, of all receivers at the same time.
func (d *Daemon) drainHTTP(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, d.config.ShutdownGrace/4)
	defer cancel()
	var draining sync.WaitGroup
	defer draining.Wait()
	for _, server := range d.receivers {
		draining.Go(func() {
			if err := server.Drain(ctx); err != nil {
				d.config.Log.Warn("not all HTTP requests were answered within the grace period", "error", err)
			}
		})
	}
}
