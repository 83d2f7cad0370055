package main

import (
	"fmt"
	"math"
	"runtime"
	"strconv"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/commandline"
	"github.com/spanstatsd/spanstatsd/internal/daemon"
)

// limitOptions are flags about limits, as far as they are to be read.
type limitOptions struct {
	buffer string
}

func (o *limitOptions) group(c *daemon.Config) *commandline.Group {
	g := commandline.NewGroup("Limits")
	in, adm, agg, out, apm, otel := &c.Ingest, &c.Admit, &c.Aggregate, &c.Flush, &c.APM, &c.OTLP
	f := g.First
	f.IntVar(&in.MaxConnections, "max-connections", in.MaxConnections,
		"maximum number of concurrent connections to --socket")

	f = g.Rest
	drainers := &drainers{number: &agg.Drainers}
	_ = drainers.Set("cpu:1")
	f.Var(drainers, "drainers",
		"number of goroutines that aggregate spans: cpu:1 for one per core, cpu+1:0.25 for one plus "+
			"a quarter of the cores, fixed:4 for four")
	f.IntVar(&agg.RingSlots, "ring-slots", agg.RingSlots,
		"slots of the ring in front of each drainer, a power of two")
	f.Var(commandline.Choice(&o.buffer, "drop", "drop", "block"), "buffer",
		"what to do when a ring is full: drop the batch, or block the client")
	f.Var(commandline.Size(&in.MaxByteRate), "max-byte-rate",
		"maximum bytes per second read from one connection to --socket; 0 for unlimited")
	f.Var(commandline.Size(&adm.MaxKeyBytes), "max-key-bytes",
		"memory for the keys of one connection to --socket; clients may use seven eighths for "+
			"numbered keys")
	f.Var(commandline.Size(&adm.MaxKeyBytesInAll), "max-key-bytes-in-all",
		"memory for the keys of all connections to --socket")
	f.Var(commandline.Size(&out.RetryBytes), "retry-bytes",
		"memory for queued payloads, per destination")
	f.DurationVar(&out.RetryAge, "retry-age", out.RetryAge, "how long a payload is queued before it is dropped")
	f.IntVar(&apm.MaxConnections, "apm-max-connections", apm.MaxConnections,
		"maximum number of concurrent connections to --apm-socket and --apm-addr")
	f.Var(commandline.Size(&apm.MaxBody), "apm-max-body",
		"maximum size of a trace request to --apm-socket or --apm-addr; a larger one is left to the "+
			"agent to count")
	f.Var(commandline.Size(&apm.MaxBodyBytes), "apm-max-body-bytes",
		"memory for all concurrent requests to --apm-socket and --apm-addr")
	f.IntVar(&otel.MaxConnections, "otlp-max-connections", otel.MaxConnections,
		"maximum number of concurrent connections to --otlp-addr and --otlp-socket")
	f.Var(commandline.Size(&otel.MaxBody), "otlp-max-body",
		"maximum size of an OTLP request, compressed and decompressed")
	f.Var(commandline.Size(&otel.MaxBodyBytes), "otlp-max-body-bytes",
		"memory for all concurrent OTLP requests")
	f.IntVar(&c.Zipkin.MaxConnections, "zipkin-max-connections", c.Zipkin.MaxConnections,
		"maximum number of concurrent connections to --zipkin-addr and --zipkin-socket")
	f.Var(commandline.Size(&c.Zipkin.MaxBody), "zipkin-max-body",
		"maximum size of a Zipkin request, compressed and decompressed")
	f.Var(commandline.Size(&c.Zipkin.MaxBodyBytes), "zipkin-max-body-bytes",
		"memory for all concurrent Zipkin requests")
	return g
}

func (o *limitOptions) complete(c *daemon.Config) error {
	c.Admit.Block = o.buffer == "block"
	if out := &c.Flush; out.RetryAge == 0 || out.RetryBytes == 0 { // the flush takes 0 for its default
		return fmt.Errorf("parse --retry-age and --retry-bytes: %s and %d must be positive", out.RetryAge,
			out.RetryBytes)
	}
	return nil
}

// drainers is the value of a flag that takes a policy, and sets a number.
type drainers struct {
	policy string
	number *int
}

func (d *drainers) Set(policy string) error {
	number, err := parseDrainers(policy)
	if err == nil {
		d.policy, *d.number = policy, number
	}
	return err
}

// String returns the policy, or the number if a memory limit has changed it.
func (d *drainers) String() string {
	if number, err := parseDrainers(d.policy); err == nil && number != *d.number {
		return "fixed:" + strconv.Itoa(*d.number)
	}
	return d.policy
}

func (*drainers) Type() string { return "policy" }

// parseDrainers reads the policy for the number of drainers. Cores are those
// that the container may use, as Go sees them.
func parseDrainers(given string) (int, error) {
	bad := fmt.Errorf("%q is none of cpu:1, cpu+1:0.25 and fixed:4", given)
	kind, number, found := strings.Cut(given, ":")
	if !found {
		return 0, bad
	}
	if kind == "fixed" {
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 {
			return 0, bad
		}
		return n, nil
	}
	share, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsNaN(share) || share < 0 || share > 16 {
		return 0, bad
	}
	base := 0
	if rest, ok := strings.CutPrefix(kind, "cpu+"); ok {
		if base, err = strconv.Atoi(rest); err != nil || base < 0 || base > 1024 {
			return 0, bad
		}
	} else if kind != "cpu" {
		return 0, bad
	}
	return max(1, base+int(math.Round(share*float64(runtime.GOMAXPROCS(0))))), nil
}
