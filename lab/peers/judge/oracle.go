package main

import (
	"math"
	"sync"
)

// counts are numbers of spans by name. They are not integers, because a tool may estimate.
type counts map[spanName]float64

func (c counts) total() (total float64) {
	for _, n := range c {
		total += n
	}
	return total
}

// oracle knows every span that was sent.
type oracle struct {
	mu        sync.Mutex
	recurring counts
	unique    float64 // spans with a name of their own
	told      float64 // spans of requests that the tool has rejected, so that their sender knows
}

func newOracle() *oracle { return &oracle{recurring: counts{}} }

// sent adds the spans of a request, before its first byte is sent. A retry does not add them again.
func (o *oracle) sent(r request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, s := range r.spans {
		if s.isUnique {
			o.unique += float64(r.weight)
		} else {
			o.recurring[s.spanName] += float64(r.weight)
		}
	}
}

// rejected adds spans that the sender knows to be lost.
func (o *oracle) rejected(spans float64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.told += spans
}

func (o *oracle) total() float64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.recurring.total() + o.unique
}

// score is the verdict on a tool in a scenario, in spans. docs/comparison.md defines each field.
type score struct {
	Sent, Lost, Doubled, Misnamed, Unaccounted float64
}

// maxEstimateError is the relative error that an estimate of sampled spans may have without being scored.
const maxEstimateError = 0.01

// judge compares the output of a tool with the spans that were sent, and the losses with those that the tool has
// reported.
func (o *oracle) judge(output counts, reported losses, isEstimated bool) score {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := score{Sent: o.recurring.total() + o.unique}
	missing, elsewhere := 0.0, output.total()
	for name, expected := range o.recurring {
		counted := output[name]
		elsewhere -= counted
		difference := counted - expected
		if isEstimated && math.Abs(difference) <= maxEstimateError*expected {
			continue
		}
		missing += max(0, -difference)
		s.Doubled += max(0, difference)
	}
	// Spans with unique names can be counted under their own name, a mask or an overflow series. Recurring names
	// that are missing can be among the surplus there.
	surplus := elsewhere - o.unique
	s.Misnamed = min(missing, max(0, surplus))
	s.Doubled += max(0, surplus-s.Misnamed)
	s.Lost = missing - s.Misnamed + max(0, -surplus)
	s.Unaccounted = max(0, s.Lost-o.told-reported.spans())
	return s
}
