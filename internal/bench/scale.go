package bench

import (
	"context"
	"runtime"
	"slices"
)

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
