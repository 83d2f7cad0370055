package main

import "time"

// parts is what something takes in each process of a pod.
type parts struct{ App, Daemon, Agent float64 }

func (p parts) sum() float64 { return p.App + p.Daemon + p.Agent }

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

// reading is what the processes' clocks and the log of collections show.
type reading struct {
	cpu parts // µs since each began
	log int   // its length
}

func (p *pod) read() (r reading, err error) {
	r.cpu, err = p.each(billed)
	if err != nil {
		return r, err
	}
	r.log, err = p.collections.length()
	return r, err
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

// since is what a request has taken between two readings, µs.
func (p parts) since(before parts, requests int) parts {
	n := float64(max(requests, 1))
	return parts{(p.App - before.App) / n, (p.Daemon - before.Daemon) / n, (p.Agent - before.Agent) / n}
}
