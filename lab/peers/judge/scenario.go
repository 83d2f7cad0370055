package main

import "time"

// scenario is a kind of traffic, with at most one fault in the middle.
type scenario struct {
	name  string
	about string

	spansPerSecond  int
	spansPerRequest int
	services        int
	mixesServices   bool          // all services are in each request
	hasFlood        bool          // every second span has a unique name
	clockOffset     time.Duration // offset of the sender's clock
	sampledOneIn    int           // one span in so many is sent; 0 for all
	repeatOneIn     int           // one request in so many is repeated although it was accepted; 0 for none
	fault           fault
	limits          limits
	isOverload      bool
}

// fault is what happens in the middle of the traffic.
type fault int

const (
	noFault           fault = iota
	restart                 // SIGTERM, then a new process
	kill                    // SIGKILL, then a new process
	destinationOutage       // the destination is unreachable for a while
)

// limits are those of a container.
type limits struct {
	memoryMiB int     // 0 for none
	cores     float64 // 0 for all
}

// steady returns the traffic that the other scenarios change.
func steady(name, about string) scenario {
	return scenario{name: name, about: about, spansPerSecond: 2000, spansPerRequest: 100, services: 4}
}

// scenarios are in the order of the page.
func scenarios() []scenario {
	all := []scenario{steady("steady", "nothing happens")}
	add := func(name, about string, change func(*scenario)) {
		s := steady(name, about)
		change(&s)
		all = append(all, s)
	}
	add("restart", "SIGTERM, then a new process", func(s *scenario) { s.fault = restart })
	add("kill", "SIGKILL, then a new process", func(s *scenario) { s.fault = kill })
	add("outage", "the destination is unreachable for 60 seconds", func(s *scenario) { s.fault = destinationOutage })
	add("repeated", "every tenth request is repeated, as after a lost response", func(s *scenario) { s.repeatOneIn = 10 })
	add("late", "spans ended two minutes ago", func(s *scenario) { s.clockOffset = -2 * time.Minute })
	add("ahead", "the sender's clock is two minutes ahead", func(s *scenario) { s.clockOffset = 2 * time.Minute })
	add("sampled", "a sampler upstream keeps 1 % of the spans, with a threshold or a rate in each",
		func(s *scenario) { s.sampledOneIn = 100 })
	add("flood", "every second span has a unique name; 10,000 spans per second", func(s *scenario) {
		s.hasFlood, s.spansPerSecond, s.spansPerRequest = true, 10_000, 500
	})
	add("overload", "twice the spans that the tool can receive with a tenth of a core", func(s *scenario) {
		s.isOverload, s.spansPerRequest, s.limits.cores = true, 500, 0.1
	})
	add("services", "40 services in each request", func(s *scenario) {
		s.services, s.mixesServices, s.spansPerRequest = 40, true, 400
	})
	add("memory", "the flood with a memory limit of 128 MiB", func(s *scenario) {
		s.hasFlood, s.spansPerSecond, s.spansPerRequest, s.limits.memoryMiB = true, 10_000, 500, 128
	})
	return all
}
