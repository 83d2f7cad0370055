package status

import (
	"os"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/prometheus"
	"github.com/spanstatsd/spanstatsd/internal/memory"
	"github.com/spanstatsd/spanstatsd/internal/recovery"
	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/routing"
)

// StatusSchema is the version of the JSON format in docs/status-api.md. Within a version fields can be
// added, but not removed, renamed or given another meaning.
const StatusSchema = 2

// Status is a snapshot of the daemon's state, for programs. Its size is bounded regardless of what
// clients send. The embedded sections have no names in JSON.
type Status struct {
	Schema int       `json:"schema"`
	At     time.Time `json:"at"`
	Process
	Spans
	Interval
	Senders
	Delivery
	Memory  Memory    `json:"memory"`
	Machine Machine   `json:"machine"`
	Config  []Setting `json:"config"`
}

// Process is the state of the process.
type Process struct {
	Version       string    `json:"version"`
	Started       time.Time `json:"started"`
	UptimeSeconds float64   `json:"uptime_seconds"`
	Ready         bool      `json:"ready"`
	NotReady      string    `json:"not_ready,omitempty"` // reason
	Crashed       int       `json:"crashed_predecessors"`
}

// Spans is the accounting of spans, with related counters.
type Spans struct {
	Accounting    Accounting        `json:"accounting"`
	Collapsed     map[string]uint64 `json:"collapsed"`
	Renamed       uint64            `json:"renamed"` // counted under a name by convention
	Late          uint64            `json:"late"`
	Early         uint64            `json:"early"`
	ClientLost    map[string]uint64 `json:"client_lost"`
	LostToCrashes recovery.Losses   `json:"lost_to_crashes"`
	Objectives    []Objective       `json:"objectives"`
}

// Objective is a service level objective with the number of spans that it has counted.
type Objective struct {
	Name   string  `json:"name"`
	Events float64 `json:"events"`
	Good   float64 `json:"good_events"`
}

// objectives returns the objectives in the order of their flags.
func (s *snapshot) objectives() []Objective {
	all := []Objective{}
	for _, o := range s.admit.Objectives {
		all = append(all, Objective{o.Name, o.Events, o.Good})
	}
	return all
}

// Memory is the maximum memory of the configuration, and the limit for it.
type Memory struct {
	Parts       []memory.Part `json:"parts"` // largest first
	TotalBytes  int64         `json:"total_bytes"`
	LimitBytes  int64         `json:"limit_bytes"` // 0 if unknown
	LimitSource string        `json:"limit_source,omitempty"`
	Preset      string        `json:"preset"` // name of the defaults chosen for the limit
}

// readStatus returns the current status of a daemon that was started at the given time.
func readStatus(c *Config, p *probes, started time.Time) Status {
	now := time.Now()
	s := c.Sources.snapshot()
	return Status{
		Schema: StatusSchema, At: now,
		Process: Process{
			Version: c.Version, Started: started, UptimeSeconds: now.Sub(started).Seconds(),
			Ready: p.ready.Load(), NotReady: p.notReady(), Crashed: c.Crashes(),
		},
		Spans: Spans{
			Accounting: s.accounting(), Collapsed: s.admit.Collapsed, Renamed: s.admit.Renamed, Late: s.lateSpans, Early: s.earlySpans,
			ClientLost: s.ingest.ClientLost, LostToCrashes: c.CrashLosses(), Objectives: s.objectives(),
		},
		Interval: interval(c, &s), Senders: senders(c, &s), Delivery: delivery(c, &s),
		Memory:  MemoryOf(c.Memory, c.MemoryLimit, c.Preset),
		Machine: readMachine(os.DirFS("/")),
		Config:  nonNil(c.Settings),
	}
}

// MemoryOf returns the maximum memory of a configuration, and the memory limit if it is known. preset is the name of the
// defaults that were chosen for the limit.
func MemoryOf(maximum memory.Budget, limit memory.Limit, preset string) Memory {
	m := Memory{Parts: nonNil(maximum.Parts), TotalBytes: maximum.Total, Preset: preset}
	if limit.Known() {
		m.LimitBytes = limit.Bytes
		m.LimitSource = limit.Source
	}
	return m
}

