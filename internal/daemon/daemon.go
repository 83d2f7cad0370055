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

// Daemon connects all components of the program.
type Daemon struct {
	config       Config
	flusher      *export.Flusher
	agent        *agent.Exporter // nil if disabled
	aggregator   *aggregate.Aggregator
	admit        *admit.Publishers
	ingest       *ingest.Server
	receivers    []receiverServer
	statusServer *status.Server
	scrapeServer *status.Server // server for scrapes; nil unless configured on an address of its own
	sources      status.Sources

	recoveryFile *recovery.File

	stopping   chan struct{}
	settled    chan struct{} // closed when every span has its outcome, and the recovery file is removed
	background sync.WaitGroup
}

// receiverServer is an enabled receiver.
type receiverServer interface {
	receiverStatus
	Start()
	Drain(ctx context.Context) error
	Abandon()
}

// receiverStatus is a receiver whose statistics are shown, whether it is enabled or not.
type receiverStatus interface {
	Status() receiver.Status
	Unreachable() error
}

// Accounting returns the accounting of all spans so far.
func (d *Daemon) Accounting() status.Accounting { return d.sources.Accounting() }

// Status returns the content of /status.
func (d *Daemon) Status() status.Status { return d.statusServer.Status() }

// HTTPAddr returns the address of metrics and probes.
func (d *Daemon) HTTPAddr() string { return d.statusServer.Addr() }
