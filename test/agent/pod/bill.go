package main

import (
	"slices"
	"time"
)

// parts is what something takes in each process of a pod.
type parts struct{ App, Daemon, Agent float64 }

func (p parts) sum() float64 { return p.App + p.Daemon + p.Agent }

// plus is p and so many times q.
func (p parts) plus(times float64, q parts) parts {
	return parts{p.App + times*q.App, p.Daemon + times*q.Daemon, p.Agent + times*q.Agent}
}

// each asks every process that there is.
func (p *pod) each(ask func(*process) (float64, error)) (all parts, err error) {
	for _, one := range []struct {
		who  *process
		part *float64
	}{{p.app, &all.App}, {p.daemon, &all.Daemon}, {p.agent, &all.Agent}} {
		if one.who == nil {
			continue
		}
		if *one.part, err = ask(one.who); err != nil {
			return all, err
		}
	}
	return all, nil
}

// billed is the processor's time that is on the bill, µs.
func billed(one *process) (us float64, err error) {
	all, err := one.cpu()
	if err != nil {
		return 0, err
	}
	compiling, err := one.compiling()
	return float64(all-compiling) / float64(time.Microsecond), err
}

// spent is what a pod's processes took of one slice: its own, when it had the load, or another's.
type spent struct {
	own     bool
	seconds float64
	cpu     parts // µs
}

// bill is what the processes took, µs: all of it, so that what a slice left to be done is in
// it, but that they tick while nothing comes is in it for the time of their own slices
// only, as if the load had never been elsewhere.
func bill(all []spent) (cpu parts) {
	ticks := idle(all)
	for _, s := range all {
		cpu = cpu.plus(1, s.cpu)
		if !s.own {
			cpu = cpu.plus(-s.seconds, ticks)
		}
	}
	return cpu
}

// idle is what the processes take in a second while nothing comes: the median of the other ways'
// slices. Work left over from a slice is done in the first slice behind it, and work of every ten
// seconds in one of many: the median has neither.
func idle(all []spent) parts {
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
