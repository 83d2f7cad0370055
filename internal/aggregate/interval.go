package aggregate

import "sync/atomic"

// intervals own the registries: one an interval, two in turn. A report seals a
// cycle before its interval ends; the cycle after it goes on with the interval's
// registry, so its budgets, its rows and its key ids last until the boundary, and
// no tracer gets a second budget by asking.
//
// The registry of the interval before the last is free when the next one begins:
// the sealer begins it while it opens a cycle n, after it has sealed n-2, so that
// no reader is inside that one, and the flush has released it and all before it.
// Cycle n-1 belongs to the last interval, n-2 and those before to it or to earlier.
type intervals struct {
	number     uint64 // of the current one; the sealer's own
	registries [2]*registry
	current    atomic.Pointer[registry] // for those who ask for its size
	blame      blame
}

func (i *intervals) init(config *Config) {
	i.blame.labels = map[string]uint64{}
	for n := range i.registries {
		i.registries[n] = newRegistry(config)
	}
	i.current.Store(i.registry())
}

// begin makes the registry of the interval before the last one that of a new one.
func (i *intervals) begin() {
	i.number++
	i.blame.take(i.registry())
	i.registry().reset()
	i.current.Store(i.registry())
}

func (i *intervals) registry() *registry { return i.registries[i.number%2] }
