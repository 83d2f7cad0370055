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

// DefaultConfig returns the configuration of a daemon that is started without flags.
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

// pushDestinations returns the number of destinations to which the daemon sends statistics: the
// exporters, and the Datadog agent unless it is off.
func (c *Config) pushDestinations() int {
	n := len(c.Exporters)
	if !c.Agent.Off() {
		n++
	}
	return n
}

// exporters returns all destinations except the agent. The one that Prometheus scrapes is the last.
func (c *Config) exporters() []export.Exporter {
	all := slices.Clone(c.Exporters)
	if c.Prometheus != nil {
		all = append(all, c.Prometheus.Describe())
	}
	return all
}

// gridFor returns the duration buckets in which the aggregator counts spans. Without exporters,
// these are the buckets of the Datadog agent's sketches. Otherwise each bucket lies within one
// bucket of every exporter's histograms, so that counts can be converted exactly.
func gridFor(exporters []export.Exporter) (*sketch.Grid, error) {
	if len(exporters) == 0 {
		return sketch.AgentGrid(), nil
	}
	return sketch.GridWith(classicBounds(exporters))
}

// classicBounds returns the sorted bounds of the classic histogram buckets of all exporters, without
// duplicates.
func classicBounds(exporters []export.Exporter) (bounds []float64) {
	for _, exporter := range exporters {
		bounds = append(bounds, exporter.Bounds...)
	}
	slices.Sort(bounds)
	return slices.Compact(bounds)
}

const (
	// processDescriptors is the number of file descriptors that do not depend on the configuration: the
	// log, listeners and their lock files, the Go runtime, and files being read. The process needs about
	// twenty; the rest is a margin.
	processDescriptors = 40
	// destinationDescriptors is the number of file descriptors per push destination, for connections and
	// DNS lookups.
	destinationDescriptors = export.MaxConnections + 2
	// receiverListeners is the maximum number of listeners of an HTTP receiver: a Unix and a TCP socket.
	receiverListeners = 2
)

// connectionDescriptors returns the maximum number of file descriptors for the connections of a server. The server
// accepts one connection more than its maximum, and then closes it.
func connectionDescriptors(maxConnections int) int { return maxConnections + 1 }

// Descriptors returns the maximum number of file descriptors that the daemon needs with the
// configuration, for example if all connection limits are reached.
func (c *Config) Descriptors() int {
	total := processDescriptors
	total += c.pushDestinations() * destinationDescriptors
	total += connectionDescriptors(c.Ingest.MaxConnections) // of native clients
	total += connectionDescriptors(status.MaxConnections)
	hasScrapeServer := c.PrometheusAddr != ""
	if hasScrapeServer {
		total += connectionDescriptors(status.MaxConnections)
	}
	for _, kind := range receiverKinds {
		common := kind.commonConfig(c)
		if common.Enabled() {
			upstreamConnections := kind.config(c).MaxUpstreamConnections()
			total += receiverListeners + connectionDescriptors(common.MaxConnections) + upstreamConnections
		}
	}
	return total
}

// connectionLimits returns the flags that limit the number of client connections: one for the native
// protocol, and one for each enabled HTTP receiver.
func (c *Config) connectionLimits() []string {
	flags := []string{"max-connections"}
	for _, kind := range receiverKinds {
		if kind.commonConfig(c).Enabled() {
			flags = append(flags, kind.name+"-max-connections")
		}
	}
	return flags
}

// minConnections is the lowest connection limit that FitDescriptors sets.
const minConnections = 16

// FitDescriptors lowers connection limits until the daemon needs at most the given number of file descriptors,
// or until no limit can be lowered. It does not change limits that the operator has set. It returns the flags
// of the lowered limits.
func FitDescriptors(c *Config, descriptors uint64, isSetByOperator func(flag string) bool) (changed []string) {
	c.DescriptorLimit = descriptors
	isKnown := descriptors > 0
	if !isKnown {
		return nil
	}
	flags := slices.DeleteFunc(c.connectionLimits(), isSetByOperator)
	for uint64(c.Descriptors()) > descriptors {
		flag, limit := c.largestLimit(flags)
		if limit == nil || *limit <= minConnections {
			break
		}
		*limit = max(minConnections, *limit/2)
		if !slices.Contains(changed, flag) {
			changed = append(changed, flag)
		}
	}
	return changed
}

// largestLimit returns the flag with the largest limit, and a pointer to that limit. It returns a nil
// pointer if flags is empty.
func (c *Config) largestLimit(flags []string) (largestFlag string, largest *int) {
	limits := c.limits()
	for _, flag := range flags {
		limit := limits[flag]
		if largest == nil || *limit > *largest {
			largestFlag, largest = flag, limit
		}
	}
	return largestFlag, largest
}

// checkDescriptors returns an error if the daemon may need more file descriptors than the process
// may open. It returns nil if either number is unknown.
func (c *Config) checkDescriptors() error {
	needed := c.Descriptors()
	isOverflow := needed < 0 // because of a connection limit that checkComponents rejects
	isLimitKnown := c.DescriptorLimit > 0
	if isOverflow || !isLimitKnown {
		return nil
	}
	if uint64(needed) <= c.DescriptorLimit {
		return nil
	}
	return fmt.Errorf("check file descriptors: connections, deliveries and probes may need %d, and the process "+
		"may open %d; raise the limit (ulimit -n, LimitNOFILE) or lower "+
		"--%s", needed, c.DescriptorLimit, strings.Join(c.connectionLimits(), " or --"))
}
