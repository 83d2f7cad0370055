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

// Check returns the joined errors of all invalid values. It opens no socket and no file, so it does
// not detect a directory without write permission, or an address in use.
func (c Config) Check() error {
	return errors.Join(
		c.checkComponents(), c.checkDestinations(), c.checkGrace(), c.checkHTTP(), c.checkAddresses(),
		c.checkMemory(), c.checkDescriptors(),
	)
}

// CheckDirectories returns an error for each Unix socket whose directory does not exist on this machine,
// unless the daemon creates the directory when it starts.
func CheckDirectories(c *Config) (err error) {
	sockets := []socket.Config{c.Ingest.Socket}
	for _, kind := range receiverKinds {
		sockets = append(sockets, kind.commonConfig(c).Socket)
	}
	for _, s := range sockets {
		isEnabled := s.Path != ""
		if isEnabled && !s.CreatesDirectory() {
			err = errors.Join(err, s.CheckDirectory())
		}
	}
	return err
}

// checkComponents returns the joined errors of the configurations of all components.
func (c *Config) checkComponents() error {
	admitConfig := c.admitConfig()
	aggregateConfig := c.Aggregate
	aggregateConfig.Deliver = func(*aggregate.Sealed) {} // a required field, which is not known yet
	return errors.Join(
		c.Ingest.Check(), admitConfig.Check(), aggregateConfig.Check(), ring.CheckSlots(aggregateConfig.RingSlots),
		c.Flush.Check(), c.Agent.Check(),
		c.checkRings(), c.checkReceivers(), sketch.CheckBounds(classicBounds(c.exporters())),
	)
}

// checkDestinations returns an error if no destination for statistics is configured, or if the
// Datadog receiver is enabled without an agent to which it could forward traces.
func (c *Config) checkDestinations() (err error) {
	if !c.Agent.Off() {
		return nil
	}
	if len(c.exporters()) == 0 {
		err = errors.New("check agent-url: it is off, and there is no other destination for statistics; set " +
			"it to the agent's URL, or add --prometheus")
	}
	if c.APM.Enabled() {
		err = errors.Join(err, errors.New("check agent-url: it is off, and --apm-socket and --apm-addr "+
			"forward traces to the agent; set it to the URL of the agent, or remove them"))
	}
	return err
}

