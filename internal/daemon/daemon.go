package daemon

import (
	"context"
	"sync"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/agent"
	"github.com/spanstatsd/spanstatsd/internal/ingest"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver"
	"github.com/spanstatsd/spanstatsd/internal/recovery"
	"github.com/spanstatsd/spanstatsd/internal/status"
)

// Daemon is one running program.
type Daemon struct {
	config    Config
	flusher   *export.Flusher
	agent     *agent.Exporter // nil where there is none
	aggregate *aggregate.Aggregator
	admit     *admit.Publishers
	ingest    *ingest.Server
	doors     []openDoor
	health    *status.Server
	scraped   *status.Server // at an address of its own; nil where there is none
	sources   status.Sources

	running *recovery.File
	died    int // daemons before this one that were killed

	stopping chan struct{}
	watching sync.WaitGroup
}

// openDoor is one that is on.
type openDoor interface {
	shownDoor
	Start()
	Drain(ctx context.Context) error
	Abandon()
}

// shownDoor is one of which there is something to show.
type shownDoor interface {
	Status() receiver.Status
	Unreachable() error
}

// Books are what became of every span so far.
func (d *Daemon) Books() status.Books { return d.sources.Books() }

// Status is what /status answers.
func (d *Daemon) Status() status.Status { return d.health.Status() }

// HTTPAddr is where metrics and probes are answered.
func (d *Daemon) HTTPAddr() string { return d.health.Addr() }
