package daemon

import (
	"fmt"
	"net"
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/export/agent"
	"github.com/spanstatsd/spanstatsd/internal/memory"
	"github.com/spanstatsd/spanstatsd/internal/status"
)

// typicalMemory is logged next to the worst case, which no known traffic reaches. `make test-requests` checks that a
// daemon with all receivers stays within the 32 MiB that the manifests request.
const typicalMemory = "28 MiB at 1,000 spans per second"

// announce logs the receivers, limits and destinations at startup. If the operator has set no flag
// and no environment variable, it also logs the first steps of a new user.
func (d *Daemon) announce() {
	d.logConfig()
	settings := d.config.Settings // empty in a daemon without a command line, for example in a test
	hasDefaultsOnly := len(settings) > 0 && !slices.ContainsFunc(settings, isChosen)
	if hasDefaultsOnly {
		d.logFirstSteps()
	}
}

// logConfig logs the receivers, limits and destinations.
func (d *Daemon) logConfig() {
	c := &d.config
	c.Log.Info("listening for clients",
		"socket", c.Ingest.Socket.Path, "http", d.statusServer.Addr(),
		"drainers", d.aggregator.Drainers(), "ring_slots", c.Aggregate.RingSlots,
		"max_aggregates", c.Aggregate.MaxAggregates, "max_aggregates_from", c.maxAggregatesOrigin(),
		"max_connections", c.Ingest.MaxConnections,
		"retry_bytes", memory.SizeText(c.Flush.RetryBytes), "memory_worst_case", memory.Text(c.Memory().Total),
		"memory_typical", typicalMemory,
		"memory_preset", c.Preset,
		"version", c.Version,
		"see", "spanstatsd status, or / on the http address; more with --log-level=debug")
	c.Log.Info("exporting statistics", d.destinationAttrs()...)
	if c.Ingest.Socket.Private {
		c.Log.Info("using a socket in a directory of this user, because the default directory does not exist or "+
			"is not writable", "socket", c.Ingest.Socket.Path)
	}
}

// logFirstSteps logs how to send spans to the daemon, and how to see the results.
func (d *Daemon) logFirstSteps() {
	log := d.config.Log
	log.Info("to count the spans of an application with an OpenTelemetry SDK",
		"run", "spanstatsd run --otlp-addr 127.0.0.1:4318",
		"and_the_application_with", "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 "+
			"OTEL_METRICS_EXPORTER=none OTEL_LOGS_EXPORTER=none")
	log.Info("to count the spans of a program with the Go or Java client",
		"run_the_program_with", "SPANSTATSD_SOCKET="+d.config.Ingest.Socket.Path)
	_, port, _ := net.SplitHostPort(d.statusServer.Addr())
	log.Info("to see the results", "open", "http://127.0.0.1:"+port+"/", "or_run", "spanstatsd status")
}

// destinationAttrs returns the names and URLs of the destinations as log attributes.
func (d *Daemon) destinationAttrs() (attrs []any) {
	for _, destination := range d.flusher.Destinations() {
		if d.config.Agent.AutoDiscovered && destination.Name() == agent.Name {
			attrs = append(attrs, "auto_discovery", destination.Name()+" at "+destination.URL())
		} else {
			attrs = append(attrs, destination.Name(), destination.URL())
		}
	}
	return attrs
}

// isChosen reports whether the operator has set a value by a flag or an environment variable.
func isChosen(s status.Setting) bool {
	return s.Origin == status.FromFlag || s.Origin == status.FromEnvironment
}

// maxAggregatesOrigin returns a text for the log that says where the value of --max-aggregates comes from, for
// example "flag", "default", or the memory limit from which it was computed.
func (c *Config) maxAggregatesOrigin() string {
	i := slices.IndexFunc(c.Settings, func(s status.Setting) bool { return s.Name == maxAggregatesFlag })
	if i < 0 {
		return status.FromDefault
	}
	origin := c.Settings[i].Origin
	if origin == status.FromMemory {
		return fmt.Sprintf("%s of %s", c.MemoryLimit.Source, memory.Text(c.MemoryLimit.Bytes))
	}
	return origin
}
