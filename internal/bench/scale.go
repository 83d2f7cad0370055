package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"
)

// ScaleConfig is what to measure of how costs grow.
type ScaleConfig struct {
	For      time.Duration // of each point, behind a warm-up
	Rate     float64       // spans a second in all, but where speed itself is measured
	Only     []string      // names of sweeps; none: all
	Images   string        // directory that the plots are written to; empty: nowhere
	Program  string
	Out, Log io.Writer
}

// sweep is one question of scale: what changes, through which values.
type sweep struct {
	name, title, x string
	values         []float64
	variants       []variant
}

// variant is a line of a sweep's plot.
type variant struct {
	name   string
	change func(c *Config, value float64)
}

// roomForAll lifts every limit that would turn a question of speed into one of
// limits.
var roomForAll = []string{
	"--max-aggregates=131072", "--max-origins=2048", "--max-keys=131072", "--max-connections=2048",
	"--max-key-bytes=268435456", "--max-key-bytes-in-all=1073741824",
	"--label-bytes=268435456", "--sketch-bytes=1073741824", "--retry-bytes=1073741824",
	"--cardinality-limit=resource=131072,http_endpoint=131072",
}

func oneToThousand() []float64 { return []float64{1, 3, 10, 30, 100, 300, 1000} }

var sweeps = []sweep{
	{
		"connections", "Cost of a span by connections", "connections, 1 origin, 64 keys", oneToThousand(),
		[]variant{
			{"raw keys", func(c *Config, n float64) { c.Connections = int(n) }},
			{"numbered keys", func(c *Config, n float64) { c.Connections, c.Keys = int(n), Numbered }},
		},
	},
	{
		"origins", "Cost of a span by origins", "origins, 1000 connections, 64 keys each", oneToThousand(),
		[]variant{{"raw keys", func(c *Config, n float64) { c.Connections, c.Origins = 1000, int(n) }}},
	},
	{
		"keys", "Cost of a span by keys", "keys, 1 connection",
		[]float64{10, 100, 1000, 10_000, 100_000},
		[]variant{
			{"raw keys", func(c *Config, n float64) { c.KeyCount = int(n) }},
			{"numbered keys", func(c *Config, n float64) { c.KeyCount, c.Keys = int(n), Numbered }},
		},
	},
}

// Scale measures how the cost of a span grows, and prints a table for each
// question.
func Scale(ctx context.Context, c ScaleConfig) error {
	for _, s := range sweeps {
		if len(c.Only) == 0 || slices.Contains(c.Only, s.name) {
			if err := c.sweep(ctx, &s); err != nil {
				return fmt.Errorf("measure %s: %w", s.name, err)
			}
		}
	}
	if len(c.Only) == 0 || slices.Contains(c.Only, cores) {
		if err := c.cores(ctx); err != nil {
			return fmt.Errorf("measure cores: %w", err)
		}
	}
	return nil
}

// ScaleNames are the questions.
func ScaleNames() (names []string) {
	for _, s := range sweeps {
		names = append(names, s.name)
	}
	return append(names, cores)
}

// base is what all points have in common.
func (c *ScaleConfig) base() Config {
	config := DefaultConfig()
	config.WarmUp = c.For / 4
	config.For = config.WarmUp + c.For
	config.Rate, config.Program, config.Log = c.Rate, c.Program, c.Log
	config.Flags = roomForAll
	return config
}

// measure runs one point. A point that lost spans is no measurement.
func measure(ctx context.Context, config Config) (*Report, error) {
	r, err := Run(ctx, config)
	if err == nil {
		err = ctx.Err()
	}
	if err == nil && !r.Holds() {
		err = fmt.Errorf("the figures do not agree: %+v", *r)
	}
	return r, err
}

