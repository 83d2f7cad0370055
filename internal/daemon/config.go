package daemon

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/aggregate/exemplars"
	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
	"github.com/spanstatsd/spanstatsd/internal/daemon/systemd"
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/agent"
	"github.com/spanstatsd/spanstatsd/internal/export/prometheus"
	"github.com/spanstatsd/spanstatsd/internal/ingest"
	"github.com/spanstatsd/spanstatsd/internal/ingest/datadog"
	"github.com/spanstatsd/spanstatsd/internal/ingest/otlp"
	"github.com/spanstatsd/spanstatsd/internal/ingest/zipkin"
	"github.com/spanstatsd/spanstatsd/internal/memory"
	"github.com/spanstatsd/spanstatsd/internal/status"
)

// Config contains the configurations of all components, and what concerns several of them.
type Config struct {
	Ingest         ingest.Config
	Admit          admit.Config
	Aggregate      aggregate.Config
	Flush          export.Config
	Agent          agent.Config
	Exporters      []export.Exporter    // destinations of the push kind, except for the agent
	NativeBuckets  int                  // maximum number of native buckets per scraped histogram
	Prometheus     *prometheus.Exporter // nil disables scraping of statistics
	Exemplars      *exemplars.Table     // shared by receivers and exporters; nil disables exemplars
	APM            datadog.Config
	OTLP           otlp.Config // receiver; sending OTLP is configured in Exporters
	Zipkin         zipkin.Config
	HTTPAddr       string
	PrometheusAddr string           // address for scraping statistics; "" for HTTPAddr
	HTTPHosts      []string         // additional host names of the status page
	WebConfigFile  string           // TLS and basic auth for HTTPAddr
	Debug          bool             // serve /debug/pprof
	Settings       []status.Setting // flags with their values and origins, for status
	MemoryLimit    memory.Limit     // limit for the sum of all parts
	Preset         string           // name of the defaults chosen for MemoryLimit
	ShutdownGrace  time.Duration

	DescriptorLimit uint64 // maximum number of open files; 0 if unknown

	Version      string
	Log          *slog.Logger
	LogLinesLost func() uint64       // number of log lines that could not be written; can be nil
	FlushLog     func()              // waits until log lines are written; nil if they are written immediately
	Supervisor   *systemd.Supervisor // service manager; nil without systemd
}

// DefaultConfig returns the defaults of the command line.
func DefaultConfig() Config {
	return Config{
		Ingest: ingest.DefaultConfig(), Admit: admit.DefaultConfig(), Aggregate: aggregate.DefaultConfig(),
		Flush:         export.Config{RetryBytes: export.DefaultRetryBytes, RetryAge: export.DefaultRetryAge},
		NativeBuckets: sketch.DefaultMaxBuckets,
		APM:           datadog.DefaultConfig(), OTLP: otlp.DefaultConfig(), Zipkin: zipkin.DefaultConfig(),
		HTTPAddr: ":9126", MemoryLimit: memory.None, Preset: presets[0].name,
		ShutdownGrace: 5 * time.Second, Log: slog.Default(),
	}
}

// destinations returns the number of push destinations.
func (c *Config) destinations() int {
	n := len(c.Exporters)
	if !c.Agent.Off() {
		n++
	}
	return n
}

// exporters returns all destinations except the agent, with the scraped one last.
func (c *Config) exporters() []export.Exporter {
	all := slices.Clone(c.Exporters)
	if c.Prometheus != nil {
		all = append(all, c.Prometheus.Describe())
	}
	return all
}

// gridFor returns the cells in which durations are counted. With destinations other than the agent,
// they determine histograms and classic buckets exactly, in addition to the agent's bins.
func gridFor(exporters []export.Exporter) (*sketch.Grid, error) {
	if len(exporters) == 0 {
		return sketch.AgentGrid(), nil
	}
	return sketch.GridWith(boundsOf(exporters))
}

// boundsOf returns the bounds of the classic buckets of all exporters.
func boundsOf(exporters []export.Exporter) (all []float64) {
	for _, x := range exporters {
		all = append(all, x.Bounds...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// ownDescriptors is the number of file descriptors except for connections: the log, listeners and
// their locks, the runtime's, and files being read. There are about twenty, and a reserve of the
// same number.
const ownDescriptors = 40

// deliveryDescriptors is the number of file descriptors per destination, for connections and DNS
// lookups.
const deliveryDescriptors = export.MaxConnections + 2

// receiverDescriptors is the number of file descriptors of a receiver, except for connections: two
// listeners, and one connection over the limit.
const receiverDescriptors = 3

// Descriptors returns the maximum number of file descriptors of the configuration. Each listener
// closes connections over its limit, so each can have one more for a moment.
func (c *Config) Descriptors() int {
	n := ownDescriptors + c.destinations()*deliveryDescriptors + status.MaxConnections + 1 +
		c.Ingest.MaxConnections + 1
	if c.PrometheusAddr != "" {
		n += status.MaxConnections + 1
	}
	for _, k := range receiverKinds {
		if d := k.config(c); d.Enabled() {
			n += k.common(c).MaxConnections + d.Forwards() + receiverDescriptors
		}
	}
	return n
}

// connectionLimits returns the flags that limit connections of clients.
func (c *Config) connectionLimits() []string {
	names := []string{"max-connections"}
	for _, k := range receiverKinds {
		if k.common(c).Enabled() {
			names = append(names, k.name+"-max-connections")
		}
	}
	return names
}

// leastConnections is the lowest limit that FitDescriptors sets. If this is not enough, Check
// returns an error.
const leastConnections = 16

// FitDescriptors lowers limits of connections until the process needs at most limit file
// descriptors: it repeatedly halves the largest one. It does not change limits for which isSet
// returns true, because the operator has set them. It returns the names of the changed limits.
func FitDescriptors(c *Config, limit uint64, isSet func(limit string) bool) (changed []string) {
	c.DescriptorLimit = limit
	names := slices.DeleteFunc(c.connectionLimits(), isSet)
	limits := c.limits()
	for limit > 0 && uint64(c.Descriptors()) > limit {
		largest := ""
		for _, name := range names {
			if *limits[name] > leastConnections && (largest == "" || *limits[name] > *limits[largest]) {
				largest = name
			}
		}
		if largest == "" {
			break
		}
		*limits[largest] = max(leastConnections, *limits[largest]/2)
		if !slices.Contains(changed, largest) {
			changed = append(changed, largest)
		}
	}
	return changed
}

// checkDescriptors returns an error if the process needs more file descriptors than it may open. It
// returns nil if the limit is unknown. It also returns nil if the number of descriptors overflows
// an int: then a limit of connections is invalid, which the package that owns the limit reports.
func (c *Config) checkDescriptors() error {
	need, limit := c.Descriptors(), c.DescriptorLimit
	isLimitUnknown, hasOverflowed := limit == 0, need < 0
	if isLimitUnknown || hasOverflowed || uint64(need) <= limit {
		return nil
	}
	return fmt.Errorf("check file descriptors: connections, deliveries and probes may need %d, and the process "+
		"may open %d; raise the limit (ulimit -n, LimitNOFILE) or lower "+
		"--%s", need, limit, strings.Join(c.connectionLimits(), " or --"))
}
