package bench

import (
	dd "github.com/spanstatsd/spanstatsd/internal/rules/datadog"
	"github.com/spanstatsd/spanstatsd/lab/bench/measure"
)

// tracesRun is such a measurement under way.
type tracesRun struct {
	*run
	recording *recording
	counter   *dd.Counter
	whole     *wholeCounting
	policy    *dd.Policy
	counting  []countedAlone // a round each
	relay     *producer
	loads     [loads]load // in the order in which they take turns
	costs     costs       // of the turns in which the daemon counts
}

// The loads.
const (
	relayed = iota
	proxied
	counted

	loads = counted + 1
)

// load is what became of one of them.
type load struct {
	socket  string // that its tracers connect to
	did     result // by its tracers
	seconds float64
	turns   []TracesLoad // but for the first
}

// countedAlone is what counting alone cost in a round.
type countedAlone struct{ walk, whole measure.Each }
