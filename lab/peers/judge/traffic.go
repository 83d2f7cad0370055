package main

import (
	"fmt"
	"time"
)

// spanName is the identity under which a tool must count a span.
type spanName struct{ service, span string }

// span is a finished server span, the only one of its trace.
type span struct {
	spanName
	isUnique bool   // no other span has this name
	id       uint64 // distinct within a trial
	end      time.Time
	duration time.Duration
}

// request is a batch of spans that a sender sends at once.
type request struct {
	spans []span
	// weight is the number of spans that each span of the request stands for. It is more than 1 if a sampler upstream
	// has discarded the others.
	weight int
}

const (
	routesPerService = 16
	spanDuration     = 20 * time.Millisecond
)

// generator generates the requests of a scenario. The result depends only on the scenario and the clock.
type generator struct {
	scenario scenario
	services []string
	routes   []string
	requests int
	spans    uint64
}

func newGenerator(s scenario) *generator {
	g := &generator{scenario: s}
	for i := range s.services {
		g.services = append(g.services, fmt.Sprintf("shop-%d", i))
	}
	for i := range routesPerService {
		g.routes = append(g.routes, fmt.Sprintf("GET /section-%c/{id}", 'a'+i))
	}
	return g
}

// next returns the next request. Its spans belong to one service, or to all in turn if the scenario mixes them.
func (g *generator) next(now time.Time) request {
	r := request{spans: make([]span, g.scenario.spansPerRequest), weight: max(1, g.scenario.sampledOneIn)}
	for i := range r.spans {
		service := g.requests % g.scenario.services
		if g.scenario.mixesServices {
			service = i % g.scenario.services
		}
		r.spans[i] = g.span(service, now)
	}
	g.requests++
	return r
}

func (g *generator) span(service int, now time.Time) span {
	g.spans++
	s := span{
		spanName: spanName{service: g.services[service]},
		id:       g.spans,
		end:      now.Add(g.scenario.clockOffset),
		duration: spanDuration,
	}
	if g.scenario.hasFlood && g.spans%2 == 0 {
		s.isUnique = true
		s.spanName.span = fmt.Sprintf("load profile of user-%d", 1_000_000+g.spans)
		return s
	}
	s.spanName.span = g.routes[g.spans/2%routesPerService]
	return s
}
