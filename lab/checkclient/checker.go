package checkclient

import (
	"sync/atomic"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/ingest"
)

// Checker reports what tracers send. It applies the limits of a daemon with default flags.
type Checker struct {
	config  Config
	printer printer
	read    ingest.Config
	admit   admit.Config
	unwell  atomic.Int64 // number of connections with an error
	death   *death       // nil if the daemon's crash is not simulated
}

// New returns a Checker.
func New(config Config) *Checker {
	c := &Checker{
		config: config, printer: printer{config: &config}, read: ingest.DefaultConfig(),
		admit: admit.DefaultConfig(),
	}
	if config.Dies {
		c.death = new(death)
	}
	return c
}
