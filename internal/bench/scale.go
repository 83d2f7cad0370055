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
	name   string
	values []int
	change func(c *Config, value int)
}

// roomForAll lifts every limit that would turn a question of speed into one of
// limits.
var roomForAll = []string{
	"--max-aggregates=131072", "--max-origins=2048", "--max-keys=131072", "--max-connections=2048",
	"--max-key-bytes=268435456", "--max-key-bytes-in-all=1073741824",
	"--label-bytes=268435456", "--sketch-bytes=1073741824", "--retry-bytes=1073741824",
	"--cardinality-limit=resource=131072,http_endpoint=131072",
}

var sweeps = []sweep{
	{"connections", []int{1, 10, 100, 1000}, func(c *Config, n int) { c.Connections = n }},
	{"origins", []int{1, 100, 1000}, func(c *Config, n int) { c.Connections, c.Origins = 1000, n }},
	{"keys", []int{10, 1000, 100_000}, func(c *Config, n int) { c.KeyCount = n }},
	{"cores", processors(), func(c *Config, n int) {
		c.CPUs, c.Connections, c.Rate = n, n, 0
		c.Flags = append(slices.Clone(c.Flags), "--buffer=block")
	}},
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

// Scale measures how the cost of a span grows with each of them, and prints a table.
func Scale(ctx context.Context, c ScaleConfig) error {
	t := newTable(c.Out, "", "", "daemon CPU ns, raw / numbered keys", "in the kernel", "tracer CPU ns", "allocations", "peak MiB", "accepted/s", "dropped")
	for _, s := range sweeps {
		if len(c.Only) > 0 && !slices.Contains(c.Only, s.name) {
			continue
		}
		for _, value := range s.values {
			raw, err := exactly(ctx, c.point(&s, value, Raw))
			if err != nil {
				return err
			}
			numbered, err := exactly(ctx, c.point(&s, value, Numbered))
			if err != nil {
				return err
			}
			both := func(show func(*Report) string) string { return show(raw) + " / " + show(numbered) }
			t.row(s.name, thousands(float64(value)),
				both(func(r *Report) string { return whole(r.DaemonCPU) }),
				both(func(r *Report) string { return whole(r.DaemonSystemCPU) }),
				both(func(r *Report) string { return whole(r.TracerCPU) }),
				both(func(r *Report) string { return fmt.Sprintf("%.4f", r.DaemonAllocs) }),
				both(func(r *Report) string { return mebibytes(r.DaemonPeakRSS) }),
				both(func(r *Report) string { return thousands(r.SpansAcceptedPerSecond) }),
				both(func(r *Report) string { return thousands(float64(r.Books.Dropped)) }))
		}
	}
	return t.flush()
}

// point is the run for one value.
func (c *ScaleConfig) point(s *sweep, value int, keys string) Config {
	config := DefaultConfig()
	config.WarmUp = c.For / 4
	config.For = config.WarmUp + c.For
	config.Rate, config.Program, config.Log = c.Rate, c.Program, c.Log
	config.Keys, config.Flags = keys, roomForAll
	s.change(&config, value)
	return config
}
