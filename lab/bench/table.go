package bench

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"text/tabwriter"

	"github.com/spanstatsd/spanstatsd/lab/workload"
)

// table writes a table in the format of the documentation, with aligned columns.
type table struct {
	out     *tabwriter.Writer
	hasHead bool
}

func newTable(out io.Writer) *table { return &table{out: tabwriter.NewWriter(out, 0, 0, 1, ' ', 0)} }

// row writes the values of facts. Before the first row it writes their names.
func (t *table) row(facts []fact) {
	line := func(cell func(fact) string) {
		for _, f := range facts {
			fmt.Fprintf(t.out, "| %s\t", cell(f))
		}
		fmt.Fprintln(t.out, "|")
	}
	if !t.hasHead {
		line(func(f fact) string { return f.name })
		line(func(fact) string { return "---" })
		t.hasHead = true
	}
	line(func(f fact) string { return f.value })
}

func (t *table) flush() error {
	if err := t.out.Flush(); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}

// exactly runs a measurement and fails if spans are missing from the accounting.
func exactly(ctx context.Context, config Config) (*Report, error) {
	r, err := Run(ctx, config)
	if err == nil {
		err = ctx.Err()
	}
	if err == nil && !r.Holds() {
		err = fmt.Errorf("the figures do not agree: %+v", *r)
	}
	if err != nil {
		return nil, fmt.Errorf("measure %s: %w", config.Workload, err)
	}
	return r, nil
}

// clientRate is a number of spans per second at which the client's buffers don't fill up, even
// on a busy machine.
const clientRate = 500_000

// All prints a table of all workloads: with keys by bytes and by number at full speed, then
// with the client library at a rate at which it refuses no spans.
func All(ctx context.Context, c Config) error {
	t := newTable(c.Out)
	for _, name := range append(workload.Names(), Client) {
		if c.Workload = name; name == Client {
			c.Workload, c.Tracer, c.Rate = workload.Stable, Client, clientRate
		}
		for _, c.Keys = range []string{Raw, Numbered} {
			r, err := exactly(ctx, c)
			if err != nil {
				return err
			}
			sent := []fact{{"workload", "`" + r.Workload + "`"}, {"tracer", r.Tracer}, {"keys", r.Keys}}
			t.row(slices.Concat(sent, r.costs(), r.times()))
		}
	}
	return t.flush()
}

// AllTraces measures workload traces with every recording, and prints a table.
func AllTraces(ctx context.Context, c Config) error {
	t := newTable(c.Out)
	c.Workload = Traces
	for _, c.Format = range Recorded {
		r, err := exactly(ctx, c)
		if err != nil {
			return err
		}
		t.row(r.Traces.facts())
	}
	return t.flush()
}

// sweep varies one parameter over several values.
type sweep struct {
	name   string
	values []int
	change func(c *Config, value int)
}

// roomForAll raises every limit that would otherwise affect a measurement of speed.
var roomForAll = []string{
	"--max-aggregates=131072", "--max-origins=2048", "--max-connections=2048",
	"--max-key-bytes=268435456", "--max-key-bytes-total=1073741824",
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

// processors returns the powers of two up to the number of this machine's processors.
func processors() (counts []int) {
	for n := 1; n <= runtime.NumCPU(); n *= 2 {
		counts = append(counts, n)
	}
	return counts
}

// ScaleNames returns the names of the sweeps.
func ScaleNames() (names []string) {
	for _, s := range sweeps {
		names = append(names, s.name)
	}
	return names
}

// Scale measures how the cost of a span grows in the named sweeps, or in all of them, and
// prints a table. Each point lasts as long as c says, after a warm-up.
func Scale(ctx context.Context, c Config, only []string) error {
	t := newTable(c.Out)
	c.WarmUp = c.For / 4
	c.For += c.WarmUp
	c.Flags = roomForAll
	for _, s := range sweeps {
		if len(only) > 0 && !slices.Contains(only, s.name) {
			continue
		}
		for _, value := range s.values {
			facts := []fact{{"", s.name}, {"raw / numbered keys", thousands(float64(value))}}
			config := c
			s.change(&config, value)
			for _, config.Keys = range []string{Raw, Numbered} {
				r, err := exactly(ctx, config)
				if err != nil {
					return err
				}
				if cost := r.costs(); config.Keys == Raw {
					facts = append(facts, cost...)
				} else {
					for i := range cost {
						facts[2+i].value += " / " + cost[i].value
					}
				}
			}
			t.row(facts)
		}
	}
	return t.flush()
}
