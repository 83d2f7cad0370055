package daemon

import (
	"github.com/spanstatsd/spanstatsd/internal/ingest/datadog"
	"github.com/spanstatsd/spanstatsd/internal/ingest/otlp"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver/destination"
	"github.com/spanstatsd/spanstatsd/internal/ingest/zipkin"
	"github.com/spanstatsd/spanstatsd/internal/memory"
	"github.com/spanstatsd/spanstatsd/internal/recovery"
	"github.com/spanstatsd/spanstatsd/internal/status"
)

// doorKind is an API that traces come by over HTTP. All that the daemon does with any of them it does
// by this.
type doorKind struct {
	name   string // the first word of its flags
	brings string // what comes by it, in words
	// common is the configuration that it shares with the others, and config all of it, as far as the
	// configuration of other rooms decides.
	common func(c *Config) *receiver.Config
	config func(c *Config) doorConfig
	// forward is its upstream; nil: the agent.
	forward func(c *Config) *destination.URL
	open    func(d *Daemon, c *Config) (openDoor, error)
	off     shownDoor // a nil server, of a door that is off
}

// doorConfig is the whole configuration of one.
type doorConfig interface {
	Enabled() bool
	Check() error
	Memory(publisher int) []memory.Part
	LeastBodyBytes() int // which --...-max-body-bytes must allow
	Forwards() int       // maximum number of connections to the upstream
}

// doorKinds are all that there are, in the order in which they are opened.
var doorKinds = []doorKind{
	{
		name: "apm", brings: "the agent's API", open: openTraces, off: (*datadog.Server)(nil),
		common: func(c *Config) *receiver.Config { return &c.APM.Config },
		config: func(c *Config) doorConfig { return traces(c) },
	},
	{
		name: "otlp", brings: "OTLP", open: openOTLP, off: (*otlp.Server)(nil),
		common:  func(c *Config) *receiver.Config { return &c.OTLP.Config },
		config:  func(c *Config) doorConfig { return openTelemetry(c) },
		forward: func(c *Config) *destination.URL { return &c.OTLP.Forward.URL },
	},
	{
		name: "zipkin", brings: "Zipkin", open: openZipkin, off: (*zipkin.Server)(nil),
		common:  func(c *Config) *receiver.Config { return &c.Zipkin.Config },
		config:  func(c *Config) doorConfig { return zipkinTaking(c) },
		forward: func(c *Config) *destination.URL { return &c.Zipkin.Forward },
	},
}

// Doors are the configurations of all doors, by the first word of their flags.
func (c *Config) Doors() map[string]*receiver.Config {
	all := map[string]*receiver.Config{}
	for _, k := range doorKinds {
		all[k.name] = k.common(c)
	}
	return all
}

// HandsOn reports whether traces are forwarded, so that their spans may be exemplars.
func HandsOn(c *Config) bool {
	for _, k := range doorKinds {
		if d := k.config(c); d.Enabled() && d.Forwards() > 0 {
			return true
		}
	}
	return false
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
	d.share(config, &c.Config, recovery.APM)
	c.Agent = receiver.Upstream{Network: config.Agent.URL.Network, Address: config.Agent.URL.Address}
	c.Features = func() (receiver.Features, <-chan struct{}) { return featuresOf(d.agent.WatchFeatures()) }
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
	d.share(config, &c.Config, recovery.OTLP)
	c.Features = func() (receiver.Features, <-chan struct{}) { return featuresOf(d.wanted()) }
	s, err := otlp.New(*c)
	d.sources.OTLP = s
	return s, err
}

// zipkinTaking is the same of what takes Zipkin's spans.
func zipkinTaking(c *Config) *zipkin.Config {
	taking := c.Zipkin
	taking.MaxOrigins = c.Aggregate.MaxOrigins
	if taking.Forward.IsSet() {
		taking.Exemplars = c.Exemplars
	}
	return &taking
}

func openZipkin(d *Daemon, config *Config) (openDoor, error) {
	c := zipkinTaking(config)
	d.share(config, &c.Config, recovery.Zipkin)
	return zipkin.New(*c)
}

// share gives a door what it has in common with our own socket: the users who may connect to that
// may connect to its socket.
func (d *Daemon) share(config *Config, c *receiver.Config, by recovery.Door) {
	own := c.Socket
	c.Socket = config.Ingest.Socket
	c.Socket.Path, c.Socket.Inherited, c.Socket.Private = own.Path, own.Inherited, own.Private
	c.AllowUIDs, c.Admit, c.Log = config.Ingest.AllowUIDs, d.admit, config.Log
	c.OnAck = func(cycle, spans uint64) { d.running.Count(cycle, by, spans) }
}

// makeDoors opens those that are on, and has the daemon's health show all.
func (d *Daemon) makeDoors(config *Config) error {
	for _, k := range doorKinds {
		in := k.common(config)
		shown := status.DoorSource{
			Name: k.name, Brings: k.brings, IsOn: in.Enabled(), MaxConnections: in.MaxConnections, Of: k.off,
		}
		if k.forward != nil {
			shown.Forward = k.forward(config).String()
		}
		if shown.IsOn {
			opened, err := k.open(d, config)
			if err != nil {
				d.abandonDoors()
				return err
			}
			d.doors, shown.Of = append(d.doors, opened), opened
		}
		d.sources.Doors = append(d.sources.Doors, shown)
	}
	return nil
}

// abandonDoors gives back what was opened where the daemon can't be made.
func (d *Daemon) abandonDoors() {
	for _, opened := range d.doors {
		opened.Abandon()
	}
}
