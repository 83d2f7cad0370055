package main

import (
	"slices"
	"time"
)

// parts is an amount per process of a pod.
type parts struct{ App, Daemon, Agent float64 }

func (p parts) sum() float64 { return p.App + p.Daemon + p.Agent }

// plus returns p plus times times q.
func (p parts) plus(times float64, q parts) parts {
	return parts{p.App + times*q.App, p.Daemon + times*q.Daemon, p.Agent + times*q.Agent}
}

// each calls ask for every running process.
func (p *pod) each(ask func(*process) (float64, error)) (all parts, err error) {
	for _, entry := range []struct {
		proc *process
		part *float64
	}{{p.app, &all.App}, {p.daemon, &all.Daemon}, {p.agent, &all.Agent}} {
		if entry.proc == nil {
			continue
		}
		if *entry.part, err = ask(entry.proc); err != nil {
			return all, err
		}
	}
	return all, nil
}

// billed returns the billed processor time in µs.
func billed(entry *process) (us float64, err error) {
	all, err := entry.cpu()
	if err != nil {
		return 0, err
	}
	compiling, err := entry.compiling()
	return float64(all-compiling) / float64(time.Microsecond), err
}

// usage is the resource usage of a pod in one slice, either its own, with the load on it, or that of
// another side.
type usage struct {
	own     bool
	seconds float64
	cpu     parts // in µs
}

// bill returns the billed processor time in µs. It contains all usage of the processes, including work
// deferred to later slices, except that idle usage counts only for the time of the side's own slices,
// as if it had always had the load.
func bill(all []usage) (cpu parts) {
	ticks := idle(all)
	for _, s := range all {
		cpu = cpu.plus(1, s.cpu)
		if !s.own {
			cpu = cpu.plus(-s.seconds, ticks)
		}
	}
	return cpu
}

// idle returns the usage per second without load: the median of the slices of other sides. The median
// excludes deferred work, which happens in the first of these slices, and the work of every ten
// seconds, which happens in few of them.
func idle(all []usage) parts {
	middle := func(part func(parts) float64) float64 {
		var rates []float64
		for _, s := range all {
			if !s.own {
				rates = append(rates, part(s.cpu)/s.seconds)
			}
		}
		if len(rates) == 0 {
			return 0
		}
		slices.Sort(rates)
		return rates[len(rates)/2]
	}
	return parts{
		App:    middle(func(p parts) float64 { return p.App }),
		Daemon: middle(func(p parts) float64 { return p.Daemon }),
		Agent:  middle(func(p parts) float64 { return p.Agent }),
	}
}
