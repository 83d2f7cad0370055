package daemon

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/exporter-toolkit/web"
	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
	"github.com/spanstatsd/spanstatsd/internal/check"
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/totals"
	"github.com/spanstatsd/spanstatsd/internal/ingest/socket"
	"github.com/spanstatsd/spanstatsd/internal/memory"
	"github.com/spanstatsd/spanstatsd/internal/ring"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// Check returns an error for each invalid value, without creating sockets, ports or rings. It does
// not detect problems that only a start can, such as a path without write permission or an address
// in use.
func (c Config) Check() error {
	return errors.Join(
		c.checkComponents(), c.checkDestinations(), c.checkGrace(), c.checkHTTP(), c.checkAddresses(),
		c.checkMemory(), c.checkDescriptors(),
	)
}

// CheckHere returns an error for each missing directory of a socket on this machine. It does not
// create the user's own directories, which a start does.
func CheckHere(c *Config) (err error) {
	sockets := []socket.Config{c.Ingest.Socket}
	for _, k := range receiverKinds {
		sockets = append(sockets, k.common(c).Socket)
	}
	for _, s := range sockets {
		if s.Path != "" && !s.Private {
			err = errors.Join(err, s.PrepareDirectory())
		}
	}
	return err
}

// checkComponents checks the limits of each component.
func (c *Config) checkComponents() error {
	aggregateConfig, admitConfig := c.Aggregate, c.admitConfig()
	aggregateConfig.Deliver = func(*aggregate.Sealed) {} // New sets it
	return errors.Join(
		c.Ingest.Check(), admitConfig.Check(), aggregateConfig.Check(), ring.CheckSlots(aggregateConfig.RingSlots),
		c.Flush.Check(), c.Agent.Check(),
		c.checkRings(), c.checkReceivers(), sketch.CheckBounds(boundsOf(c.exporters())),
	)
}

// checkDestinations returns an error if statistics, or traces received for the agent, would have no
// destination.
func (c *Config) checkDestinations() (err error) {
	if !c.Agent.Off() {
		return nil
	}
	if len(c.exporters()) == 0 {
		err = errors.New("check agent-url: it is off, and there is no other destination for statistics; give " +
			"the agent's URL, or --prometheus")
	}
	if c.APM.Enabled() {
		err = errors.Join(err, errors.New("check agent-url: it is off, and --apm-socket and --apm-addr "+
			"forward traces to the agent; give its URL, or leave them out"))
	}
	return err
}

func (c *Config) checkGrace() error {
	if c.ShutdownGrace <= 0 {
		return errors.New("check shutdown-grace: it is not positive; give the last export some time, such " +
			"as 5s")
	}
	return nil
}

func (c *Config) checkRings() error {
	if c.Aggregate.RingSlots < wire.MinMaxBatch {
		return fmt.Errorf("check ring-slots: %d is less than %d, the size of a batch that every client may "+
			"send; raise it",
			c.Aggregate.RingSlots, wire.MinMaxBatch)
	}
	return nil
}

// checkReceivers checks the enabled receivers.
func (c *Config) checkReceivers() (err error) {
	for _, k := range receiverKinds {
		if d := k.config(c); d.Enabled() {
			err = errors.Join(err, d.Check())
		}
	}
	return err
}

func (c *Config) checkHTTP() error {
	err := check.Address("http-addr", c.HTTPAddr)
	if bad := web.Validate(c.WebConfigFile); bad != nil {
		err = errors.Join(err, fmt.Errorf("check web-config-file: %w", bad))
	}
	return err
}

// programBytes is the memory of the process before anything is connected: the pages of the executable,
// the runtime, and the metrics.
const programBytes = memory.ProgramBytes + 768<<10

// payloadOfSketch is the maximum number of encoded bytes per byte of sketch memory. It is doubled
// because each group is encoded separately first. But a payload is sent as soon as it is full, so
// only one is encoded at a time, in a buffer that grows by doubling.
const payloadOfSketch = 2 * 4

// Memory returns the maximum memory of the configuration.
func (c *Config) Memory() memory.Budget { return memory.NewBudget(c.parts()) }

// parts returns the parts of the maximum memory.
func (c *Config) parts() []memory.Part {
	aggregateConfig := c.aggregateConfig()
	encoding := min(payloadOfSketch*c.Aggregate.SketchBytes+2*c.Aggregate.LabelBytes,
		3*export.DefaultMaxPayloadBytes)
	publisher := c.Admit.PublisherBytes(c.Aggregate.Drainers)
	var doors []memory.Part
	for _, k := range receiverKinds {
		doors = append(doors, k.config(c).Memory(publisher)...)
	}
	return slices.Concat(c.Ingest.Memory(publisher), aggregateConfig.Memory(), doors, c.totalsMemory(),
		scrapedMemory(c), c.exemplarsMemory(), []memory.Part{
			{
				Name: "keys of connections", Bytes: int64(c.Admit.MaxKeyBytesInAll),
				Flag: "max-key-bytes-total",
			},
			{Name: "payloads being made", Bytes: int64(encoding * c.destinations()), Flag: "sketch-bytes"},
			{
				Name: "payloads that wait", Bytes: int64(c.Flush.RetryBytes * c.destinations()),
				Flag: "retry-bytes",
			},
			{Name: "the program itself", Bytes: programBytes},
		})
}

