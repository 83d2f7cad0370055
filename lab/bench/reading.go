package bench

import (
	"time"

	"github.com/spanstatsd/spanstatsd/internal/status"
	"github.com/spanstatsd/spanstatsd/lab/bench/measure"
)

// run is the state of a running measurement.
type run struct {
	config Config
	target *target
	report *Report
	before reading // reading when the tracers receive the start signal
	warm   reading // reading at the end of the warm-up
}

// reading is a snapshot of all figures of a daemon at one time.
type reading struct {
	at         time.Time
	cpu        measure.CPU
	metrics    metrics
	accounting status.Accounting
}

// read takes a reading of the daemon. It also works after a signal has ended the load.
func (r *run) read() (n reading, err error) {
	if n.metrics, err = scrape(r.target.http); err != nil {
		return n, err
	}
	if n.accounting, err = readAccounting(r.target.http); err != nil {
		return n, err
	}
	n.at = time.Now()
	n.cpu, err = measure.CPUOf(r.target.pid)
	return n, err
}
