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

// How a tracer names keys, and what a tracer is.
const (
	Raw      = "raw"      // all of a key's bytes with each span
	Numbered = "numbered" // a number that was defined before

	Wire   = "wire"   // messages encoded before
	Client = "client" // the client library
	HTTP   = "http"   // recorded requests, of the workload of traces alone
	Bare   = "bare"   // what a client's tracer does besides publishing, of Rates alone
)

// Load is what of it a report repeats.
type Load struct {
	Workload    string  `json:"workload"`
	Tracer      string  `json:"tracer"`      // Wire or Client
	Keys        string  `json:"keys"`        // Raw or Numbered
	Producers   int     `json:"producers"`   // processes
	Connections int     `json:"connections"` // over all producers; at least one each
	Origins     int     `json:"origins"`     // over all connections
	Batch       int     `json:"batch"`       // spans of one message
	Rate        float64 `json:"rate"`        // spans a second in all; 0: as fast as it goes
}

// Config is what to measure.
type Config struct {
	Load
	KeyCount int    // so many keys in the shape of stable, instead of the workload's own; 0: its own
	Format   string // of Traces, one of Recorded
	Spans    uint64 // to send in all; 0: as many as For allows
	For      time.Duration
	WarmUp   time.Duration // the part of For that is left out of the costs
	CPUs     int           // processors for the daemon and the tracers together; 0: all

	Daemon string // HTTP address of one that runs already; empty: start one
	Socket string // its socket

	Program string   // of the one that is started; empty: spanstatsd beside this program, or of PATH
	Flags   []string // more flags for it
	Env     []string // and more of its environment

	Profile string        // file for the daemon's CPU profile; empty: none
	Every   time.Duration // between two lines about a run under way; 0: none
	Out     io.Writer     `json:"-"` // takes those lines
	Log     io.Writer     `json:"-"` // takes what the daemon warns of
}

// DefaultConfig is the defaults of the command line.
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

// limit bounds everything that waits for another process, so that a hung one is named. It
// measures nothing: no process that works needs as long, however busy the machine is.
const limit = 5 * time.Minute

// Check says what can't be measured.
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
		return fmt.Errorf("parse --profile: give --for %s at least", leastProfiled)
	case c.Daemon == "" && slices.ContainsFunc(c.Flags, isOurs):
		return fmt.Errorf("parse arguments for the daemon: %s are set by bench itself",
			strings.Join(ours[:], ", "))
	case c.Daemon != "" && len(c.Flags)+len(c.Env) > 0:
		return errors.New("parse arguments for the daemon: the one of --daemon runs already and takes none")
	}
	return nil
}

// checkTraces says what can't be asked of recorded requests: they are what they are,
// and who counts them is part of what is measured.
func (c *Config) checkTraces() error {
	if !slices.Contains(Recorded, c.Format) {
		return fmt.Errorf("parse --format: %q is none of %s", c.Format, strings.Join(Recorded, ", "))
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

// ours are the flags of run without which bench could not find its daemon.
var ours = [...]string{"--socket", "--apm-socket", "--agent-url", "--http-addr", "--log-format"}

func isOurs(argument string) bool {
	name, _, _ := strings.Cut(argument, "=")
	return slices.Contains(ours[:], name)
}

// leastProfiled is how long a load must last that a profile is taken of.
const leastProfiled = 2 * time.Second
