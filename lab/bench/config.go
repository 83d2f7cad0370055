package bench

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spanstatsd/spanstatsd/lab/workload"
)

// Values of Load.Keys and Load.Tracer.
const (
	Raw      = "raw"      // all bytes of the key in each span
	Numbered = "numbered" // key number, defined once

	Wire   = "wire"   // sends messages encoded in advance
	Client = "client" // publishes through the client library
	HTTP   = "http"   // sends recorded requests; only for workload Traces
	Bare   = "bare"   // does the work of Client except publishing; only for Rates
)

// Load is the part of Config that is repeated in the report.
type Load struct {
	Workload    string  `json:"workload"`
	Tracer      string  `json:"tracer"`      // Wire or Client
	Keys        string  `json:"keys"`        // Raw or Numbered
	Producers   int     `json:"producers"`   // number of processes
	Connections int     `json:"connections"` // total of all producers; at least one each
	Origins     int     `json:"origins"`     // total of all connections
	Batch       int     `json:"batch"`       // spans per message
	Rate        float64 `json:"rate"`        // total spans per second; 0: unlimited
}

// Config describes a measurement.
type Config struct {
	Load
	KeyCount int    // number of keys in the shape of stable, instead of the workload's own keys; 0: the workload's own
	Format   string // format of workload Traces, one of Recorded
	Spans    uint64 // total spans to send; 0: limited by For only
	For      time.Duration
	WarmUp   time.Duration // initial part of For that is excluded from the costs
	CPUs     int           // processors for the daemon and the tracers together; 0: all

	Daemon string // HTTP address of a running daemon; empty: start one
	Socket string // socket of the running daemon

	Program string   // program of the daemon to start; empty: spanstatsd next to this program, or in PATH
	Flags   []string // additional flags of the daemon
	Env     []string // additional environment of the daemon

	Profile string        // file for the daemon's CPU profile; empty: no profile
	Every   time.Duration // interval between progress lines; 0: none
	Out     io.Writer     `json:"-"` // receives the progress lines
	Log     io.Writer     `json:"-"` // receives the daemon's warnings
}

// DefaultConfig returns the defaults of the command line.
func DefaultConfig() Config {
	return Config{
		Load: Load{
			Workload: workload.Stable, Tracer: Wire, Keys: Raw, Producers: 1, Connections: 1,
			Origins: 1, Batch: 64,
		},
		Format: Recorded[0], For: 10 * time.Second, Socket: "/var/run/spanstatsd/spans.sock",
		Out: io.Discard, Log: io.Discard,
	}
}

// limit bounds every wait for another process, so that the error can name a hung process. It is
// not part of any measurement: no healthy process needs as long, even on a busy machine.
const limit = 5 * time.Minute

// Check returns an error if the configuration cannot be measured.
func (c *Config) Check() error {
	if c.Workload == Traces {
		if err := c.checkTraces(); err != nil {
			return err
		}
	} else if c.KeyCount == 0 {
		if _, err := workload.New(c.Workload, 0); err != nil {
			return err
		}
	}
	for _, n := range []struct {
		flag               string
		value, least, most int
	}{
		{"producers", c.Producers, 1, 256},
		{"connections", c.Connections, c.Producers, 10_000},
		{"origins", c.Origins, 1, c.Connections},
		{"batch", c.Batch, 1, 1 << 20},
		{"key-count", c.KeyCount, 0, 1 << 20},
		{"cpus", c.CPUs, 0, runtime.NumCPU()},
	} {
		if n.value < n.least || n.value > n.most {
			return fmt.Errorf("parse --%s: %d is not between %d and %d", n.flag, n.value, n.least, n.most)
		}
	}
	switch {
	case c.Tracer != Wire && c.Tracer != Client:
		return fmt.Errorf("parse --tracer: %q is neither %s nor %s", c.Tracer, Wire, Client)
	case c.Keys != Raw && c.Keys != Numbered:
		return fmt.Errorf("parse --keys: %q is neither %s nor %s", c.Keys, Raw, Numbered)
	case c.For < 0 || c.Every < 0 || !(c.Rate >= 0):
		return errors.New("parse --for, --every and --rate: none may be negative")
	case c.WarmUp < 0 || c.WarmUp > 0 && (c.WarmUp >= c.For || c.Every > 0):
		return fmt.Errorf("parse --warm-up: %s is not a part of the %s of --for, or there is --every too",
			c.WarmUp, c.For)
	case c.For == 0 && c.Spans == 0:
		return errors.New("parse --for and --spans: one of them must end the run")
	case c.Profile != "" && c.For < leastProfiled:
		return fmt.Errorf("parse --profile: set --for to at least %s", leastProfiled)
	case c.Daemon == "" && slices.ContainsFunc(c.Flags, isOurs):
		return fmt.Errorf("parse arguments for the daemon: %s are set by bench itself",
			strings.Join(ours[:], ", "))
	case c.Daemon != "" && len(c.Flags)+len(c.Env) > 0:
		return errors.New("parse arguments for the daemon: the one of --daemon runs already and takes none")
	}
	return nil
}

// checkTraces returns an error for settings that don't apply to workload Traces: the recorded
// requests are fixed, and the daemon's way of counting them is part of the measurement.
func (c *Config) checkTraces() error {
	if !slices.Contains(Recorded, c.Format) {
		return fmt.Errorf("parse --format: %q is not one of %s", c.Format, strings.Join(Recorded, ", "))
	}
	d := DefaultConfig()
	if c.Tracer != d.Tracer || c.Keys != d.Keys || c.Batch != d.Batch || c.Origins != d.Origins ||
		c.KeyCount != 0 || c.WarmUp != 0 || c.Every != 0 || c.Daemon != "" {
		return errors.New("parse flags: the recorded requests of traces are sent as they are, over HTTP, " +
			"to a daemon that bench starts; " +
			"leave out --tracer, --keys, --key-count, --batch, --origins, --warm-up, --every and --daemon")
	}
	return nil
}

// ours are the flags of "spanstatsd run" that bench sets itself, because it needs them to reach
// its daemon.
var ours = [...]string{"--socket", "--apm-socket", "--agent-url", "--http-addr", "--log-format"}

func isOurs(argument string) bool {
	name, _, _ := strings.Cut(argument, "=")
	return slices.Contains(ours[:], name)
}

// leastProfiled is the minimum duration of a load that is profiled.
const leastProfiled = 2 * time.Second