// Interval is the state of the current interval and its drainers.
type Interval struct {
	Cycle      Cycle          `json:"cycle"`
	Aggregates Bounded        `json:"aggregates"`
	Origins    Bounded        `json:"origins"`
	Drainers   []Drainer      `json:"drainers"`
	Partitions routing.Stats  `json:"partitions"`
	Busiest    export.Busiest `json:"busiest"` // busiest aggregates of the last interval with spans

	// Overflow is the last interval in which a label had more values than its budget allows; nil if there was none.
	Overflow *registry.Overflow `json:"overflow,omitempty"`

	ServiceGraph *prometheus.Graph `json:"service_graph,omitempty"` // nil without --service-graph or Prometheus
}

// Cycle is the state of the cycles.
type Cycle struct {
	Sealed          uint64    `json:"sealed"` // number of sealed cycles
	LastSeal        time.Time `json:"last_seal"`
	IntervalSeconds float64   `json:"interval_seconds"`
}

// Bounded is a count with its limit.
type Bounded struct {
	Live int `json:"live"`
	Max  int `json:"max"`
}

// Drainer is the state of one drainer and its ring.
type Drainer struct {
	Aggregated uint64 `json:"aggregated"`
	Ring       Ring   `json:"ring"`
}

// Ring is the current and the highest usage of one ring.
type Ring struct {
	Slots     int `json:"slots"`
	Used      int `json:"used"`
	HighWater int `json:"high_water"`
}

// interval returns the state of the current export interval.
func interval(c *Config, s *snapshot) Interval {
	a := &s.aggregate
	state := Interval{
		Cycle:      Cycle{Sealed: a.Sealed, LastSeal: a.LastSeal, IntervalSeconds: c.FlushInterval.Seconds()},
		Aggregates: Bounded{Live: a.Aggregates, Max: c.Limits.Aggregates},
		Origins:    Bounded{Live: a.Origins, Max: c.Limits.Origins},
		Partitions: a.Partitions,
		Drainers:   drainerStates(a.Drainers),
		Busiest:    c.Sources.Flush.Busiest(),
		Overflow:   a.Overflow,
	}
	// Lists in JSON are never null.
	state.Partitions.Drainers = nonNil(state.Partitions.Drainers)
	state.Partitions.Busiest = nonNil(state.Partitions.Busiest)
	if c.Sources.Prometheus != nil {
		state.ServiceGraph = c.Sources.Prometheus.Graph()
	}
	return state
}

// drainerStates returns the states of drainers, the goroutines that aggregate spans, with the usage of
// their rings, the queues from which they read.
func drainerStates(stats []aggregate.DrainerStats) (states []Drainer) {
	for i := range stats {
		ring := &stats[i].Ring
		states = append(states, Drainer{
			Aggregated: stats[i].Aggregated,
			Ring:       Ring{Slots: ring.Slots, Used: ring.Used, HighWater: ring.HighWater},
		})
	}
	return states
}

// nonNil returns items, or an empty slice if items is nil. encoding/json writes nil as null.
func nonNil[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

// Setting is one value of the configuration, with its origin.
type Setting struct {
	Name  string `json:"name"` // name of the flag
	Value string `json:"value"`
	// Effective is the resulting value on this machine, if it differs from Value.
	Effective string `json:"effective,omitempty"`
	Default   string `json:"default"`
	// Origin is one of the constants below.
	Origin string `json:"origin"`
	// Variable is the environment variable that contains the value, if any.
	Variable string `json:"variable,omitempty"`
}

// Origins of a value, in order of precedence.
const (
	FromFlag        = "flag"
	FromEnvironment = "environment"
	FromMemory      = "memory"      // adjusted to the memory limit
	FromDescriptors = "descriptors" // adjusted to the limit of open files
	FromDefault     = "default"
)
