// Package workload generates the spans used in measurements. A workload's name stands for the
// same spans in all measurements:
//
//	stable       64 keys in rotation: 4 services, 16 operations, 64 resources
//	pool         the same with 4096 distinct (service, operation, resource)
//	adversarial  service, operation, resource and peer.hostname new with every span
//	skewed       100 keys: one has 60 % of the spans, the next nine 30 %, the rest 10 %
//	burst        stable, in bursts of 100,000 spans each 500 ms
//	flood:urls   a flood of unique keys, in one of the Shapes; flood:urls:5% has 5 % such
//	             spans, mixed with spans of 500 recurring keys
//
// Half of the keys of all workloads except adversarial and floods are servers, a quarter are
// clients with three peer tags, and a quarter are internal. Durations are 1 ms plus an
// exponential distribution of 20 ms; 5 % of the spans are errors.
//
// The package only generates spans: it starts no goroutine, reads no clock and sends nothing.
// So the same generator serves benchmarks within a process and tracers in other processes. The
// result depends only on the name and the seed.
//
// A Generator is not safe for concurrent use. New precomputes as much as possible, so that a
// span costs a few loads and stores. Spans of adversarial and of floods also cost writing their
// labels, with one allocation per batch.
package workload

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Names of the workloads.
const (
	Stable      = "stable"
	Pool        = "pool"
	Adversarial = "adversarial"
	Skewed      = "skewed"
	Burst       = "burst"
)

// Two more, from the Java client's benchmarks: like adversarial, but with only one label that
// is new in every span, and the other labels constant.
const (
	UniqueResource = "unique-resource"
	UniquePeer     = "unique-peer"
)

// Names returns the five workloads that are not floods, in the order of reports.
func Names() []string { return []string{Stable, Pool, Skewed, Burst, Adversarial} }

const (
	// BurstSpans are published without a pause, and the next ones BurstEvery later.
	BurstSpans = 100_000
	BurstEvery = 500 * time.Millisecond
)

// Generator generates the snapshots of one workload.
type Generator struct {
	keys   keySource
	spread *spread
}

// keySource chooses the keys of a batch.
type keySource interface {
	all() []span.Key
	fill(batch []Snapshot)
}

// New returns the generator of a workload. Generators whose seeds differ in the low 16 bits
// have no keys of adversarial in common.
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
	return nil, fmt.Errorf("choose workload: %q is not one of %s, nor %s and one of %s",
		name, strings.Join(Names(), ", "), floodPrefix, strings.Join(Shapes(), ", "))
}

// NewKeys returns a generator like stable, but with a given number of keys, for measurements of
// how cost depends on that number.
func NewKeys(keys int, seed uint64) *Generator {
	return &Generator{newRotation(someKeys(keys)), newSpread(rand.New(rand.NewPCG(seed, 0)), ordinary)}
}

// Keys returns the distinct keys of the workload, or nil if every span has a new key. The
// caller must not modify them.
func (g *Generator) Keys() []span.Key { return g.keys.all() }

// Fill generates the next spans, all ending at end. Data referenced by the batch is valid until
// the next Fill.
func (g *Generator) Fill(batch []Snapshot, end int64) {
	g.keys.fill(batch)
	g.spread.fill(batch)
	for i := range batch {
		batch[i].End = end
	}
}
