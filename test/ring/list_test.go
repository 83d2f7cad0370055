package ring

import (
	"slices"

	"github.com/anishathalye/porcupine"

	"github.com/spanstatsd/spanstatsd/internal/ring"
)

// act is the kind of an operation.
type act uint8

const (
	claim   act = iota // reserve slots for a run
	publish            // pass the run to the consumer
	skip               // return the run unread
	take               // the consumer receives the run's first slot
	free               // the run's slots can be claimed again
	send               // put a report in the side channel
	deliver            // the consumer receives the report
)

// operation is one act on a run or a report.
type operation struct {
	act act
	id  uint32
	n   int // number of claimed slots
}

// stage is the state of a run.
type stage uint8

const (
	claimed stage = iota
	published
	read
	skipped
)

type run struct {
	id    uint32
	n     int
	stage stage
}

// list is the state of the model: the runs in the order of their claims, and the number of runs claimed
// before each report. Values are immutable.
type list struct {
	runs    []run
	freed   int
	reports []report
}

type report struct {
	id  uint32
	bar int
}

func (l list) used() (n int) {
	for _, r := range l.runs {
		n += r.n
	}
	return n
}

// at returns the index of a run, or -1.
func (l list) at(id uint32) int {
	return slices.IndexFunc(l.runs, func(r run) bool { return r.id == id })
}

// with returns the list with a run in another stage.
func (l list) with(i int, s stage) list {
	l.runs = slices.Clone(l.runs)
	l.runs[i].stage = s
	return l
}

// next returns the index of the first run that is neither read nor skipped.
func (l list) next() int {
	return slices.IndexFunc(l.runs, func(r run) bool { return r.stage == claimed || r.stage == published })
}

// step reports whether a list of the given size can have this result for an operation, and returns the
// next state.
func (l list) step(size int, o operation, result ring.Result) (bool, list) {
	i := l.at(o.id)
	switch o.act {
	case claim:
		if fits := l.used()+o.n <= size; !fits || result == ring.Full {
			return !fits && result == ring.Full, l
		}
		l.runs = append(slices.Clone(l.runs), run{id: o.id, n: o.n})
		return true, l
	case publish, skip:
		if i < 0 || l.runs[i].stage != claimed {
			return false, l
		}
		return true, l.with(i, map[act]stage{publish: published, skip: skipped}[o.act])
	case take:
		if i < 0 || i != l.next() || l.runs[i].stage != published {
			return false, l
		}
		return true, l.with(i, read)
	case free:
		if i != 0 || l.runs[0].stage != read && l.runs[0].stage != skipped {
			return false, l
		}
		l.runs = slices.Clone(l.runs[1:])
		l.freed++
		return true, l
	case send:
		l.reports = append(slices.Clone(l.reports), report{o.id, l.freed + len(l.runs)})
		return true, l
	case deliver:
		if len(l.reports) == 0 || l.reports[0].id != o.id || l.freed < l.reports[0].bar {
			return false, l
		}
		l.reports = slices.Clone(l.reports[1:])
		return true, l
	}
	return false, l
}

// modelOf returns the porcupine model of a ring of the given size.
func modelOf(size int) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return list{} },
		Step: func(state, input, output any) (bool, any) {
			return state.(list).step(size, input.(operation), output.(ring.Result))
		},
		Equal: func(a, b any) bool {
			x, y := a.(list), b.(list)
			return x.freed == y.freed && slices.Equal(x.runs, y.runs) && slices.Equal(x.reports, y.reports)
		},
	}
}
