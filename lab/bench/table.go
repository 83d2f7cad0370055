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

// table is one in the form of the documentation, its columns lined up for a terminal.
type table struct {
	out     *tabwriter.Writer
	hasHead bool
}

func newTable(out io.Writer) *table { return &table{out: tabwriter.NewWriter(out, 0, 0, 1, ' ', 0)} }

// row writes the values of some facts, and before the first row their names.
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

// exactly runs a measurement that must not lose spans out of the books.
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

// clientRate is spans a second that the client has buffers for, whatever else the
// machine does.
const clientRate = 500_000

// All measures every workload, keys by their bytes and by numbers, as fast as it goes,
// and then the client library at a rate at which it refuses nothing. It prints a table.
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

// AllTraces measures the workload of traces with every recording, and prints a table.
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

// sweep is one question of scale: what changes, through which values.
type sweep struct {
	name   string
	values []int
	change func(c *Config, value int)
}

// roomForAll lifts every limit that would turn a question of speed into one of
// limits.
var roomForAll = []string{
	"--max-aggregates=131072", "--max-origins=2048", "--max-connections=2048",
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

// Scale measures how the cost of a span grows with each of them, or with some, and prints
// a table. Each point lasts as long as c says, behind a warm-up.
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
