package daemon

import (
	"github.com/spanstatsd/spanstatsd/internal/door"
	"github.com/spanstatsd/spanstatsd/internal/door/datadog"
	"github.com/spanstatsd/spanstatsd/internal/door/otlp"
	"github.com/spanstatsd/spanstatsd/internal/memory"
)

// doorKind is an API that traces come by over HTTP. All that the daemon does with any of them it does
// by this.
type doorKind struct {
	name string // the first word of its flags
	// common is the configuration that it shares with the others, and config all of it, as far as the
	// configuration of other rooms decides.
	common func(c *Config) *door.Config
	config func(c *Config) doorConfig
	// open opens it, and has the daemon's health show it.
	open func(d *Daemon, c *Config) (openDoor, error)
}

// doorConfig is the whole configuration of one.
type doorConfig interface {
	Enabled() bool
	Check() error
	Memory(publisher int) []memory.Part
	LeastBodyBytes() int // which --...-max-body-bytes must allow
	Forwards() int       // connections to who is behind, at most
}

// doorKinds are all that there are, in the order in which they are opened.
var doorKinds = []doorKind{
	{
		"apm", func(c *Config) *door.Config { return &c.APM.Config },
		func(c *Config) doorConfig { return traces(c) }, openTraces,
	},
	{
		"otlp", func(c *Config) *door.Config { return &c.OTLP.Config },
		func(c *Config) doorConfig { return openTelemetry(c) }, openOTLP,
	},
}

// Doors are the configurations of all doors, by the first word of their flags.
func (c *Config) Doors() map[string]*door.Config {
	all := map[string]*door.Config{}
	for _, k := range doorKinds {
		all[k.name] = k.common(c)
	}
	return all
}

// traces is the configuration of the agent's API towards tracers: it needs no more
// origins than an interval has room for.
func traces(c *Config) *datadog.Config {
	taken := c.APM
	taken.MaxOrigins, taken.Exemplars = c.Aggregate.MaxOrigins, c.Exemplars
	return &taken
}

func openTraces(d *Daemon, config *Config) (openDoor, error) {
	c := traces(config)
	d.share(config, &c.Config)
	c.Agent = door.Behind{Network: config.Agent.URL.Network, Address: config.Agent.URL.Address}
	c.Features = func() (door.Features, <-chan struct{}) { return featuresOf(d.agent.WatchFeatures()) }
	s, err := datadog.New(*c)
	d.sources.APM = s
	return s, err
}

// openTelemetry is the same of what takes OTLP.
func openTelemetry(c *Config) *otlp.Config {
	taking := c.OTLP
	taking.MaxOrigins = c.Aggregate.MaxOrigins
	if taking.Forward.IsSet() {
		taking.Exemplars = c.Exemplars
	}
	return &taking
}

func openOTLP(d *Daemon, config *Config) (openDoor, error) {
	c := openTelemetry(config)
	d.share(config, &c.Config)
	c.Features = func() (door.Features, <-chan struct{}) { return featuresOf(d.wanted()) }
	s, err := otlp.New(*c)
	d.sources.OTLP = s
	return s, err
}

// share gives a door what it has in common with our own socket: the users who may connect to that
// may connect to its socket.
func (d *Daemon) share(config *Config, c *door.Config) {
	own := c.Socket
	c.Socket = config.Ingest.Socket
	c.Socket.Path, c.Socket.Given = own.Path, own.Given
	c.AllowUIDs, c.Admit, c.Log = config.Ingest.AllowUIDs, d.admit, config.Log
}

// makeDoors opens those that are on.
func (d *Daemon) makeDoors(config *Config) error {
	for _, k := range doorKinds {
		if !k.common(config).Enabled() {
			continue
		}
		opened, err := k.open(d, config)
		if err != nil {
			d.abandonDoors()
			return err
		}
		d.doors = append(d.doors, opened)
	}
	return nil
}

// abandonDoors gives back what was opened where the daemon can't be made.
func (d *Daemon) abandonDoors() {
	for _, opened := range d.doors {
		opened.Abandon()
	}
}
