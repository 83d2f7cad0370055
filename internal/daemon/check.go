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

// Check says everything that is unusable, one reason a line, and makes nothing: no socket, no
// port, no ring. It does not see what only a start can find out: a path that may not be
// written, an address in use.
func (c Config) Check() error {
	return errors.Join(
		c.checkRooms(), c.checkDestinations(), c.checkGrace(), c.checkHTTP(), c.checkAddresses(),
		c.checkMemory(), c.checkDescriptors(),
	)
}

// CheckHere says what a configuration that can be used lacks on this machine: the directories of
// sockets. It makes none, and a start makes those of the user's own.
func CheckHere(c *Config) (err error) {
	sockets := []socket.Config{c.Ingest.Socket}
	for _, k := range doorKinds {
		sockets = append(sockets, k.common(c).Socket)
	}
	for _, s := range sockets {
		if s.Path != "" && !s.Private {
			err = errors.Join(err, s.PrepareDirectory())
		}
	}
	return err
}

// checkRooms looks at the limits of each room.
func (c *Config) checkRooms() error {
	counting, admitting := c.Aggregate, c.admitting()
	counting.Deliver = func(*aggregate.Sealed) {} // who makes a daemon sets it
	return errors.Join(
		c.Ingest.Check(), admitting.Check(), counting.Check(), ring.CheckSlots(counting.RingSlots),
		c.Flush.Check(), c.Agent.Check(),
		c.checkRings(), c.checkDoors(), sketch.CheckBounds(boundsOf(c.exporters())),
	)
}

// checkDestinations refuses a daemon whose statistics would go nowhere, or whose traces
// would: nobody but the agent takes those.
func (c *Config) checkDestinations() (err error) {
	if !c.Agent.Off() {
		return nil
	}
	if len(c.exporters()) == 0 {
		err = errors.New("check agent-url: it is off, and there is no other destination, so that " +
			"statistics would go nowhere; give the agent's URL, or --prometheus")
	}
	if c.APM.Enabled() {
		err = errors.Join(err, errors.New("check agent-url: it is off, and --apm-socket and --apm-addr "+
			"forward traces to the agent; give its URL, or leave them out"))
	}
	return err
}

func (c *Config) checkGrace() error {
	if c.ShutdownGrace <= 0 {
		return errors.New("check shutdown-grace: it is not positive; give the last report some time, such " +
			"as 5s")
	}
	return nil
}

func (c *Config) checkRings() error {
	if c.Aggregate.RingSlots < wire.MinMaxBatch {
		return fmt.Errorf("check ring-slots: %d do not hold a batch of %d, which any tracer may send",
			c.Aggregate.RingSlots, wire.MinMaxBatch)
	}
	return nil
}

// checkDoors looks at what takes traces, where it is on.
func (c *Config) checkDoors() (err error) {
	for _, k := range doorKinds {
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

// programBytes is what the process takes before anything is connected: the
// program, the runtime, the metrics, and their garbage.
const programBytes = 16 << 20

// payloadOfSketch is how many bytes the encoding of a sketch's page may come to
// for each of the page, twice, because a group is written first by itself. But a
// payload is shipped as soon as it is full, so no more than one is being made, in a
// buffer that grows by doubling.
const payloadOfSketch = 2 * 4

// Memory is what the limits of a configuration may come to in the worst case.
func (c *Config) Memory() memory.Budget { return memory.Sum(c.parts()) }

// parts are what that is the sum of.
func (c *Config) parts() []memory.Part {
	counting := c.counting()
	encoding := min(payloadOfSketch*c.Aggregate.SketchBytes+2*c.Aggregate.LabelBytes,
		3*export.DefaultMaxPayloadBytes)
	publisher := c.Admit.PublisherBytes(c.Aggregate.Drainers)
	var doors []memory.Part
	for _, k := range doorKinds {
		doors = append(doors, k.config(c).Memory(publisher)...)
	}
	return slices.Concat(c.Ingest.Memory(publisher), counting.Memory(), doors, c.totalsMemory(),
		scrapedMemory(c), c.exemplarsMemory(), []memory.Part{
			{
				Name: "keys of connections", Bytes: int64(c.Admit.MaxKeyBytesInAll),
				Flag: "max-key-bytes-in-all",
			},
			{Name: "payloads being made", Bytes: int64(encoding * c.destinations()), Flag: "sketch-bytes"},
			{
				Name: "payloads that wait", Bytes: int64(c.Flush.RetryBytes * c.destinations()),
				Flag: "retry-bytes",
			},
			{Name: "the program itself", Bytes: programBytes},
		})
}

// A series whose total nobody adds to ends after totalsIdle. At most totalsResource bytes are
// encoded of the resource of an overflow series.
const (
	totalsIdle     = time.Hour
	totalsResource = 4 << 10
)

// totals is how many running totals a destination may have: as many series as an interval has aggregates,
// with texts as long.
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

// exemplarsMemory is what the table of exemplars takes, where there is one.
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

// scrapedMemory is what is kept to be scraped, and what scrapes take.
func scrapedMemory(c *Config) []memory.Part {
	if c.Prometheus == nil {
		return nil
	}
	return []memory.Part{{
		Name: "series for Prometheus", Bytes: int64(c.Prometheus.Memory(c.totals(c.Prometheus.Describe()))),
		Flag: maxAggregates,
	}}
}

// admitting is the configuration of the publishers. No batch is larger than a ring, a connection
// may number as many keys as an interval has aggregates, and each connection has its share of the
// memory for keys.
func (c *Config) admitting() admit.Config {
	admitting := c.Admit
	admitting.MaxBatch = min(c.Admit.MaxBatch, max(c.Aggregate.RingSlots, wire.MinMaxBatch))
	admitting.MaxKeys = max(c.Admit.MaxKeys, c.Aggregate.MaxAggregates)
	admitting.Connections = c.Ingest.MaxConnections
	return admitting
}

// counting is the aggregates' configuration, all but their grid: tracers that compute their
// statistics send them where they send their traces.
func (c *Config) counting() aggregate.Config {
	counting := c.Aggregate
	counting.Merge = c.APM.Enabled()
	return counting
}

// checkMemory refuses what can't fit, before anything is made.
func (c *Config) checkMemory() error {
	if err := c.Memory().Check(c.MemoryLimit, chosenLimits(c), c.canBeLower); err != nil {
		return fmt.Errorf("check memory: %w", err)
	}
	return nil
}

// chosenLimits are those that the operator has set. FitMemory has made all others as small as it can.
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

// canBeLower says whether a limit that is halved, once or more often, can be used as well
// and takes less.
func (c Config) canBeLower(flag string) bool {
	total, mistakes := c.Memory().Total, c.checkRooms()
	limit := c.limits()[flag]
	for *limit > 1 {
		*limit /= 2
		if fmt.Sprint(c.checkRooms()) != fmt.Sprint(mistakes) {
			break
		}
		if c.Memory().Total < total {
			return true
		}
	}
	return false
}
