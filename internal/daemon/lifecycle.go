package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/spanstatsd/spanstatsd/internal/status"
)

// Start starts all servers and background tasks. When it returns, clients can connect. It does not
// start the flusher, which sends statistics to destinations, because New has already started it.
func (d *Daemon) Start() {
	d.aggregator.Start()
	features, _ := d.wantedFeatures() // followFeatures applies later changes
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
	d.background.Go(func() { d.recoveryFile.FollowPredecessors(d.stopping) }) // logs losses of earlier daemons
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

// Settled returns a channel that is closed during Stop, when every received span is delivered or counted as
// lost. Ending the process after that loses no spans, although Stop can still be waiting for requests to the
// status server.
func (d *Daemon) Settled() <-chan struct{} { return d.settled }

// Stop stops all components in the order in which spans pass them: receivers, aggregator, destinations. It
// waits for them for the grace period at most. It returns the final numbers of spans that were received,
// delivered and lost.
func (d *Daemon) Stop() status.Accounting {
	ctx, cancel := context.WithTimeout(context.Background(), d.config.ShutdownGrace)
	defer cancel()
	d.statusServer.SetReady(false)
	baseline := d.takeBaseline() // to log the losses during the shutdown
	close(d.stopping)
	d.background.Wait()
	d.config.Supervisor.Stopping(d.config.ShutdownGrace)
	d.stopPipeline(ctx)
	accounting := d.sources.Accounting()
	d.logStopped(ctx, baseline, accounting)
	if err := d.recoveryFile.Remove(); err != nil {
		d.config.Log.Warn("can't remove the recovery file, so the next daemon will report a crash", "error", err)
	}
	close(d.settled) // every received span is delivered or counted as lost
	if d.scrapeServer != nil {
		d.scrapeServer.Close(ctx)
	}
	d.statusServer.Close(ctx)
	d.config.Supervisor.Close()
	return accounting
}

// stopPipeline stops the components in the order in which spans pass them.
func (d *Daemon) stopPipeline(ctx context.Context) {
	d.drainHTTP(ctx)
	d.recoveryFile.SetStopping()
	d.drainSocket(ctx)
	d.aggregator.Stop()
	d.flusher.Close(ctx)
	d.ingest.Close()
}

// stopBaseline contains counts at the beginning of a stop.
type stopBaseline struct {
	accounting status.Accounting
	unsent     map[string]uint64 // unsent spans of each additional destination, by its name
}

// takeBaseline returns the current counts.
func (d *Daemon) takeBaseline() stopBaseline {
	baseline := stopBaseline{accounting: d.sources.Accounting(), unsent: map[string]uint64{}}
	for _, destination := range d.sources.AdditionalDestinations() {
		baseline.unsent[destination.Name] = destination.Accounting.Unsent
	}
	return baseline
}

// logStopped logs the final numbers of spans, and how many spans were lost during the shutdown. baseline
// contains the numbers at the beginning of the shutdown.
func (d *Daemon) logStopped(ctx context.Context, baseline stopBaseline, final status.Accounting) {
	log := d.config.Log
	unsent := final.Unsent - baseline.accounting.Unsent
	dropped := final.DroppedTotal() - baseline.accounting.DroppedTotal()
	lost := unsent + dropped
	log.Log(ctx, stopLevel(lost), "stopped", "lost", lost, "received", final.Received, "aggregated", final.Aggregated,
		"dropped", final.DroppedTotal(), "flushed", final.Flushed, "unsent", final.Unsent,
		"pending", final.Pending, "before_discovery", final.BeforeDiscovery, "balanced", final.Balanced)
	if !final.Balanced {
		log.Error("the accounting does not balance, which is a bug; please report it with the line above")
	}
	d.logStoppedDestinations(ctx, baseline)
}

// logStoppedDestinations logs the final numbers of spans of each destination except the first.
func (d *Daemon) logStoppedDestinations(ctx context.Context, baseline stopBaseline) {
	for _, destination := range d.sources.AdditionalDestinations() {
		delivery := destination.Accounting
		lost := delivery.Unsent - baseline.unsent[destination.Name]
		d.config.Log.Log(ctx, stopLevel(lost), "stopped: additional destination",
			"destination", destination.Name, "lost", lost, "flushed", delivery.Flushed, "unsent", delivery.Unsent, "pending", delivery.Pending,
			"before_discovery", delivery.BeforeDiscovery)
	}
}

// stopLevel returns the log level for the final numbers of spans: warning if spans were lost during
// the shutdown, and otherwise info.
func stopLevel(lost uint64) slog.Level {
	if lost > 0 {
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

// statusLine returns the numbers of received, delivered and lost spans as one line for the service
// manager. It returns an error if the daemon is stuck, so that the service manager restarts it.
func (d *Daemon) statusLine() (string, error) {
	accounting := d.sources.Accounting()
	line := fmt.Sprintf("%d spans received, %d dropped; %d flushed, %d unsent, %d pending",
		accounting.Received, accounting.DroppedTotal(), accounting.Flushed, accounting.Unsent, accounting.Pending)
	return line, d.statusServer.Alive()
}

// drainSocket reads the spans that native clients have already written to the socket, for at most
// half of the grace period. It logs a warning if it has not read all of them.
func (d *Daemon) drainSocket(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, d.config.ShutdownGrace/2)
	defer cancel()
	if err := d.ingest.Drain(ctx); err != nil {
		d.config.Log.Warn("not all spans that clients had written were read within the grace period", "error", err)
	}
}

// drainHTTP waits until all HTTP receivers have answered the requests in flight, but at most a
// quarter of the grace period. It logs a warning for each receiver with unanswered requests.
func (d *Daemon) drainHTTP(ctx context.Context) {
	maxWait := d.config.ShutdownGrace / 4
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	var draining sync.WaitGroup
	for _, server := range d.receivers {
		draining.Go(func() {
			if err := server.Drain(ctx); err != nil {
				d.config.Log.Warn("not all HTTP requests were answered within the grace period", "error", err)
			}
		})
	}
	draining.Wait()
}
