// Package workload makes the spans that measurements are taken with, by names
// that stand for the same shapes wherever figures are laid side by side:
//
//	stable       64 keys in rotation: 4 services, 16 operations, 64 resources
//	pool         the same with 4096 distinct (service, operation, resource)
//	adversarial  service, operation, resource and peer.hostname new with every span
//	skewed       100 keys: one has 60 % of the spans, the next nine 30 %, the rest 10 %
//	burst        stable, in bursts of 100,000 spans each 500 ms
//	flood:urls   a flood of keys that come once, in one of the Shapes; flood:urls:5% is one
//	             such span in twenty, and between them those of 500 keys that come again
//
// Half of the keys of all but adversarial and floods are of servers, a quarter of clients
// with three peer tags, a quarter internal; durations are 1 ms and an
// exponential 20 ms on top; 5 % of the spans are errors.
//
// It owns shapes and no time: it starts no goroutine, reads no clock and sends
// nothing, so that the same generator serves a benchmark within a process and
// a tracer outside of it. What it makes depends on the name and the seed alone.
//
// A Generator belongs to one goroutine. All it can make beforehand it makes in
// New, so that a span costs a few loads and stores; one of adversarial or of a flood costs
// the writing of its labels, and a batch of them one allocation.
package workload

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// The names of the workloads.
const (
	Stable      = "stable"
	Pool        = "pool"
	Adversarial = "adversarial"
	Skewed      = "skewed"
	Burst       = "burst"
)

// Two more, of the Java tracer's own benchmarks: adversarial with one label that
// is new with every span, and the others the same in all.
const (
	UniqueResource = "unique-resource"
	UniquePeer     = "unique-peer"
)

// Names are the five that are no floods, in the order in which they are reported.
func Names() []string { return []string{Stable, Pool, Skewed, Burst, Adversarial} }

const (
	// BurstSpans are published at once, and the next ones BurstEvery later.
	BurstSpans = 100_000
	BurstEvery = 500 * time.Millisecond
)

// Generator makes the snapshots of one workload.
type Generator struct {
	keys   keySource
	spread *spread
}

// keySource chooses the keys of a batch.
type keySource interface {
	all() []span.Key
	fill(batch []Snapshot)
}

// New returns the generator of a workload. Generators of different seeds, as
// far as their low 16 bits tell them apart, share no key of adversarial.
func New(name string, seed uint64) (*Generator, error) {
	rnd := rand.New(rand.NewPCG(seed, 0))
	switch name {
	case Stable, Burst:
		return &Generator{newRotation(someKeys(resources)), newSpread(rnd, ordinary)}, nil
	case Pool:
		return &Generator{newRotation(poolKeys()), newSpread(rnd, ordinary)}, nil
	case Skewed:
		return &Generator{newSkew(rnd), newSpread(rnd, ordinary)}, nil
	case Adversarial:
		return &Generator{&unique{seed: uint16(seed), ends: everyLabel}, newSpread(rnd, hostile)}, nil
	case UniqueResource:
		return &Generator{&unique{seed: uint16(seed), ends: []int{resourceEnd}}, newSpread(rnd, hostile)}, nil
	case UniquePeer:
		return &Generator{&unique{seed: uint16(seed), ends: []int{uniqueBytes}}, newSpread(rnd, hostile)}, nil
	}
	if IsFlood(name) {
		keys, err := newFlood(name, seed, rnd)
		if err != nil {
			return nil, err
		}
		return &Generator{keys, newSpread(rnd, ordinary)}, nil
	}
	return nil, fmt.Errorf("choose workload: %q is none of %s, nor %s and one of %s",
		name, strings.Join(Names(), ", "), floodPrefix, strings.Join(Shapes(), ", "))
}

// NewKeys returns the generator of a number of keys in rotation, otherwise in
// the shape of stable: what a measurement needs that is about how many they are.
func NewKeys(keys int, seed uint64) *Generator {
	return &Generator{newRotation(someKeys(keys)), newSpread(rand.New(rand.NewPCG(seed, 0)), ordinary)}
}

// Keys are the distinct keys of the workload, none where every span has its
// own. They are not to be changed.
func (g *Generator) Keys() []span.Key { return g.keys.all() }

// Fill makes the next spans, all of which ended at end. What the batch points
// to is valid until the next Fill.
func (g *Generator) Fill(batch []Snapshot, end int64) {
	g.keys.fill(batch)
	g.spread.fill(batch)
	for i := range batch {
		batch[i].End = end
	}
}
