package main

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/routing"
)

// interval is how often the balancer runs. turns is the number of turns of each side per
// window.
const (
	interval = time.Second
	turns    = 4
)

// side is one of the two compared engines: static or balanced.
type side struct {
	engine *engine
	window []uint64 // items taken in the current window, by drainer
	all    []uint64
}

// newSide starts an engine. If every is 0, the routing is never rebalanced.
func newSide(o options, l load, drainers int, every time.Duration) (*side, error) {
	e, err := newEngine(o, routing.Config{
		Drainers: drainers, Interval: every,
	}, types, l.hashes(types))
	if err != nil {
		return nil, err
	}
	e.send(2*o.window + 4*every) // warm-up
	return &side{engine: e, window: make([]uint64, drainers), all: make([]uint64, drainers)}, nil
}

// turn lets the engine run for one turn and returns the number of items taken.
func (s *side) turn() float64 {
	taken := s.engine.send(s.engine.window / turns)
	for i, n := range taken {
		s.window[i] += n
		s.all[i] += n
	}
	return float64(sum(taken))
}

func (s *side) print(out io.Writer) {
	perSecond := float64(sum(s.window)) / s.engine.window.Seconds() / 1e6
	fmt.Fprintf(out, "  %8.2f M/s  ratio %5.2f", perSecond, ratio(s.window))
	clear(s.window)
}

// compare runs one load on both sides in alternating turns and prints one line per window.
func compare(out io.Writer, o options, l load, drainers int) error {
	static, err := newSide(o, l, drainers, 0)
	if err != nil {
		return err
	}
	balanced, err := newSide(o, l, drainers, interval)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%s; %d drainers, %d steps an item\n%8s  %-24s  %s\n", l.name, drainers, o.work, "",
		"static", "balanced")
	var gains []float64
	for w := range o.windows {
		for range turns {
			gains = append(gains, 1/static.turn()*balanced.turn())
		}
		fmt.Fprintf(out, "%7s", time.Duration(w+1)*o.window)
		static.print(out)
		balanced.print(out)
		fmt.Fprintln(out)
	}
	stats := balanced.engine.balancer.Stats()
	static.engine.stop()
	balanced.engine.stop()
	fmt.Fprintf(out, "%d partitions, %d moves, %d splits, %d merges\n", stats.Partitions, stats.Moves,
		stats.Splits, stats.Merges)
	fmt.Fprintf(out, "with a core for each drainer, by the busiest one's share: %+.0f%%\n",
		percent(busiest(static.all)/busiest(balanced.all)))
	fmt.Fprintf(out, "balanced vs static: %+.0f%%, load ratio %.2f -> %.2f\n", percent(median(gains)),
		ratio(static.all), ratio(balanced.all))
	return nil
}

// busiest returns the share of all items that the busiest drainer took.
func busiest(taken []uint64) float64 { return float64(slices.Max(taken)) / float64(sum(taken)) }

func percent(times float64) float64 { return 100 * (times - 1) }

func median(values []float64) float64 {
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}
