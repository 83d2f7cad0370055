package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// scenario holds the parameters of an episode.
type scenario struct {
	seed                uint64
	rate                int // spans per second, of all clients together
	goClients           int
	rawClients          int // clients that crash
	hasJava, hasPython  bool
	hasNode, hasLeaving bool
	isTight             bool          // the clients can't keep all spans, so some die with a daemon
	maxAge, maxBackoff  time.Duration // client settings
	isFull              bool          // the disk has no space for recovery files
	isStarved           bool          // daemons have the memory of a small pod and are killed by the OOM killer
	destinations, doors []string
	slow                float64 // share of requests that a destination answers late
	hangs               bool    // the destination answers some requests after the timeout
}

const loudRate = 100_000

// rates are drawn with equal probability. Most of them leave the processor mostly idle.
var rates = []int{1000, 1000, 1000, 20_000, 20_000, loudRate}

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
		isTight: r.IntN(6) == 0, hasLeaving: r.IntN(3) == 0, isStarved: r.IntN(12) == 0,
		slow: []float64{0, 0.1, 0.5}[r.IntN(3)],
	}
	c.maxAge = []time.Duration{20 * time.Millisecond, 200 * time.Millisecond, time.Second}[r.IntN(3)]
	c.maxBackoff = []time.Duration{20 * time.Millisecond, 100 * time.Millisecond, 2 * time.Second}[r.IntN(3)]
	mix := mixes[r.IntN(len(mixes))]
	door := []string{"none", "apm", "otlp", "zipkin", "apm,otlp,zipkin"}[r.IntN(5)]
	if s.isPlanned {
		c.rawClients, c.isFull, c.hangs = r.IntN(3), r.IntN(12) == 0 && s.canFill, r.IntN(8) == 0
	}
	c.hasPython = r.IntN(3) == 0 && s.python != nil
	c.hasNode = r.IntN(3) == 0 && s.node != nil
	if s.onlyRate != 0 {
		c.rate = s.onlyRate
	}
	if s.onlyTo != "" {
		mix = s.onlyTo
	}
	if s.onlyDoors != "" {
		door = s.onlyDoors
	}
	c.isStarved = (c.isStarved || s.onlyStarved) && s.canStarve
	c.hasJava = c.hasJava && s.classes != ""
	c.destinations = strings.Split(mix, ",")
	for _, name := range strings.Split(door, ",") {
		// Traces are forwarded to the agent, so without an agent no destination accepts them.
		if name == "otlp" || name == "zipkin" || name == "apm" && strings.Contains(mix, "agent") {
			c.doors = append(c.doors, name)
		}
	}
	if c.isStarved { // the limits for more destinations exceed the memory of a small pod
		c.destinations, c.doors = c.destinations[:1], nil
	}
	return c
}

// kept returns the number of spans that a client keeps. The default is enough except at the highest
// rate.
func (c scenario) kept() int {
	switch {
	case c.isTight:
		return 128 << 10
	case c.rate >= loudRate:
		return 128 << 20
	}
	return 4 << 20
}

func (c scenario) String() string {
	text := fmt.Sprintf("%s, %d spans/s of %d Go", strings.Join(c.destinations, " and "), c.rate, c.goClients)
	if c.hasJava {
		text += " and a Java client"
	}
	if c.hasPython {
		text += " and a Python client"
	}
	if c.hasNode {
		text += " and a Node.js client"
	}
	if c.rawClients > 0 {
		text += fmt.Sprintf(", %d that crash", c.rawClients)
	}
	if c.isFull {
		text += ", on a full disk"
	}
	if c.hangs {
		text += ", to who hangs"
	}
	if c.hasLeaving {
		text += ", others that leave"
	}
	if c.isTight {
		text += " that keep little"
	}
	if c.isStarved {
		text += ", killed by the OOM killer"
	}
	if len(c.doors) > 0 {
		text += ", doors " + strings.Join(c.doors, " and ")
	}
	return text
}
