package bench

import (
	dd "github.com/spanstatsd/spanstatsd/internal/rules/datadog"
	"github.com/spanstatsd/spanstatsd/lab/bench/measure"
)

// tracesRun is the state of a running measurement of workload Traces.
type tracesRun struct {
	*run
	recording *recording
	counter   *dd.Counter
	complete  *wholeCounting
	policy    *dd.Policy
	counting  []countedAlone // one per round
	relay     *producer
	loads     [loads]load // loads in the order of their turns
	costs     costs       // costs of the turns in which the daemon counts
}

// Indexes of the loads.
const (
	relayed = iota
	proxied
	counted

	loads = counted + 1
)

// load is the result of one load.
type load struct {
	socket  string // socket that its tracers connect to
	did     result // combined result of its tracers
	seconds float64
	turns   []TracesLoad // one per round, except the first
}

// countedAlone is the cost of counting alone in one round.
type countedAlone struct{ walk, complete measure.Each }