func (c *Config) checkGrace() error {
	if c.ShutdownGrace <= 0 {
		return errors.New("check shutdown-grace: it is not positive; set the time for the last export, such as 5s")
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

// checkReceivers returns the joined errors of the configurations of the enabled receivers.
func (c *Config) checkReceivers() (err error) {
	for _, kind := range receiverKinds {
		config := kind.config(c)
		if config.Enabled() {
			err = errors.Join(err, config.Check())
		}
	}
	return err
}

func (c *Config) checkHTTP() error {
	err := check.Address("http-addr", c.HTTPAddr)
	if fileErr := web.Validate(c.WebConfigFile); fileErr != nil {
		err = errors.Join(err, fmt.Errorf("check web-config-file: %w", fileErr))
	}
	return err
}

// programBytes is the memory of the process before anything is connected: the pages of the executable,
// the runtime, and the metrics.
const programBytes = memory.ProgramBytes + 768<<10

const (
	// payloadBytesPerSketchByte is the maximum number of encoded bytes per byte of sketch memory. It is
	// twice the size of the encoding, because each group is first encoded into a buffer of its own.
	payloadBytesPerSketchByte = 2 * 4
	// payloadBytesPerLabelByte is the same for the memory of labels.
	payloadBytesPerLabelByte = 2
	// maxEncodeBytes is the maximum memory of a payload during encoding. A payload is sent as soon as it
	// has reached its maximum size, but its buffer grows by doubling.
	maxEncodeBytes = 3 * export.DefaultMaxPayloadBytes
)

// Memory returns the maximum memory that the daemon can need with the configuration.
func (c *Config) Memory() memory.Budget { return memory.NewBudget(c.memoryParts()) }

// memoryParts returns the maximum memory of each data structure.
func (c *Config) memoryParts() []memory.Part {
	aggregateConfig := c.aggregateConfig()
	publisherBytes := c.Admit.PublisherBytes(c.Aggregate.Drainers)
	var receivers []memory.Part
	for _, kind := range receiverKinds {
		receivers = append(receivers, kind.config(c).Memory(publisherBytes)...)
	}
	keys := memory.Part{
		Name: "keys of connections", Bytes: int64(c.Admit.MaxKeyBytesInAll), Flag: "max-key-bytes-total",
	}
	program := memory.Part{Name: "the program itself", Bytes: programBytes}
	return slices.Concat(
		c.Ingest.Memory(publisherBytes), aggregateConfig.Memory(), receivers, c.totalsMemory(),
		c.scrapedMemory(), c.exemplarsMemory(), []memory.Part{keys}, c.payloadMemory(),
		[]memory.Part{program},
	)
}

// payloadMemory returns the maximum memory of payloads for all destinations to which the daemon
// sends. One part is for payloads that are being encoded, the other for payloads that are queued for
// a retry.
func (c *Config) payloadMemory() []memory.Part {
	sketches := payloadBytesPerSketchByte * c.Aggregate.SketchBytes
	labels := payloadBytesPerLabelByte * c.Aggregate.LabelBytes
	encodeBytes := min(sketches+labels, maxEncodeBytes)
	destinations := c.pushDestinations()
	return []memory.Part{
		{Name: "payloads being made", Bytes: int64(encodeBytes * destinations), Flag: "sketch-bytes"},
		{Name: "payloads that wait", Bytes: int64(c.Flush.RetryBytes * destinations), Flag: "retry-bytes"},
	}
}

const (
	// idleTotalTimeout is the time after which a running total without new spans is removed.
	idleTotalTimeout = time.Hour
	// totalResourceBytes is the maximum size of the encoded resource of an overflow series.
	totalResourceBytes = 4 << 10
)

// totalsLimits returns the limits of the running totals that an exporter keeps since the start of the
// daemon. The number of series, and the memory of their labels, are limited like those of the label sets
// of one export interval.
func (c *Config) totalsLimits(exporter export.Exporter) totals.Limits {
	limits := totals.Limits{
		Series: c.Aggregate.MaxAggregates, Bytes: c.Aggregate.LabelBytes, Idle: idleTotalTimeout,
		Buckets: sketch.DefaultMaxBuckets, Resources: c.Aggregate.MaxOrigins, ResourceBytes: totalResourceBytes,
		Metrics: exporter.Metrics,
	}
	isScraped := exporter.Pull != nil
	if isScraped {
		limits.Buckets = c.NativeBuckets
	}
	hasClassicHistograms := len(exporter.Bounds) > 0
	if hasClassicHistograms {
		limits.Classic = len(exporter.Bounds) + 1 // one bucket per upper bound, and one up to +Inf
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

// totalsMemory returns the maximum memory of running totals, the sums since the start of the daemon.
// The result has one part for each exporter that sends cumulative values, and one for each service graph.
func (c *Config) totalsMemory() (parts []memory.Part) {
	for _, exporter := range c.Exporters {
		limits := c.totalsLimits(exporter)
		if exporter.Cumulative {
			parts = append(parts, memory.Part{
				Name: "running totals of " + exporter.Name, Bytes: int64(limits.Memory()), Flag: maxAggregatesFlag,
			})
		}
		if exporter.GraphMemory != nil {
			parts = append(parts, memory.Part{
				Name: "edges of the service graph for " + exporter.Name, Bytes: int64(exporter.GraphMemory(limits)),
				Flag: "service-graph-edges",
			})
		}
	}
	return parts
}

// scrapedMemory returns the maximum memory of the series that Prometheus scrapes. It returns nil if
// scraping is disabled.
func (c *Config) scrapedMemory() []memory.Part {
	if c.Prometheus == nil {
		return nil
	}
	limits := c.totalsLimits(c.Prometheus.Describe())
	parts := []memory.Part{{
		Name: "series for Prometheus", Bytes: int64(c.Prometheus.Memory(limits)), Flag: maxAggregatesFlag,
	}}
	if graphBytes := c.Prometheus.GraphMemory(limits); graphBytes > 0 {
		parts = append(parts, memory.Part{
			Name: "edges of the service graph for Prometheus", Bytes: int64(graphBytes), Flag: "service-graph-edges",
		})
	}
	return parts
}

// admitConfig returns the configuration of package admit, through which receivers pass spans to the ring
// buffers of the aggregator. A batch of spans must fit in one ring buffer. A connection can have as many
// keys as there are label sets, because each label set needs a key.
func (c *Config) admitConfig() admit.Config {
	config := c.Admit
	areRingsValid := c.Aggregate.RingSlots >= wire.MinMaxBatch // otherwise checkRings returns an error
	if areRingsValid {
		config.MaxBatch = min(c.Admit.MaxBatch, c.Aggregate.RingSlots)
	}
	config.MaxKeys = max(c.Admit.MaxKeys, c.Aggregate.MaxAggregates)
	config.Connections = c.Ingest.MaxConnections
	config.Measures = len(c.OTLP.Labels.Measures)
	return config
}

// aggregateConfig returns the configuration of the aggregator. It enables the merging of statistics
// that tracers have computed if the Datadog receiver is enabled, because only this receiver accepts
// such statistics.
func (c *Config) aggregateConfig() aggregate.Config {
	config := c.Aggregate
	config.Merge = c.APM.Enabled()
	config.Measures = len(c.OTLP.Labels.Measures)
	config.Objectives = c.Admit.Objectives.Len()
	return config
}

// checkMemory returns an error if the configuration does not fit in the memory limit.
func (c *Config) checkMemory() error {
	if err := c.Memory().Check(c.MemoryLimit, chosenLimits(c), c.canBeLower); err != nil {
		return fmt.Errorf("check memory: %w", err)
	}
	return nil
}

// chosenLimits returns the flags of limits that the operator has set.
func chosenLimits(c *Config) (flags []string) {
	limits := c.limits()
	for _, setting := range c.Settings {
		_, isLimit := limits[setting.Name]
		if isLimit && isChosen(setting) {
			flags = append(flags, setting.Name)
		}
	}
	return flags
}

// canBeLower reports whether a lower value of a limit is valid and reduces the maximum memory. It
// tries a half of the value, a quarter, and so on.
func (c *Config) canBeLower(flag string) bool {
	lowered := *c
	limit := lowered.limits()[flag] // points to a field of lowered
	for *limit > 1 {
		*limit /= 2
		hasNewErrors := lowered.componentErrorText() != c.componentErrorText()
		if hasNewErrors {
			return false
		}
		savesMemory := lowered.Memory().Total < c.Memory().Total
		if savesMemory {
			return true
		}
	}
	return false
}

// componentErrorText returns the errors of checkComponents as text, so that they can be compared.
func (c *Config) componentErrorText() string { return fmt.Sprint(c.checkComponents()) }
