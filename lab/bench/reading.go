package bench

import (
	"time"

	"github.com/spanstatsd/spanstatsd/internal/status"
	"github.com/spanstatsd/spanstatsd/lab/bench/measure"
)

// run is one measurement under way.
type run struct {
	config Config
	target *target
	report *Report
	before reading // when the tracers may start
	warm   reading // when the costs begin to count
}

// reading is everything that can be read of a daemon at one moment.
type reading struct {
	at      time.Time
	cpu     measure.CPU
	metrics metrics
	books   status.Books
}

// read looks at the daemon, even when a signal has ended the load.
func (r *run) read() (n reading, err error) {
	if n.metrics, err = scrape(r.target.http); err != nil {
		return n, err
	}
	if n.books, err = books(r.target.http); err != nil {
		return n, err
	}
	n.at = time.Now()
	n.cpu, err = measure.CPUOf(r.target.pid)
	return n, err
}
