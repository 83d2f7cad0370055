package daemon

import (
	"errors"

	"github.com/spanstatsd/spanstatsd/internal/ingest/datadog"
	"github.com/spanstatsd/spanstatsd/internal/ingest/otlp"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver/destination"
	"github.com/spanstatsd/spanstatsd/internal/ingest/zipkin"
	"github.com/spanstatsd/spanstatsd/internal/memory"
	"github.com/spanstatsd/spanstatsd/internal/recovery"
	"github.com/spanstatsd/spanstatsd/internal/status"
)

// receiverKind describes an HTTP receiver. The daemon handles all receivers by these descriptions.
type receiverKind struct {
	name     string // prefix of its flags
	receives string // what it receives, for users
	// common returns the part of the configuration that all receivers have. config returns all of it,
	// including fields that depend on other packages' configuration.
	common func(c *Config) *receiver.Config
	config func(c *Config) receiverConfig
	// forward returns its upstream. It is nil if that is the agent.
	forward func(c *Config) *destination.URL
	open    func(d *Daemon, c *Config) (receiverServer, error)
	off     receiverStatus // a nil server, for a disabled receiver
}

// receiverConfig is the configuration of a receiver.
type receiverConfig interface {
	Enabled() bool
	Check() error
	Memory(publisher int) []memory.Part
	LeastBodyBytes() int // minimum of --...-max-body-bytes
	Forwards() int       // maximum number of connections to the upstream
}

// receiverKinds are all receivers, in the order in which they are opened.
var receiverKinds = []receiverKind{
	{
		name: "apm", receives: "the agent's API", open: openDatadog, off: (*datadog.Server)(nil),
		common: func(c *Config) *receiver.Config { return &c.APM.Config },
		config: func(c *Config) receiverConfig { return datadogConfig(c) },
	},
	{
		name: "otlp", receives: "OTLP", open: openOTLP, off: (*otlp.Server)(nil),
		common:  func(c *Config) *receiver.Config { return &c.OTLP.Config },
		config:  func(c *Config) receiverConfig { return otlpConfig(c) },
		forward: func(c *Config) *destination.URL { return &c.OTLP.Forward.URL },
	},
	{
		name: "zipkin", receives: "Zipkin", open: openZipkin, off: (*zipkin.Server)(nil),
		common:  func(c *Config) *receiver.Config { return &c.Zipkin.Config },
		config:  func(c *Config) receiverConfig { return zipkinConfig(c) },
		forward: func(c *Config) *destination.URL { return &c.Zipkin.Forward },
	},
}

// Receivers returns the configurations of all receivers, by the prefix of their flags.
func (c *Config) Receivers() map[string]*receiver.Config {
	all := map[string]*receiver.Config{}
	for _, k := range receiverKinds {
		all[k.name] = k.common(c)
	}
	return all
}

// ForwardsTraces reports whether a receiver forwards traces, so that spans can be exemplars.
func ForwardsTraces(c *Config) bool {
	for _, k := range receiverKinds {
		if d := k.config(c); d.Enabled() && d.Forwards() > 0 {
			return true
		}
	}
	return false
}

// datadogConfig returns the configuration of the Datadog receiver. It needs no more origins than an
// interval can have.
func datadogConfig(c *Config) *datadog.Config {
	config := c.APM
	config.MaxOrigins, config.Exemplars = c.Aggregate.MaxOrigins, c.Exemplars
	return &config
}

// openDatadog opens the Datadog receiver, which forwards to the agent and uses its features.
func openDatadog(d *Daemon, config *Config) (receiverServer, error) {
	c := datadogConfig(config)
	d.applyCommon(config, &c.Config, recovery.APM)
	c.Agent = receiver.Upstream{Network: config.Agent.URL.Network, Address: config.Agent.URL.Address}
	c.Features = func() (receiver.Features, <-chan struct{}) { return receiverFeatures(d.agent.WatchFeatures()) }
	s, err := datadog.New(*c)
	d.sources.APM = s
	return s, err
}

// otlpConfig returns the configuration of the OTLP receiver.
func otlpConfig(c *Config) *otlp.Config {
	config := c.OTLP
	config.MaxOrigins = c.Aggregate.MaxOrigins
	if config.Forward.IsSet() {
		config.Exemplars = c.Exemplars
	}
	return &config
}

// openOTLP opens the OTLP receiver.
func openOTLP(d *Daemon, config *Config) (receiverServer, error) {
	c := otlpConfig(config)
	d.applyCommon(config, &c.Config, recovery.OTLP)
	c.Features = func() (receiver.Features, <-chan struct{}) { return receiverFeatures(d.wantedFeatures()) }
	s, err := otlp.New(*c)
	d.sources.OTLP = s
	return s, err
}

// zipkinConfig returns the configuration of the Zipkin receiver.
func zipkinConfig(c *Config) *zipkin.Config {
	config := c.Zipkin
	config.MaxOrigins = c.Aggregate.MaxOrigins
	if config.Forward.IsSet() {
		config.Exemplars = c.Exemplars
	}
	return &config
}

// openZipkin opens the Zipkin receiver.
func openZipkin(d *Daemon, config *Config) (receiverServer, error) {
	c := zipkinConfig(config)
	d.applyCommon(config, &c.Config, recovery.Zipkin)
	return zipkin.New(*c)
}

// applyCommon sets the fields of a receiver's configuration that follow from the rest of the
// daemon. Its socket has the permissions of the native socket, and the same users may connect.
func (d *Daemon) applyCommon(config *Config, c *receiver.Config, by recovery.Receiver) {
	own := c.Socket
	c.Socket = config.Ingest.Socket
	c.Socket.Path, c.Socket.Inherited, c.Socket.Private = own.Path, own.Inherited, own.Private
	c.AllowUIDs, c.Admit, c.Log = config.Ingest.AllowUIDs, d.admit, config.Log
	c.OnAck = func(cycle, spans uint64) { d.recoveryFile.Count(cycle, by, spans) }
}

// openReceivers opens the enabled receivers, and registers all receivers for status and metrics.
func (d *Daemon) openReceivers(config *Config) (err error) {
	for _, k := range receiverKinds {
		common := k.common(config)
		shown := status.ReceiverSource{
			Name: k.name, Receives: k.receives, IsOn: common.Enabled(), MaxConnections: common.MaxConnections, Of: k.off,
		}
		if k.forward != nil {
			shown.Forward = k.forward(config).String()
		}
		if shown.IsOn {
			if opened, failed := k.open(d, config); failed != nil {
				err = errors.Join(err, failed)
			} else {
				d.receivers, shown.Of = append(d.receivers, opened), opened
			}
		}
		d.sources.Receivers = append(d.sources.Receivers, shown)
	}
	return err
}
