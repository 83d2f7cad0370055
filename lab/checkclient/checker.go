package checkclient

import (
	"sync/atomic"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/ingest"
)

// Checker tells what tracers send, with the limits of a daemon that nobody has configured.
type Checker struct {
	config  Config
	printer printer
	read    ingest.Config
	admit   admit.Config
	unwell  atomic.Int64 // connections
	death   *death       // nil: the daemon does not die
}

// New makes a checker.
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
