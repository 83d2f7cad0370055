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

// receiverKind describes one kind of HTTP receiver, for example the OTLP receiver.
type receiverKind struct {
	name     string // prefix of its flags
	receives string // human-readable name of the received data
	// commonConfig returns the part of the configuration that all receivers have.
	commonConfig func(c *Config) *receiver.Config
	// config returns the complete configuration, with the fields that depend on other packages.
	config func(c *Config) receiverConfig
	// forward returns the URL of the upstream. It is nil if the agent is the upstream.
	forward  func(c *Config) *destination.URL
	open     func(d *Daemon, c *Config) (receiverServer, error)
	disabled receiverStatus // nil pointer with the status of a disabled receiver
}

// receiverConfig has the methods of receivers' configurations that the daemon calls.
type receiverConfig interface {
	Enabled() bool
	Check() error
	Memory(publisher int) []memory.Part
	LeastBodyBytes() int         // minimum of --...-max-body-bytes
	MaxUpstreamConnections() int // maximum number of connections to the upstream
}

// receiverKinds are all receivers, in the order in which they are opened.
var receiverKinds = []receiverKind{
	{
		name: "apm", receives: "the agent's API", open: openDatadog, disabled: (*datadog.Server)(nil),
		commonConfig: func(c *Config) *receiver.Config { return &c.APM.Config },
		config:       func(c *Config) receiverConfig { return datadogConfig(c) },
	},
	{
		name: "otlp", receives: "OTLP", open: openOTLP, disabled: (*otlp.Server)(nil),
		commonConfig: func(c *Config) *receiver.Config { return &c.OTLP.Config },
		config:       func(c *Config) receiverConfig { return otlpConfig(c) },
		forward:      func(c *Config) *destination.URL { return &c.OTLP.Forward.URL },
	},
	{
		name: "zipkin", receives: "Zipkin", open: openZipkin, disabled: (*zipkin.Server)(nil),
		commonConfig: func(c *Config) *receiver.Config { return &c.Zipkin.Config },
		config:       func(c *Config) receiverConfig { return zipkinConfig(c) },
		forward:      func(c *Config) *destination.URL { return &c.Zipkin.Forward },
	},
}

// Receivers returns the configurations of all receivers, by the prefix of their flags.
func (c *Config) Receivers() map[string]*receiver.Config {
	all := map[string]*receiver.Config{}
	for _, kind := range receiverKinds {
		all[kind.name] = kind.commonConfig(c)
	}
	return all
}

// ForwardsTraces reports whether an enabled receiver forwards traces to an upstream. Only then are
// exemplars useful, because an exemplar refers to a trace that a user can look up there.
func ForwardsTraces(c *Config) bool {
	for _, kind := range receiverKinds {
		receiver := kind.config(c)
		hasUpstream := receiver.MaxUpstreamConnections() > 0
		if receiver.Enabled() && hasUpstream {
			return true
		}
	}
	return false
}

// datadogConfig returns the configuration of the Datadog receiver.
func datadogConfig(c *Config) *datadog.Config {
	config := c.APM
	config.MaxOrigins = c.Aggregate.MaxOrigins
	config.Exemplars = c.Exemplars
	return &config
}

// openDatadog opens the Datadog receiver, with the Datadog agent as its upstream.
func openDatadog(d *Daemon, config *Config) (receiverServer, error) {
	c := datadogConfig(config)
	d.applyCommon(config, &c.Config, recovery.APM)
	c.Agent = receiver.Upstream{Network: config.Agent.URL.Network, Address: config.Agent.URL.Address}
	c.Features = func() (receiver.Features, <-chan struct{}) {
		features, changed := d.agent.WatchFeatures()
		return receiverFeatures(features), changed
	}
	server, err := datadog.New(*c)
	d.sources.APM = server
	return server, err
}

// otlpConfig returns the configuration of the OTLP receiver. Exemplars are enabled only if traces are
// forwarded, because an exemplar refers to a forwarded trace.
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
	c.Features = func() (receiver.Features, <-chan struct{}) {
		features, changed := d.wantedFeatures()
		return receiverFeatures(features), changed
	}
	server, err := otlp.New(*c)
	d.sources.OTLP = server
	return server, err
}

// zipkinConfig returns the configuration of the Zipkin receiver. Exemplars are enabled only if traces
// are forwarded, because an exemplar refers to a forwarded trace.
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

// applyCommon completes the configuration c of an HTTP receiver with settings of the daemon. The receiver's
// Unix socket has the same permissions and allowed users as the socket of clients that send spans in the
// native protocol. The recovery file counts, under id, the spans for which the receiver has sent a response.
func (d *Daemon) applyCommon(daemonConfig *Config, c *receiver.Config, id recovery.Receiver) {
	native := &daemonConfig.Ingest
	c.AllowUIDs = native.AllowUIDs
	c.Socket.Mode = native.Socket.Mode
	c.Socket.Owner = native.Socket.Owner
	c.Socket.DirectoryMode = native.Socket.DirectoryMode
	c.Socket.DirectoryOwner = native.Socket.DirectoryOwner
	c.Admit = d.admit
	c.Log = daemonConfig.Log
	c.OnAck = func(cycle, spans, values uint64) {
		d.recoveryFile.Count(cycle, id, spans)
		d.recoveryFile.Count(cycle, recovery.OTLPValues, values) // 0 values if this is not the OTLP receiver
	}
}

// openReceivers opens the enabled receivers, and adds all receivers, also disabled ones, to the
// status and the metrics. It returns the joined errors of the receivers that can't be opened.
func (d *Daemon) openReceivers(config *Config) (joined error) {
	for _, kind := range receiverKinds {
		source := kind.source(config)
		if source.IsEnabled {
			server, err := kind.open(d, config)
			if err == nil {
				d.receivers = append(d.receivers, server)
				source.Server = server
			}
			joined = errors.Join(joined, err)
		}
		d.sources.Receivers = append(d.sources.Receivers, source)
	}
	return joined
}

// source describes a receiver, which is not open yet, for the status and the metrics.
func (kind *receiverKind) source(config *Config) status.ReceiverSource {
	common := kind.commonConfig(config)
	source := status.ReceiverSource{
		Name: kind.name, Receives: kind.receives, IsEnabled: common.Enabled(),
		MaxConnections: common.MaxConnections, Server: kind.disabled,
	}
	if kind.forward != nil {
		source.Forward = kind.forward(config).String()
	}
	return source
}
