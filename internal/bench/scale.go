package bench

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"
)

// ScaleConfig is what to measure of how costs grow.
type ScaleConfig struct {
	For      time.Duration // of each point, behind a warm-up
	Rate     float64       // spans a second in all, but where speed itself is measured
	Only     []string      // names of sweeps; none: all
	Program  string
	Out, Log io.Writer
}

// sweep is one question of scale: what changes, through which values.
type sweep struct {
	name, column string
	values       []int
	change       func(c *Config, value int)
	keys         []string // how they are named, in turns
}

// roomForAll lifts every limit that would turn a question of speed into one of
// limits.
var roomForAll = []string{
	"--max-aggregates=131072", "--max-origins=2048", "--max-keys=131072", "--max-connections=2048",
	"--max-key-bytes=268435456", "--max-key-bytes-in-all=1073741824",
	"--label-bytes=268435456", "--sketch-bytes=1073741824", "--retry-bytes=1073741824",
	"--cardinality-limit=resource=131072,http_endpoint=131072",
}

var (
	oneToThousand = []int{1, 3, 10, 30, 100, 300, 1000}
	bothKeys      = []string{Raw, Numbered}
)

var sweeps = []sweep{
	{"connections", "connections, 1 origin, 64 keys", oneToThousand, func(c *Config, n int) { c.Connections = n }, bothKeys},
	{"origins", "origins, 1000 connections, 64 keys each", oneToThousand, func(c *Config, n int) { c.Connections, c.Origins = 1000, n }, []string{Raw}},
	{"keys", "keys, 1 connection", []int{10, 100, 1000, 10_000, 100_000}, func(c *Config, n int) { c.KeyCount = n }, bothKeys},
	{"cores", "processors, a connection each, as fast as it goes", processors(), func(c *Config, n int) {
		c.CPUs, c.Connections, c.Rate = n, n, 0
		c.Flags = append(slices.Clone(c.Flags), "--buffer=block")
	}, bothKeys},
}

// processors are the powers of two up to what this machine has.
func processors() (counts []int) {
	for n := 1; n <= runtime.NumCPU(); n *= 2 {
		counts = append(counts, n)
	}
	return counts
}

// ScaleNames are the questions.
func ScaleNames() (names []string) {
	for _, s := range sweeps {
		names = append(names, s.name)
	}
	return names
}

// Scale measures how the cost of a span grows, and prints a table for each question.
func Scale(ctx context.Context, c ScaleConfig) error {
	for _, s := range sweeps {
		if len(c.Only) > 0 && !slices.Contains(c.Only, s.name) {
			continue
		}
		if err := c.sweep(ctx, &s); err != nil {
			return fmt.Errorf("measure %s: %w", s.name, err)
		}
	}
	return nil
}

func (c *ScaleConfig) sweep(ctx context.Context, s *sweep) error {
	t := newTable(c.Out, s.column, "keys", "daemon CPU ns", "in the kernel", "tracer CPU ns", "allocations", "peak MiB", "accepted/s", "dropped")
	for _, keys := range s.keys {
		for _, value := range s.values {
			config := DefaultConfig()
			config.WarmUp = c.For / 4
			config.For = config.WarmUp + c.For
			config.Rate, config.Program, config.Log = c.Rate, c.Program, c.Log
			config.Keys, config.Flags = keys, roomForAll
			s.change(&config, value)
			r, err := exactly(ctx, config)
			if err != nil {
				return err
			}
			t.row(thousands(float64(value)), r.Keys, whole(r.DaemonCPU), whole(r.DaemonSystemCPU), whole(r.TracerCPU),
				fmt.Sprintf("%.4f", r.DaemonAllocs), mebibytes(r.DaemonPeakRSS), thousands(r.SpansAcceptedPerSecond), thousands(float64(r.Books.Dropped)))
		}
	}
	defer fmt.Fprintln(c.Out)
	return t.flush()
}
