package daemon

import (
	"context"
	"errors"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/flush"
	"github.com/spanstatsd/spanstatsd/internal/flush/agent"
	"github.com/spanstatsd/spanstatsd/internal/flush/totals"
	"github.com/spanstatsd/spanstatsd/internal/health"
	"github.com/spanstatsd/spanstatsd/internal/ingest"
	"github.com/spanstatsd/spanstatsd/internal/socket"
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

// makeFlush makes the destinations, the agent first.
func (d *Daemon) makeFlush(config Config) (err error) {
	exporters := config.Exporters
	if !config.Agent.Off() {
		config.Agent.Version, config.Agent.Log = config.Version, config.Log
		if d.agent, err = agent.New(config.Agent); err != nil {
			return err
		}
		exporters = append([]flush.Exporter{d.agent}, exporters...)
	}
	for _, x := range exporters {
		if keeps, is := x.(totalsKeeper); is {
			keeps.LimitTotals(config.totals())
		}
	}
	config.Flush.Log = config.Log
	d.flusher, err = flush.New(config.Flush, exporters...)
	return err
}

// totalsKeeper is an exporter that may keep running totals.
type totalsKeeper interface{ LimitTotals(limits totals.Limits) }

// makeRest makes what stands before the flush.
func (d *Daemon) makeRest(config Config) (err error) {
	config.Aggregate = config.counting()
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

// makeHealth makes what shows the rest, and finds out how the daemon before this one
// ended.
func (d *Daemon) makeHealth(config Config) (err error) {
	if d.running, err = socket.NewRunning(config.Ingest.Socket.Path); err != nil {
		return err
	}
	d.sources.Ingest, d.sources.Admit, d.sources.Aggregate = d.ingest, d.admit, d.aggregate
	d.sources.Flush, d.sources.Agent, d.sources.Exemplars = d.flusher, d.agent, config.Exemplars
	d.health, err = health.New(health.Config{
		Addr: config.HTTPAddr, Hosts: config.HTTPHosts, WebConfigFile: config.WebConfigFile,
		Debug:   config.Debug,
		Version: config.Version, FlushInterval: config.Aggregate.FlushInterval,
		Settings: config.Settings, OTLPForward: config.OTLP.Forward.String(),
		Limits: health.Limits{
			Aggregates: config.Aggregate.MaxAggregates, Origins: config.Aggregate.MaxOrigins,
			Connections: config.Ingest.MaxConnections, APMConnections: config.APM.MaxConnections,
			OTLPConnections: config.OTLP.MaxConnections,
		},
		Memory: config.Memory(), MemoryLimit: config.MemoryLimit,
		Sources: d.sources, Log: config.Log, LogLinesLost: config.LogLinesLost, Died: func() int {
			return d.died
		},
	})
	if err != nil {
		return errors.Join(err, d.running.Done())
	}
	d.countDead(config)
	return nil
}

// countDead is the last that can be done before a start: once counted, nobody finds those
// that died again.
func (d *Daemon) countDead(config Config) {
	var unknown error
	if d.died, unknown = socket.RemoveDead(config.Ingest.Socket.Path); unknown != nil {
		config.Log.Warn("of a daemon before this one nobody can tell whether it ended without its books",
			"error", unknown)
	}
	if d.died > 0 {
		config.Log.Warn("the daemon before this one ended without its books: what it held is lost, and "+
			"counted by nobody; look for a SIGKILL, for want of memory or after the grace", "daemons", d.died)
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