// A running total without new spans ends after totalsIdle. The encoded resource of an overflow series has at
// most totalsResource bytes.
const (
	totalsIdle     = time.Hour
	totalsResource = 4 << 10
)

// totals returns the limits for running totals of a destination: as many series as an interval has
// aggregates, with the same memory for texts.
func (c *Config) totals(x export.Exporter) totals.Limits {
	limits := totals.Limits{
		Series: c.Aggregate.MaxAggregates, Bytes: c.Aggregate.LabelBytes, Idle: totalsIdle,
		Buckets: sketch.DefaultMaxBuckets, Resources: c.Aggregate.MaxOrigins, ResourceBytes: totalsResource,
	}
	if x.Pull != nil {
		limits.Buckets = c.NativeBuckets
	}
	if len(x.Bounds) > 0 {
		limits.Classic = len(x.Bounds) + 1
	}
	return limits
}

// exemplarsMemory returns the memory of the table of exemplars, if there is one.
func (c *Config) exemplarsMemory() []memory.Part {
	if c.Exemplars == nil {
		return nil
	}
	return []memory.Part{{Name: "exemplars", Bytes: c.Exemplars.Bytes()}}
}

// totalsMemory is what they take in all.
func (c *Config) totalsMemory() (parts []memory.Part) {
	for _, x := range c.Exporters {
		if limits := c.totals(x); x.Cumulative {
			parts = append(parts, memory.Part{
				Name:  "running totals of " + x.Name,
				Bytes: int64(limits.Memory()), Flag: "max-aggregates",
			})
		}
	}
	return parts
}

// scrapedMemory returns the memory of the scraped series and of scrapes, if there are any.
func scrapedMemory(c *Config) []memory.Part {
	if c.Prometheus == nil {
		return nil
	}
	limits := c.totals(c.Prometheus.Describe())
	parts := []memory.Part{{
		Name: "series for Prometheus", Bytes: int64(c.Prometheus.Memory(limits)), Flag: maxAggregates,
	}}
	if graph := c.Prometheus.GraphMemory(limits); graph > 0 {
		parts = append(parts, memory.Part{
			Name: "edges of the service graph", Bytes: int64(graph), Flag: "service-graph-edges",
		})
	}
	return parts
}

// admitConfig returns the configuration of publishers. A batch must fit in a ring, a connection can
// number as many keys as an interval can have, and all connections share the memory for keys.
func (c *Config) admitConfig() admit.Config {
	config := c.Admit
	config.MaxBatch = min(c.Admit.MaxBatch, max(c.Aggregate.RingSlots, wire.MinMaxBatch))
	config.MaxKeys = max(c.Admit.MaxKeys, c.Aggregate.MaxAggregates)
	config.Connections = c.Ingest.MaxConnections
	return config
}

// aggregateConfig returns the configuration of the aggregator. Groups are merged only if the
// Datadog receiver is enabled.
func (c *Config) aggregateConfig() aggregate.Config {
	config := c.Aggregate
	config.Merge = c.APM.Enabled()
	return config
}

// checkMemory returns an error if the configuration does not fit in the memory limit.
func (c *Config) checkMemory() error {
	if err := c.Memory().Check(c.MemoryLimit, chosenLimits(c), c.canBeLower); err != nil {
		return fmt.Errorf("check memory: %w", err)
	}
	return nil
}

// chosenLimits returns the limits set by the operator. FitMemory has made all others as small as
// possible.
func chosenLimits(c *Config) (flags []string) {
	limits := c.limits()
	for i := range c.Settings {
		s := &c.Settings[i]
		if _, is := limits[s.Name]; is && isChosen(*s) {
			flags = append(flags, s.Name)
		}
	}
	return flags
}

// canBeLower reports whether halving a limit, once or repeatedly, reduces the memory and is valid.
func (c Config) canBeLower(flag string) bool {
	total, mistakes := c.Memory().Total, c.checkComponents()
	limit := c.limits()[flag]
	for *limit > 1 {
		*limit /= 2
		if fmt.Sprint(c.checkComponents()) != fmt.Sprint(mistakes) {
			break
		}
		if c.Memory().Total < total {
			return true
		}
	}
	return false
}
