package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// scenario holds the parameters of an episode.
type scenario struct {
	seed                    uint64
	rate                    int // spans per second, of all clients together
	goClients               int
	rawClients              int // clients that crash
	hasJava, hasPython      bool
	hasNode                 bool
	hasDisconnecting        bool          // clients that disconnect without waiting for outcomes
	hasLowCapacity          bool          // the clients can't keep all spans, so some are lost with a daemon
	maxAge, maxBackoff      time.Duration // client settings
	diskIsFull              bool          // the disk has no space for recovery files
	usesOOMKiller           bool          // daemons have the memory of a small pod and are killed by the OOM killer
	destinations, receivers []string
	slow                    float64 // share of requests that a destination delays
	hangs                   bool    // the destination responds to some requests after the timeout
}

// highRate is the rate at which only one episode runs at a time.
const highRate = 100_000

// rates are drawn with equal probability. Most of them leave the processor mostly idle.
var rates = []int{1000, 1000, 1000, 20_000, 20_000, highRate}

// mixes are the combinations of destinations: each alone, and several together.
var mixes = []string{
	"agent", "delta", "cumulative", "prometheus", "agent,delta", "agent,cumulative", "delta,prometheus",
	"agent,cumulative,prometheus",
}

// draw draws an episode. Parameters set by the caller replace drawn ones, so that the other parameters
// stay the same for a given seed.
func (s *settings) draw(seed uint64) scenario {
	r := rand.New(rand.NewPCG(seed, 0))
	c := scenario{
		seed: seed, rate: rates[r.IntN(len(rates))], goClients: 1 + r.IntN(3), hasJava: r.IntN(3) == 0,
		hasLowCapacity: r.IntN(6) == 0, hasDisconnecting: r.IntN(3) == 0, usesOOMKiller: r.IntN(12) == 0,
		slow: []float64{0, 0.1, 0.5}[r.IntN(3)],
	}
	c.maxAge = []time.Duration{20 * time.Millisecond, 200 * time.Millisecond, time.Second}[r.IntN(3)]
	c.maxBackoff = []time.Duration{20 * time.Millisecond, 100 * time.Millisecond, 2 * time.Second}[r.IntN(3)]
	mix := mixes[r.IntN(len(mixes))]
	receivers := []string{"none", "apm", "otlp", "zipkin", "apm,otlp,zipkin"}[r.IntN(5)]
	if s.isPlanned {
		c.rawClients, c.diskIsFull, c.hangs = r.IntN(3), r.IntN(12) == 0 && s.canLimitDisk, r.IntN(8) == 0
	}
	c.hasPython = r.IntN(3) == 0 && s.python != nil
	c.hasNode = r.IntN(3) == 0 && s.node != nil
	if s.onlyRate != 0 {
		c.rate = s.onlyRate
	}
	if s.onlyDestinations != "" {
		mix = s.onlyDestinations
	}
	if s.onlyReceivers != "" {
		receivers = s.onlyReceivers
	}
	c.usesOOMKiller = (c.usesOOMKiller || s.onlyOOM) && s.canUseOOMKiller
	c.hasJava = c.hasJava && s.classes != ""
	c.destinations = strings.Split(mix, ",")
	for _, name := range strings.Split(receivers, ",") {
		// Traces are forwarded to the agent, so without an agent no destination accepts them.
		if name == "otlp" || name == "zipkin" || name == "apm" && strings.Contains(mix, "agent") {
			c.receivers = append(c.receivers, name)
		}
	}
	if c.usesOOMKiller { // the limits for more destinations exceed the memory of a small pod
		c.destinations, c.receivers = c.destinations[:1], nil
	}
	return c
}

// maxKept returns the memory for unsettled spans of a client, in bytes. The default is enough except at
// the highest rate.
func (c scenario) maxKept() int {
	switch {
	case c.hasLowCapacity:
		return 128 << 10
	case c.rate >= highRate:
		return 128 << 20
	}
	return 4 << 20
}

func (c scenario) String() string {
	text := fmt.Sprintf("%s, %d spans/s, clients: %d Go", strings.Join(c.destinations, " and "), c.rate, c.goClients)
	if c.hasJava {
		text += ", 1 Java"
	}
	if c.hasPython {
		text += ", 1 Python"
	}
	if c.hasNode {
		text += ", 1 Node.js"
	}
	if c.rawClients > 0 {
		text += fmt.Sprintf(", %d crashing", c.rawClients)
	}
	if c.hasDisconnecting {
		text += ", disconnecting"
	}
	if c.diskIsFull {
		text += "; full disk"
	}
	if c.hangs {
		text += "; hanging destinations"
	}
	if c.hasLowCapacity {
		text += "; low client capacity"
	}
	if c.usesOOMKiller {
		text += "; OOM kills"
	}
	if len(c.receivers) > 0 {
		text += "; receivers " + strings.Join(c.receivers, " and ")
	}
	return text
}
