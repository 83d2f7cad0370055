package daemon

import (
	"log/slog"
	"slices"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/door/datadog"
	"github.com/spanstatsd/spanstatsd/internal/door/otlp"
	"github.com/spanstatsd/spanstatsd/internal/door/zipkin"
	"github.com/spanstatsd/spanstatsd/internal/exemplars"
	"github.com/spanstatsd/spanstatsd/internal/flush"
	"github.com/spanstatsd/spanstatsd/internal/flush/agent"
	"github.com/spanstatsd/spanstatsd/internal/flush/prometheus"
	"github.com/spanstatsd/spanstatsd/internal/health"
	"github.com/spanstatsd/spanstatsd/internal/ingest"
	"github.com/spanstatsd/spanstatsd/internal/memory"
	"github.com/spanstatsd/spanstatsd/internal/sketch"
	"github.com/spanstatsd/spanstatsd/internal/systemd"
)

// Config is the rooms' configurations and what concerns them all.
type Config struct {
	Ingest         ingest.Config
	Admit          admit.Config
	Aggregate      aggregate.Config
	Flush          flush.Config
	Agent          agent.Config
	Exporters      []flush.Exporter     // of the destinations that something is sent to, without the agent
	NativeBuckets  int                  // of a histogram that is scraped, at most
	Prometheus     *prometheus.Exporter // that is scraped; nil: none
	Exemplars      *exemplars.Table     // that they share with what hands traces on; nil: nobody wants any
	APM            datadog.Config
	OTLP           otlp.Config // that is taken; what is sent is an exporter's
	Zipkin         zipkin.Config
	HTTPAddr       string
	PrometheusAddr string           // where Prometheus is scraped instead of there, "" for there
	HTTPHosts      []string         // more names that its page and status answer to
	WebConfigFile  string           // TLS and basic auth of the HTTP address
	Debug          bool             // what only a developer asks for
	Settings       []health.Setting // the values above as the operator gave them
	MemoryLimit    memory.Limit     // that all of it must fit
	Preset         string           // name of the defaults that were chosen for MemoryLimit
	ShutdownGrace  time.Duration

	DescriptorLimit uint64 // files that the process may open, 0 if nobody knows

	Version      string
	Log          *slog.Logger
	LogLinesLost func() uint64       // what Log could not write, or nil
	Supervisor   *systemd.Supervisor // who started us and wants to hear how we are, or nil
}

// DefaultConfig is the defaults of the command line.
func DefaultConfig() Config {
	return Config{
		Ingest: ingest.DefaultConfig(), Admit: admit.DefaultConfig(), Aggregate: aggregate.DefaultConfig(),
		Flush:         flush.Config{RetryBytes: flush.DefaultRetryBytes, RetryAge: flush.DefaultRetryAge},
		NativeBuckets: sketch.DefaultMaxBuckets,
		APM:           datadog.DefaultConfig(), OTLP: otlp.DefaultConfig(), Zipkin: zipkin.DefaultConfig(),
		HTTPAddr: ":9126", MemoryLimit: memory.None, Preset: presets[0].name,
		ShutdownGrace: 5 * time.Second, Log: slog.Default(),
	}
}

// destinations is how many there are that something is sent to.
func (c *Config) destinations() int {
	n := len(c.Exporters)
	if !c.Agent.Off() {
		n++
	}
	return n
}

// exporters are those of all destinations except the agent, the one that is scraped last.
func (c *Config) exporters() []flush.Exporter {
	all := slices.Clone(c.Exporters)
	if c.Prometheus != nil {
		all = append(all, c.Prometheus.Describe())
	}
	return all
}
