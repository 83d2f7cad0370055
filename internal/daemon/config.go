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

// Config is the rooms' configurations and what concerns them all.
type Config struct {
	Ingest         ingest.Config
	Admit          admit.Config
	Aggregate      aggregate.Config
	Flush          export.Config
	Agent          agent.Config
	Exporters      []export.Exporter    // of the destinations that something is sent to, without the agent
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
	Settings       []status.Setting // the values above as the operator gave them
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
		Flush:         export.Config{RetryBytes: export.DefaultRetryBytes, RetryAge: export.DefaultRetryAge},
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
func (c *Config) exporters() []export.Exporter {
	all := slices.Clone(c.Exporters)
	if c.Prometheus != nil {
		all = append(all, c.Prometheus.Describe())
	}
	return all
}

// gridFor is the cells that durations are counted in for destinations beside the agent. Those have
// histograms, and some have classic buckets, so there are cells that give those exactly too.
func gridFor(exporters []export.Exporter) (*sketch.Grid, error) {
	if len(exporters) == 0 {
		return sketch.AgentGrid(), nil
	}
	return sketch.GridWith(boundsOf(exporters))
}

// boundsOf are those of the classic buckets of all of them.
func boundsOf(exporters []export.Exporter) (all []float64) {
	for _, x := range exporters {
		all = append(all, x.Bounds...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// ownDescriptors is what the process opens besides connections: its log, listeners and
// their locks, what the runtime waits with, and files while they are read; some twenty,
// and as many again.
const ownDescriptors = 40

// deliveryDescriptors are kept for what a destination is brought and asked, and for the
// names that lead to it.
const deliveryDescriptors = export.MaxConnections + 2

// doorDescriptors are what a door opens besides connections: two listeners, and one connection too many.
const doorDescriptors = 3

// Descriptors is how many file descriptors the configuration may come to use. Each
// listener closes what is over its limit, so one more of each may be open for a moment.
func (c *Config) Descriptors() int {
	n := ownDescriptors + c.destinations()*deliveryDescriptors + status.MaxConnections + 1 +
		c.Ingest.MaxConnections + 1
	if c.PrometheusAddr != "" {
		n += status.MaxConnections + 1
	}
	for _, k := range doorKinds {
		if d := k.config(c); d.Enabled() {
			n += k.common(c).MaxConnections + d.Forwards() + doorDescriptors
		}
	}
	return n
}

// connectionLimits are the flags that bound connections of senders.
func (c *Config) connectionLimits() []string {
	names := []string{"max-connections"}
	for _, k := range doorKinds {
		if k.common(c).Enabled() {
			names = append(names, k.name+"-max-connections")
		}
	}
	return names
}

// leastConnections is where making limits smaller ends; Check then says what to do.
const leastConnections = 16

// FitDescriptors halves the limits of connections, the larger first, until the process may open
// as many files as all of them together need. A limit that is set by hand stays. It returns the
// names of those that it has changed.
func FitDescriptors(c *Config, limit uint64, byHand func(limit string) bool) (changed []string) {
	c.DescriptorLimit = limit
	names := slices.DeleteFunc(c.connectionLimits(), byHand)
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

// checkDescriptors refuses limits that would leave no file descriptors for deliveries and probes. A limit of 0 is
// unknown. Counts that are too large to add up are refused by the packages that they belong to.
func (c *Config) checkDescriptors() error {
	need, limit := c.Descriptors(), c.DescriptorLimit
	if limit == 0 || need < 0 || uint64(need) <= limit {
		return nil
	}
	return fmt.Errorf("check descriptors: the connections that are allowed may need %d with what "+
		"deliveries and probes need, and the process may open %d; raise the limit (ulimit -n, LimitNOFILE) "+
		"or lower --%s", need, limit, strings.Join(c.connectionLimits(), " or --"))
}