func (c *ScaleConfig) sweep(ctx context.Context, s *sweep) error {
	drawn := plot{title: s.title, x: s.x, y: "CPU ns"}
	table := tabwriter.NewWriter(c.Out, 0, 0, 1, ' ', 0)
	fmt.Fprintf(table, "| %s\t| \t| CPU ns a span\t| in the kernel\t| allocations\t| peak MiB\t| accepted/s\t| dropped\t|\n", s.x)
	fmt.Fprintln(table, "| ---\t| ---\t| ---\t| ---\t| ---\t| ---\t| ---\t| ---\t|")
	for _, v := range s.variants {
		line := series{name: v.name}
		for _, value := range s.values {
			config := c.base()
			v.change(&config, value)
			r, err := measure(ctx, config)
			if err != nil {
				return err
			}
			line.points = append(line.points, point{value, r.DaemonCPU})
			fmt.Fprintf(table, "| %s\t| %s\t| %.0f\t| %.0f\t| %.4f\t| %.0f\t| %s\t| %s\t|\n", thousands(value), v.name,
				r.DaemonCPU, r.DaemonSystemCPU, r.DaemonAllocs, float64(r.DaemonPeakRSS)/(1<<20), thousands(r.SpansAcceptedPerSecond), thousands(float64(r.Books.Dropped)))
		}
		drawn.series = append(drawn.series, line)
	}
	return c.show(table, s.name, &drawn)
}

// show prints a table and writes its plot.
func (c *ScaleConfig) show(table *tabwriter.Writer, name string, drawn *plot) error {
	if err := table.Flush(); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	fmt.Fprintln(c.Out)
	if c.Images == "" {
		return nil
	}
	if err := os.MkdirAll(c.Images, 0o755); err != nil {
		return fmt.Errorf("make directory of plots: %w", err)
	}
	file, err := os.Create(filepath.Join(c.Images, "scale-"+name+".svg"))
	if err != nil {
		return fmt.Errorf("write plot: %w", err)
	}
	defer file.Close()
	if err := drawn.write(file); err != nil {
		return fmt.Errorf("write plot: %w", err)
	}
	return file.Close()
}

// cores is the name of the question that a model answers.
const cores = "cores"

// modelled is how many processors the model is asked about.
var modelled = []int{1, 2, 4, 8, 16, 32, 64}

// cores measures the parts on one processor, says from them what more of them
// would carry, and checks that where this machine has as many.
//
// The model: processors share nothing that a span would have to wait for, so c of
// them carry c times what one does. But a connection is read by one goroutine, and
// what that does for a span is less than all that the daemon does for it, so a
// connection carries at least what one processor carries of the daemon's work.
func (c *ScaleConfig) cores(ctx context.Context) error {
	saturate := func(cpus, connections int) (*Report, error) {
		config := c.base()
		config.Rate, config.CPUs, config.Connections = 0, cpus, connections
		config.Flags = append(slices.Clone(roomForAll), "--buffer=block")
		return measure(ctx, config)
	}
	one, err := saturate(1, 1)
	if err != nil {
		return err
	}
	all := one.DaemonCPU + one.TracerCPU
	fmt.Fprintf(c.Out, "On one processor: daemon %.0f ns a span, tracer %.0f ns.\n\n", one.DaemonCPU, one.TracerCPU)
	drawn := plot{title: "Spans a second by processors", x: "processors, daemon and tracers together", y: "M spans/s"}
	table := tabwriter.NewWriter(c.Out, 0, 0, 1, ' ', 0)
	fmt.Fprintln(table, "| processors\t| model, 1 connection\t| model, a connection each\t| measured, a connection each\t| measured CPU ns\t|")
	fmt.Fprintln(table, "| ---\t| ---\t| ---\t| ---\t| ---\t|")
	single, many, measured := series{name: "model, 1 connection"}, series{name: "model, one each"}, series{name: "measured"}
	for _, n := range modelled {
		x := float64(n)
		carried := func(connections float64) float64 { return 1e3 * min(x/all, connections/one.DaemonCPU) }
		single.points = append(single.points, point{x, carried(1)})
		many.points = append(many.points, point{x, carried(x)})
		found, cost := "", ""
		if n <= runtime.NumCPU() {
			r, err := saturate(n, n)
			if err != nil {
				return err
			}
			measured.points = append(measured.points, point{x, r.SpansAcceptedPerSecond / 1e6})
			found, cost = fmt.Sprintf("%.1f M/s", r.SpansAcceptedPerSecond/1e6), strconv.FormatFloat(r.DaemonCPU+r.TracerCPU, 'f', 0, 64)
		}
		fmt.Fprintf(table, "| %d\t| %.1f M/s\t| %.1f M/s\t| %s\t| %s\t|\n", n, carried(1), carried(x), found, cost)
	}
	drawn.series = []series{single, many, measured}
	return c.show(table, cores, &drawn)
}
